package sqliteq

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"

	"github.com/taskhost/taskhost/queue"
)

const (
	fetchMax   = 256     // jobs read at once
	fetchBytes = 4 << 20 // and about so many bytes
)

// fetched is a record that was read for a reservation.
type fetched struct {
	entry
	damaged bool
	reading int64 // number of the reading
}

// fetchFirst is how many jobs the first reading for a line takes, and fetchGrowth how the next ones grow: a long batch
// from one line needs few readings, one from many lines reads little that it does not need.
const (
	fetchFirst  = 8
	fetchGrowth = 8
)

// fetcher reads the records of waiting jobs that are not in the cache, on its own connection.
type fetcher struct {
	mu    sync.Mutex
	c     *conn // nil once closed
	path  string
	texts map[int]string
}

const selectRecords = "SELECT seq, birth, expires_at, record, state FROM jobs WHERE seq IN "

// want returns the first jobs of a line whose records are not in memory, and marks them as being read. The mark goes when
// somebody reserves the job or ends it; what was read is current while the mark is there and no younger than the
// reading. With s.mu held.
func (r *reservation) want(l *line) []int64 {
	s := r.s
	if r.misses == nil {
		r.misses = make(map[*line]int)
	}
	n := fetchFirst
	for range r.misses[l] {
		n = min(n*fetchGrowth, fetchMax)
	}
	r.misses[l]++
	if r.aside == 0 { // else nobody knows how many of them will do
		n = min(n, r.p.Max-len(r.views))
	}
	s.lastFetch++
	want := make([]int64, 0, n)
	if seq := l.front(s.gone); s.sidesteps[seq] != nil { // the others are in no order
		want = append(want, seq)
		if _, marked := s.fetching[seq]; !marked {
			s.fetching[seq] = s.lastFetch
		}
		n = 1
	}
	for seq := range l.all() {
		if len(want) == n {
			break
		}
		if _, dead := s.gone[seq]; dead {
			continue
		}
		if _, ok := s.cache.get(seq); ok && len(want) > 0 {
			break
		}
		want = append(want, seq)
		if _, marked := s.fetching[seq]; !marked {
			s.fetching[seq] = s.lastFetch
		}
	}
	r.wanted = append(r.wanted, want...)
	return want
}

// current reports whether f is what a waiting job's row says now; with s.mu held.
func (s *Store) current(seq int64, f fetched) bool {
	since, marked := s.fetching[seq]
	return marked && since <= f.reading
}

// read reads what take wanted.
func (r *reservation) read(ctx context.Context, seqs []int64) error {
	r.s.mu.Lock()
	reading := r.s.lastFetch
	r.s.mu.Unlock()
	found, err := r.s.fetch.load(ctx, seqs)
	if err != nil {
		return err
	}
	if r.fetched == nil {
		r.fetched = found
	}
	for seq, f := range found {
		f.reading = reading
		r.fetched[seq] = f
	}
	return nil
}

// endFetch keeps what was read and not needed, and forgets the marks.
func (r *reservation) endFetch() {
	if len(r.wanted) == 0 {
		return
	}
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seq := range r.wanted {
		if f, read := r.fetched[seq]; read && !f.damaged && s.current(seq, f) {
			s.cache.putSoon(seq, f.entry)
		}
		delete(s.fetching, seq)
	}
}

// load reads the given jobs; those that do not fit into fetchBytes are left out, but not the first.
func (f *fetcher) load(ctx context.Context, seqs []int64) (map[int64]fetched, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.c == nil {
		return nil, queue.ErrClosed
	}
	found := make(map[int64]fetched, len(seqs))
	each := func(row []driver.Value) error {
		e := fetched{entry: entry{birth: birth(asInt(row[1])), expiresAt: asInt(row[2]), record: asBytes(row[3])}}
		var err error
		if _, err = decodeRecord(e.record); err == nil {
			e.st, err = decodeState(asBytes(row[4]))
		}
		e.damaged = err != nil || !isInt(row[1])
		found[asInt(row[0])] = e
		return nil //nolint:nilerr // damage of one record is noted with it
	}
	args := make([]driver.Value, len(seqs))
	for i, seq := range seqs {
		args[i] = seq
	}
	for _, size := range rowSizes {
		for len(args) >= size {
			if err := f.c.query(ctx, f.text(size), each, args[:size]...); err != nil {
				return nil, f.failed(ctx, err)
			}
			args = args[size:]
		}
	}
	size := 0
	for _, seq := range seqs {
		e, ok := found[seq]
		if !ok {
			// Nothing but a damaged database loses a row.
			found[seq] = fetched{damaged: true}
			continue
		}
		if !e.damaged {
			if err := f.blobs(ctx, seq, &e); err != nil {
				return nil, f.failed(ctx, err)
			}
			found[seq] = e
			if size += e.size(); size > fetchBytes && len(found) > 1 {
				f.leaveOut(found, seqs, seq)
				break
			}
		}
	}
	return found, nil
}

// leaveOut removes what comes behind last: its blobs are not read yet.
func (f *fetcher) leaveOut(found map[int64]fetched, seqs []int64, last int64) {
	behind := false
	for _, seq := range seqs {
		if behind {
			delete(found, seq)
		}
		behind = behind || seq == last
	}
}

// blobs reads what does not live in the row.
func (f *fetcher) blobs(ctx context.Context, seq int64, e *fetched) error {
	var err error
	if recordFlags(e.record)&recordLarge != 0 {
		if e.payload, err = readBlob(ctx, f.c, seq, blobPayload); err != nil {
			return err
		}
		if len(e.payload) != recordPayloadBytes(e.record) {
			e.damaged = true
		}
	}
	if e.st.has(stateCheckpoint) {
		e.checkpoint, err = readBlob(ctx, f.c, seq, blobCheckpoint)
	}
	return err
}

func readBlob(ctx context.Context, c *conn, seq int64, kind int64) (data []byte, err error) {
	err = c.query(ctx, sqlBlobRead, func(row []driver.Value) error {
		data = asBytes(row[0])
		if data == nil {
			data = []byte{}
		}
		return nil
	}, 4*seq+kind)
	return data, err
}

func (f *fetcher) text(n int) string {
	t, ok := f.texts[n]
	if !ok {
		t = selectRecords + "(" + strings.Repeat("?,", n-1) + "?)"
		f.texts[n] = t
	}
	return t
}

func (f *fetcher) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %s: %w", queue.ErrUnavailable, f.path, err)
}

func (f *fetcher) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.c
	f.c = nil
	return c.close()
}
