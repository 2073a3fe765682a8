package redisq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
)

func notEmpty(field, value string) error {
	if value == "" {
		return &queue.InvalidError{Field: field, Reason: "must not be empty"}
	}
	return nil
}

// AcquireLease implements queue.Leaser.
func (s *Store) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	if err := s.enter(ctx); err != nil {
		return false, err
	}
	if err := cmp.Or(notEmpty("name", name), notEmpty("holder", holder), queue.ValidLease(ttl)); err != nil {
		return false, err
	}
	var px any = ""
	if s.clock == nil {
		px = ceilMillis(ttl)
	}
	v, err := s.run(ctx, "lease", name, holder, ceilMillis(ttl), px)
	return asInt(v) == 1, err
}

// ReleaseLease implements queue.Leaser.
func (s *Store) ReleaseLease(ctx context.Context, name, holder string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	_, err := s.run(ctx, "lease", name, holder, 0, "")
	return err
}

func decodeStored(key, text string) (queue.Record, error) {
	m, err := unpackMap(text)
	if err != nil {
		return queue.Record{}, fmt.Errorf("%w: record %q: %w", queue.ErrUnavailable, key, err)
	}
	return queue.Record{Key: key, Value: []byte(m.str("v")), Revision: m.int("r")}, nil
}

// GetRecord implements queue.Records.
func (s *Store) GetRecord(ctx context.Context, kind, key string) (queue.Record, error) {
	if err := s.enter(ctx); err != nil {
		return queue.Record{}, err
	}
	text, err := s.client.HGet(ctx, s.prefix+keyRecord+kind, key).Result()
	if errors.Is(err, redis.Nil) {
		return queue.Record{}, queue.ErrNotFound
	}
	if err != nil {
		return queue.Record{}, s.failure(ctx, "hget", err)
	}
	return decodeStored(key, text)
}

// PutRecord implements queue.Records.
func (s *Store) PutRecord(ctx context.Context, kind, key string, value []byte, ifRevision int64) (int64, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	if err := cmp.Or(notEmpty("kind", kind), notEmpty("key", key)); err != nil {
		return 0, err
	}
	if value == nil {
		value = []byte{}
	}
	v, err := s.numbered(ctx, "putrecord", kind, key, value, ifRevision)
	if err != nil {
		return 0, err
	}
	list, err := asList(v)
	if err != nil || len(list) != 2 {
		return 0, fmt.Errorf("%w: redis answered a record with %d values", queue.ErrUnavailable, len(list))
	}
	if asInt(list[0]) == 0 {
		return 0, fmt.Errorf("%w: %s %q has revision %d, not %d", queue.ErrConflict, kind, key, asInt(list[1]), ifRevision)
	}
	return asInt(list[1]), nil
}

// DeleteRecord implements queue.Records.
func (s *Store) DeleteRecord(ctx context.Context, kind, key string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	v, err := s.numbered(ctx, "deleterecord", kind, key)
	if err == nil && asInt(v) == 0 {
		return queue.ErrNotFound
	}
	return err
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
	from := "[" + prefix
	if after >= prefix && after != "" {
		from = "(" + after
	}
	v, err := s.run(ctx, "records", kind, prefix, from, limit)
	if err != nil {
		return nil, err
	}
	list, err := asList(v)
	if err != nil || len(list)%2 != 0 {
		return nil, fmt.Errorf("%w: redis listed records with %d values", queue.ErrUnavailable, len(list))
	}
	var records []queue.Record
	for k := 0; k < len(list); k += 2 {
		r, err := decodeStored(asString(list[k]), asString(list[k+1]))
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}
