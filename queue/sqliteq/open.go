package sqliteq

import (
	"context"
	"crypto/aes"
	crand "crypto/rand"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// sqliteMin is the oldest SQLite that is accepted: before 3.51.3 a WAL reset could lose a commit when two connections
// wrote and checkpointed at once.
var sqliteMin = [3]int{3, 51, 3}

// readerCount is how many lists and look-ups run at once.
const readerCount = 3

// Open opens the store at o.Path or o.Dir, and creates it when it is not there. Whatever an earlier process had reserved
// is ready again, with a crash counted. It fails with *LockedError while another process has the store open, and with
// *NewerSchemaError when a newer release wrote it. ctx bounds the opening only.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, err
	}
	lock, err := lockFile(o.Path)
	if err != nil {
		return nil, err
	}
	s, err := openLocked(ctx, o, lock)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, errors.Join(fmt.Errorf("open store %s: %w", o.Path, err), lock.release())
	}
	go s.w.run()
	return s, nil
}

func openLocked(ctx context.Context, o Options, lock *fileLock) (s *Store, err error) {
	list, err := migrations(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	c, err := dial(ctx, o.Path, false, o.PageCacheBytes)
	if err != nil {
		return nil, err
	}
	s = newStore(o, c, lock)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeConns())
		}
	}()
	if err := checkVersion(ctx, c); err != nil {
		return s, err
	}
	if err := migrate(ctx, c, o.Path, list); err != nil {
		return s, err
	}
	if err := s.loadMeta(ctx, c); err != nil {
		return s, err
	}
	if err := s.rebuild(ctx, c); err != nil {
		return s, err
	}
	for range readerCount {
		r, err := dial(ctx, o.Path, true, o.PageCacheBytes/4)
		if err != nil {
			return s, err
		}
		s.readers <- r
	}
	f, err := dial(ctx, o.Path, true, o.PageCacheBytes/4)
	if err != nil {
		return s, err
	}
	s.fetch = &fetcher{c: f, path: o.Path, texts: make(map[int]string)}
	return s, nil
}

func newStore(o Options, c *conn, lock *fileLock) *Store {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // never fails
	s := &Store{
		listWork:      listWork,
		listNow:       time.Now,
		finishedCount: [2]int64{-1, -1},
		path:          o.Path,
		clock:         o.Clock,
		limits:        o.Limits,
		log:           o.Logger,
		fatal:         o.Fatal,
		lock:          lock,
		readers:       make(chan *conn, readerCount),
		closed:        make(chan struct{}),
		tenants:       make(map[string]*tenantState),
		tenantsByID:   make(map[int64]*tenantState),
		queuesByID:    make(map[int64]*queueState),
		views:         make(map[string]*view),
		cache:         cache{max: o.CacheBytes, entries: make(map[int64]entry)},
		gone:          make(map[int64]struct{}),
		fetching:      make(map[int64]int64),
		limbo:         make(map[int64]struct{}),
		sidesteps:     make(map[int64]*sidestep),
		running:       make(map[int64]*running),
		unscheduled:   make(map[int64]struct{}),
		expires:       make(map[int64]int64),
		watches:       make(map[int64]map[*watch]struct{}),
		leases:        make(map[string]namedLease),
		tokens:        rand.NewChaCha8(seed),
		forgetAt:      never,
	}
	s.lostQueue = &queueState{tenant: &tenantState{}, lines: make(map[int]*line)}
	s.w = &writer{s: s, c: c, signal: make(chan struct{}, 1), done: make(chan struct{}), texts: make(map[textKey]string),
		random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	return s
}

func checkVersion(ctx context.Context, c *conn) error {
	var text string
	err := c.query(ctx, "SELECT sqlite_version()", func(row []driver.Value) error {
		text = asString(row[0])
		return nil
	})
	if err != nil {
		return err
	}
	var have [3]int
	for i, part := range strings.SplitN(text, ".", 3) {
		have[i], _ = strconv.Atoi(part)
	}
	for i, n := range sqliteMin {
		if have[i] > n {
			return nil
		}
		if have[i] < n {
			return fmt.Errorf("SQLite %s is too old, %d.%d.%d or newer is needed", text, sqliteMin[0], sqliteMin[1], sqliteMin[2])
		}
	}
	return nil
}

// loadMeta reads the counters and begins a new epoch, so that no token of an earlier process is ever current again.
func (s *Store) loadMeta(ctx context.Context, c *conn) error {
	found := false
	var key, scheduling []byte
	read := func() error {
		return c.query(ctx, sqlMetaRead, func(row []driver.Value) error {
			found = true
			key, scheduling = asBytes(row[0]), asBytes(row[7])
			s.epoch = asInt(row[1])
			s.w.counters = counters{nextSeq: asInt(row[2]), front: asInt(row[3]), revision: asInt(row[4]), enqueued: asInt(row[5]), removed: asInt(row[6])}
			return nil
		})
	}
	err := c.tx(ctx, "BEGIN IMMEDIATE", func() error {
		if err := read(); err != nil {
			return err
		}
		if !found {
			fresh := make([]byte, aes.BlockSize)
			_, _ = crand.Read(fresh)
			if err := c.exec(ctx, sqlMetaCreate, fresh); err != nil {
				return err
			}
			if err := read(); err != nil {
				return err
			}
		}
		s.epoch++
		return c.exec(ctx, sqlMetaEpoch, s.epoch)
	})
	if err != nil {
		return err
	}
	if s.ids, err = newIDCodec(key); err != nil {
		return err
	}
	if len(scheduling) > 0 {
		if err := json.Unmarshal(scheduling, &s.scheduling); err != nil {
			return fmt.Errorf("the stored configuration of the queues: %w", err)
		}
	}
	return nil
}

// Close implements queue.Queue. What was submitted before is finished. Jobs that are still reserved count as crashed when
// the store is opened again; release them first.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		<-s.w.done
		return nil
	}
	s.closing = true
	close(s.closed)
	for seq := range s.watches {
		s.unwatch(seq)
	}
	s.mu.Unlock()
	s.w.submit(&step{done: make(chan error, 1), size: 1, run: func(g *group) error { return g.flushServed() }})
	s.w.stop()
	var idle []*conn
	for range readerCount { // whoever still reads gives his connection back
		idle = append(idle, <-s.readers)
	}
	var errs []error
	for _, c := range idle {
		errs = append(errs, c.close())
	}
	return errors.Join(append(errs, s.closeConns(), s.lock.release())...)
}

// closeConns closes the connections that are open; the writer's last, which moves the log into the database.
func (s *Store) closeConns() error {
	var errs []error
	if s.fetch != nil {
		errs = append(errs, s.fetch.close())
	}
	for {
		select {
		case c := <-s.readers:
			errs = append(errs, c.close())
			continue
		default:
		}
		break
	}
	return errors.Join(append(errs, s.w.c.close())...)
}
