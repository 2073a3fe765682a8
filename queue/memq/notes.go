package memq

import (
	"context"
	"fmt"

	"github.com/taskhost/taskhost/queue"
)

// SetProgress implements queue.Notes.
func (s *Store) SetProgress(ctx context.Context, ref queue.Ref, p queue.Progress) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r := s.held(ref)
	if r == nil {
		return queue.ErrLeaseLost
	}
	p.At = s.now()
	r.job.Progress = &p
	s.touch(r)
	return nil
}

// AppendLogs implements queue.Notes.
func (s *Store) AppendLogs(ctx context.Context, ref queue.Ref, lines []queue.LogLine) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, line := range lines {
		if err := queue.ValidLogLevel(line.Level); err != nil {
			return err
		}
	}
	r := s.held(ref)
	if r == nil {
		return queue.ErrLeaseLost
	}
	if r.logSizes == nil {
		r.logSizes, r.logFull = map[attemptKey]int{}, map[attemptKey]bool{}
	}
	attempt := attemptKey{r.job.Run, r.job.Attempt}
	for _, line := range lines {
		line.Message = queue.EscapeLogMessage(line.Message)
		if r.logFull[attempt] || r.logSizes[attempt]+len(line.Message) > s.limits.LogBytes {
			r.logFull[attempt] = true
			continue
		}
		r.logSizes[attempt] += len(line.Message)
		r.logSeq++
		line.Seq, line.Run, line.Attempt = r.logSeq, attempt.run, attempt.attempt
		if line.Level == "" {
			line.Level = "info"
		}
		line.At = queue.Millis(line.At)
		if line.At.IsZero() {
			line.At = s.now()
		}
		r.logs = append(r.logs, line)
	}
	s.touch(r)
	return nil
}

// PutCheckpoint implements queue.Notes.
func (s *Store) PutCheckpoint(ctx context.Context, ref queue.Ref, data []byte) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if len(data) > s.limits.CheckpointBytes {
		return &queue.LimitError{Field: "checkpoint", Limit: "checkpoint", Max: int64(s.limits.CheckpointBytes),
			Got: int64(len(data)), Unit: "bytes"}
	}
	r := s.held(ref)
	if r == nil {
		return queue.ErrLeaseLost
	}
	r.job.Checkpoint = data
	s.touch(r)
	return nil
}

// JobLogs implements queue.Notes.
func (s *Store) JobLogs(ctx context.Context, tenant, id string, after int64, limit int) (queue.LogPage, error) {
	if err := s.lock(ctx); err != nil {
		return queue.LogPage{}, err
	}
	defer s.mu.Unlock()
	if limit < 0 {
		return queue.LogPage{}, &queue.InvalidError{Field: "limit", Reason: fmt.Sprintf("must be 0 or more lines, got %d", limit)}
	}
	if limit == 0 {
		limit = 1000
	}
	r := s.find(tenant, id)
	if r == nil {
		return queue.LogPage{}, queue.ErrNotFound
	}
	page := queue.LogPage{Truncated: len(r.logFull) > 0}
	for _, line := range r.logs {
		if line.Seq > after && len(page.Lines) < limit {
			page.Lines = append(page.Lines, line)
		}
	}
	return page, nil
}
