package sqliteq

import (
	"bytes"
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/taskhost/taskhost/queue"
)

type namedLease struct {
	holder string
	until  time.Time
}

// AcquireLease implements queue.Leaser. Named leases live in memory: one process owns the store, and when it is gone so
// is every holder.
func (s *Store) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	if err := s.enter(ctx); err != nil {
		return false, err
	}
	if err := cmp.Or(notEmpty("name", name), notEmpty("holder", holder), queue.ValidLease(ttl)); err != nil {
		return false, err
	}
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.leases[name]
	if now.Before(held.until) && held.holder != holder {
		return false, nil
	}
	s.leases[name] = namedLease{holder: holder, until: queue.After(now, ttl)}
	return true, nil
}

// ReleaseLease implements queue.Leaser.
func (s *Store) ReleaseLease(ctx context.Context, name, holder string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[name].holder == holder {
		delete(s.leases, name)
	}
	return nil
}

func notEmpty(field, value string) error {
	if value == "" {
		return &queue.InvalidError{Field: field, Reason: "must not be empty"}
	}
	return nil
}

// GetRecord implements queue.Records.
func (s *Store) GetRecord(ctx context.Context, kind, key string) (queue.Record, error) {
	if err := s.enter(ctx); err != nil {
		return queue.Record{}, err
	}
	r, found := queue.Record{Key: key}, false
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, sqlRecordRead, func(row []driver.Value) error {
			r.Value, r.Revision, found = asBytes(row[0]), asInt(row[1]), true
			return nil
		}, kind, key)
	})
	if err == nil && !found {
		err = queue.ErrNotFound
	}
	if err != nil {
		return queue.Record{}, err
	}
	return r, nil
}

// PutRecord implements queue.Records.
func (s *Store) PutRecord(ctx context.Context, kind, key string, value []byte, ifRevision int64) (int64, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	if err := cmp.Or(notEmpty("kind", kind), notEmpty("key", key)); err != nil {
		return 0, err
	}
	value = bytes.Clone(orEmpty(value))
	var revision int64
	err := s.step(ctx, func(g *group, _ *step) error {
		have, err := g.revision(kind, key)
		if err != nil {
			return err
		}
		if ifRevision != queue.AnyRevision && ifRevision != have {
			return answer(fmt.Errorf("%w: %s %q has revision %d, not %d", queue.ErrConflict, kind, key, have, ifRevision))
		}
		g.counters.revision++
		revision = g.counters.revision
		return g.exec(sqlRecordPut, kind, key, revision, value)
	})
	if err != nil {
		return 0, err
	}
	return revision, nil
}

// revision of a record, 0 when it does not exist.
func (g *group) revision(kind, key string) (revision int64, err error) {
	err = g.query(sqlRecordRead, func(row []driver.Value) error {
		revision = asInt(row[1])
		return nil
	}, kind, key)
	return revision, err
}

// DeleteRecord implements queue.Records.
func (s *Store) DeleteRecord(ctx context.Context, kind, key string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	return s.step(ctx, func(g *group, _ *step) error {
		have, err := g.revision(kind, key)
		if err != nil {
			return err
		}
		if have == 0 {
			return answer(queue.ErrNotFound)
		}
		return g.exec(sqlRecordDelete, kind, key)
	})
}

// ListRecords implements queue.Records.
func (s *Store) ListRecords(ctx context.Context, kind, prefix, after string, limit int) ([]queue.Record, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if limit < 0 {
		return nil, &queue.InvalidError{Field: "limit", Reason: fmt.Sprintf("must be 0 or more records, got %d", limit)}
	}
	if limit == 0 {
		limit = 1000
	}
	var list []queue.Record
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, sqlRecordsList, func(row []driver.Value) error {
			list = append(list, queue.Record{Key: asString(row[0]), Value: asBytes(row[1]), Revision: asInt(row[2])})
			return nil
		}, kind, after, prefix, int64(limit))
	})
	return list, err
}
