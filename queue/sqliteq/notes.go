package sqliteq

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/taskhost/taskhost/queue"
)

// note runs change on the state of a job that ref holds, and stores it.
func (s *Store) note(ctx context.Context, ref queue.Ref, change func(g *group, t *step, r *running, st *state) error) error {
	parsed := s.parseRef(ref)
	return s.step(ctx, func(g *group, t *step) error {
		r, err := s.claimRunning(t, func(r *running) bool { return s.held(parsed) == r }, parsed.seq)
		if err != nil {
			return err
		}
		if r == nil {
			return answer(queue.ErrLeaseLost)
		}
		st := r.st.clone()
		if err := change(g, t, r, st); err != nil {
			return err
		}
		t.then = append(t.then, func() {
			r.st = st
			s.notify(r.seq)
		})
		return g.exec(sqlJobState, st.encode(), r.seq)
	})
}

// SetProgress implements queue.Notes.
func (s *Store) SetProgress(ctx context.Context, ref queue.Ref, p queue.Progress) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	return s.note(ctx, ref, func(g *group, _ *step, _ *running, st *state) error {
		p.At = g.now
		st.progress = &p
		return nil
	})
}

// PutCheckpoint implements queue.Notes.
func (s *Store) PutCheckpoint(ctx context.Context, ref queue.Ref, data []byte) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if len(data) > s.limits.CheckpointBytes {
		return &queue.LimitError{Field: "checkpoint", Limit: "checkpoint", Max: int64(s.limits.CheckpointBytes),
			Got: int64(len(data)), Unit: "bytes"}
	}
	return s.note(ctx, ref, func(g *group, t *step, r *running, st *state) error {
		st.set(stateCheckpoint, true)
		t.then = append(t.then, func() { r.checkpoint = data })
		return g.exec(sqlBlobPut, 4*r.seq+blobCheckpoint, orEmpty(data))
	})
}

// AppendLogs implements queue.Notes.
func (s *Store) AppendLogs(ctx context.Context, ref queue.Ref, lines []queue.LogLine) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	messages := make([]string, len(lines))
	for i := range lines {
		if err := queue.ValidLogLevel(lines[i].Level); err != nil {
			return err
		}
		messages[i] = queue.EscapeLogMessage(lines[i].Message)
	}
	return s.note(ctx, ref, func(g *group, t *step, r *running, st *state) error {
		attempt := st.attempt + 1
		size := r.logBytes
		if size < 0 { // the attempt may have a log from before a crash
			err := g.query(sqlLogSize, func(row []driver.Value) error {
				size = int(asInt(row[0]))
				return nil
			}, r.seq, int64(st.run), int64(attempt))
			if err != nil {
				return err
			}
		}
		for i, line := range lines {
			if st.cutRun == st.run && st.cutAttempt == attempt || size+len(messages[i]) > s.limits.LogBytes {
				st.cutRun, st.cutAttempt = st.run, attempt
				break
			}
			size += len(messages[i])
			st.logSeq++
			st.set(stateLogs, true)
			at := queue.Millis(line.At)
			if at.IsZero() {
				at = g.now
			}
			level := line.Level
			if level == "" {
				level = "info"
			}
			if err := g.exec(sqlLogInsert, r.seq, st.logSeq, int64(st.run), int64(attempt), at.UnixMilli(), level, messages[i]); err != nil {
				return err
			}
		}
		t.then = append(t.then, func() { r.logBytes = size })
		return nil
	})
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
	b, seq, ok := s.ids.parse(id)
	if !ok {
		return page, queue.ErrNotFound
	}
	err := s.read(ctx, func(c *conn) error {
		v, err := s.find(ctx, c, tenant, b, seq) // a running job has its row too, with its state as stored
		if err != nil {
			return err
		}
		ok = v != nil
		if !ok {
			return nil
		}
		page.Truncated = v.st.cutRun > 0
		return c.query(ctx, sqlLogsRead, func(row []driver.Value) error {
			page.Lines = append(page.Lines, queue.LogLine{Seq: asInt(row[0]), Run: int(asInt(row[1])), Attempt: int(asInt(row[2])),
				At: fromMillis(asInt(row[3])), Level: asString(row[4]), Message: asString(row[5])})
			return nil
		}, seq, after, int64(limit))
	})
	if err == nil && !ok {
		err = queue.ErrNotFound
	}
	return page, err
}
