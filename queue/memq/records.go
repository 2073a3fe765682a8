package memq

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

type recordKey struct{ kind, key string }

type namedLease struct {
	holder string
	until  time.Time
}

// AcquireLease implements queue.Leaser.
func (s *Store) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	if err := cmp.Or(notEmpty("name", name), notEmpty("holder", holder), queue.ValidLease(ttl)); err != nil {
		return false, err
	}
	now := s.now()
	held := s.leases[name]
	if now.Before(held.until) && held.holder != holder {
		return false, nil
	}
	s.leases[name] = namedLease{holder: holder, until: queue.After(now, ttl)}
	return true, nil
}

// ReleaseLease implements queue.Leaser.
func (s *Store) ReleaseLease(ctx context.Context, name, holder string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.leases[name].holder == holder {
		delete(s.leases, name)
	}
	return nil
}

// GetRecord implements queue.Records.
func (s *Store) GetRecord(ctx context.Context, kind, key string) (queue.Record, error) {
	if err := s.lock(ctx); err != nil {
		return queue.Record{}, err
	}
	defer s.mu.Unlock()
	r, ok := s.records[recordKey{kind, key}]
	if !ok {
		return queue.Record{}, queue.ErrNotFound
	}
	return copyRecord(r), nil
}

// PutRecord implements queue.Records.
func (s *Store) PutRecord(ctx context.Context, kind, key string, value []byte, ifRevision int64) (int64, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if err := cmp.Or(notEmpty("kind", kind), notEmpty("key", key)); err != nil {
		return 0, err
	}
	// A record that does not exist has revision 0.
	if have := s.records[recordKey{kind, key}].Revision; ifRevision != queue.AnyRevision && ifRevision != have {
		return 0, fmt.Errorf("%w: %s %q has revision %d, not %d", queue.ErrConflict, kind, key, have, ifRevision)
	}
	s.revision++
	s.records[recordKey{kind, key}] = queue.Record{Key: key, Value: bytes.Clone(value), Revision: s.revision}
	return s.revision, nil
}

// DeleteRecord implements queue.Records.
func (s *Store) DeleteRecord(ctx context.Context, kind, key string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if _, ok := s.records[recordKey{kind, key}]; !ok {
		return queue.ErrNotFound
	}
	delete(s.records, recordKey{kind, key})
	return nil
}

// ListRecords implements queue.Records.
func (s *Store) ListRecords(ctx context.Context, kind, prefix, after string, limit int) ([]queue.Record, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if limit < 0 {
		return nil, &queue.InvalidError{Field: "limit", Reason: fmt.Sprintf("must be 0 or more records, got %d", limit)}
	}
	if limit == 0 {
		limit = 1000
	}
	var list []queue.Record
	for key, r := range s.records {
		if key.kind == kind && strings.HasPrefix(key.key, prefix) && key.key > after {
			list = append(list, copyRecord(r))
		}
	}
	slices.SortFunc(list, func(a, b queue.Record) int { return cmp.Compare(a.Key, b.Key) })
	return list[:min(limit, len(list))], nil
}

func copyRecord(r queue.Record) queue.Record {
	r.Value = bytes.Clone(r.Value)
	return r
}

func notEmpty(field, value string) error {
	if value == "" {
		return &queue.InvalidError{Field: field, Reason: "must not be empty"}
	}
	return nil
}
