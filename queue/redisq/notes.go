package redisq

import (
	"context"
	"fmt"

	"github.com/taskhost/taskhost/queue"
)

// note sends what a running handler says of itself; the reservation is its fence.
func (s *Store) note(ctx context.Context, ref queue.Ref, args ...any) error {
	id, ok := short(ref.ID)
	if !ok {
		return queue.ErrLeaseLost
	}
	v, err := s.numbered(ctx, "note", append([]any{string(ref.Token), id}, args...)...)
	if err != nil {
		return err
	}
	if asString(v) == "L" {
		return queue.ErrLeaseLost
	}
	return nil
}

// SetProgress implements queue.Notes.
func (s *Store) SetProgress(ctx context.Context, ref queue.Ref, p queue.Progress) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	return s.note(ctx, ref, "progress", p.Done, p.Total, p.Message)
}

// AppendLogs implements queue.Notes.
func (s *Store) AppendLogs(ctx context.Context, ref queue.Ref, lines []queue.LogLine) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	args := make([]any, 0, 2+3*len(lines))
	args = append(args, "log", s.limits.LogBytes)
	for _, l := range lines {
		if err := queue.ValidLogLevel(l.Level); err != nil {
			return err
		}
		var at any = ""
		if !l.At.IsZero() {
			at = l.At.UnixMilli()
		}
		level := l.Level
		if level == "" {
			level = "info"
		}
		args = append(args, at, level, queue.EscapeLogMessage(l.Message))
	}
	return s.note(ctx, ref, args...)
}

// PutCheckpoint implements queue.Notes.
func (s *Store) PutCheckpoint(ctx context.Context, ref queue.Ref, data []byte) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if len(data) > s.limits.CheckpointBytes {
		return &queue.LimitError{Field: "checkpoint", Limit: "checkpoint", Max: int64(s.limits.CheckpointBytes), Got: int64(len(data)), Unit: "bytes"}
	}
	return s.note(ctx, ref, "check", data)
}

// JobLogs implements queue.Notes.
func (s *Store) JobLogs(ctx context.Context, tenant, id string, after int64, limit int) (queue.LogPage, error) {
	var page queue.LogPage
	if err := s.enter(ctx); err != nil {
		return page, err
	}
	if limit < 0 {
		return page, &queue.InvalidError{Field: "limit", Reason: fmt.Sprintf("must be 0 or more lines, got %d", limit)}
	}
	if limit == 0 {
		limit = 1000
	}
	key, ok := short(id)
	if !ok {
		return page, queue.ErrNotFound
	}
	v, err := s.run(ctx, "logs", tenant, key, after, limit)
	if err != nil {
		return page, err
	}
	if v == nil {
		return page, queue.ErrNotFound
	}
	list, err := asList(v)
	if err != nil || len(list) == 0 {
		return page, fmt.Errorf("%w: redis answered nothing for a log", queue.ErrUnavailable)
	}
	page.Truncated = asInt(list[0]) == 1
	for _, line := range list[1:] {
		m, err := unpackMap(asString(line))
		if err != nil {
			return page, fmt.Errorf("log of %s: %w", id, err)
		}
		page.Lines = append(page.Lines, queue.LogLine{Seq: m.int("s"), Run: int(m.int("r")), Attempt: int(m.int("a")), At: millis(m.int("t")),
			Level: m.str("l"), Message: m.str("m")})
	}
	return page, nil
}
