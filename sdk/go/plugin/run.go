package plugin

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	pb "github.com/taskhost/taskhost/sdk/go/plugin/internal/handlerpb"
	"google.golang.org/protobuf/proto"
)

// running is an attempt from its first byte to its end.
type running struct {
	s      *server
	id     uint64
	start  *pb.Start
	total  int
	body   []byte // metadata, payload and checkpoint; complete when it has total bytes
	ctx    context.Context
	cancel context.CancelCauseFunc
	job    *Job // set when the body is complete
}

func newRunning(s *server, id uint64, start *pb.Start) *running {
	r := &running{s: s, id: id, start: start}
	r.total = int(start.GetMetadataBytes()) + int(start.GetPayloadBytes()) + int(start.GetCheckpointBytes())
	if r.body = start.GetBody(); len(r.body) < r.total {
		r.body = append(make([]byte, 0, r.total), r.body...)
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return r
}

func (r *running) missing() int { return r.total - len(r.body) }

// prepare makes the job of a complete body.
func (r *running) prepare() error {
	n, p := int(r.start.GetMetadataBytes()), int(r.start.GetPayloadBytes())
	meta := &pb.Metadata{}
	if err := proto.Unmarshal(r.body[:n], meta); err != nil {
		return fmt.Errorf("metadata of attempt %d: %w", r.id, err)
	}
	r.job = &Job{
		s: r.s, id: r.id, meta: meta, limits: r.start.GetLimits(), payload: r.body[n : n+p : n+p],
		deadline: time.Unix(0, r.start.GetDeadlineUnixNano()), replies: make(chan Errno, 1),
	}
	if r.start.GetHasCheckpoint() {
		r.job.checkpoint, r.job.hasCheckpoint = r.body[n+p:], true
	}
	return nil
}

// run runs the attempt and sends its end.
func (r *running) run() {
	began := time.Now()
	ctx, stop := context.WithDeadline(r.ctx, r.job.deadline)
	r.job.ctx = ctx
	result, err := r.call(ctx)
	done, result := r.end(ctx, result, err)
	stop()
	r.cancel(nil)
	r.job.mu.Lock()
	r.job.over = true
	r.job.mu.Unlock()
	done.DurationNano = uint64(time.Since(began))
	done.OutputBytes = uint32(len(result))
	done.LogLines = r.s.logs.sequence()
	r.s.finish(r, &doneItem{id: r.id, parts: parts{result}, done: done})
}

// call runs the handler of the type. A panic becomes an error, as it would if the handler ran alone.
func (r *running) call(ctx context.Context) (result []byte, err error) {
	h := r.s.handlers.find(r.job.Type())
	if h == nil {
		return nil, Permanent(fmt.Errorf("this plugin serves %s and not the type %q", strings.Join(r.s.handlers.types(), ", "), r.job.Type()))
	}
	defer func() {
		if p := recover(); p != nil {
			for line := range strings.Lines(string(debug.Stack())) {
				r.job.Log(LevelError, strings.TrimRight(line, "\n"))
			}
			result, err = nil, Retry(fmt.Errorf("panic: %s", fmt.Sprint(p)))
		}
	}()
	return h(ctx, r.job)
}

// end translates what the handler returned.
func (r *running) end(ctx context.Context, result []byte, err error) (*pb.Done, []byte) {
	done := &pb.Done{RetryAfterMs: -1}
	limit := int(r.start.GetLimits().GetResultBytes())
	var marked *Error
	switch {
	case err == nil && len(result) <= limit:
		done.Outcome = pb.Outcome_OUTCOME_SUCCEEDED
		return done, result
	case err == nil:
		err = fmt.Errorf("the result has %d bytes, the limit is %d bytes", len(result), limit)
		done.Outcome, done.ErrorKind = pb.Outcome_OUTCOME_PERMANENT, "result_too_large"
	case errors.As(err, &marked) && marked.Kind == KindPermanent:
		done.Outcome, done.ErrorKind = pb.Outcome_OUTCOME_PERMANENT, "permanent"
	case marked != nil && marked.Kind == KindDefer:
		done.Outcome, done.ErrorKind, done.RetryAfterMs = pb.Outcome_OUTCOME_DEFER, "retryable", milliseconds(marked.After)
	case errors.Is(context.Cause(ctx), ErrStopped):
		done.Outcome, done.ErrorKind = pb.Outcome_OUTCOME_INTERRUPTED, "interrupted"
	case ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded):
		done.Outcome, done.ErrorKind = pb.Outcome_OUTCOME_RETRY, "deadline"
	default:
		done.Outcome, done.ErrorKind = pb.Outcome_OUTCOME_RETRY, "retryable"
		if marked != nil && marked.After >= 0 {
			done.RetryAfterMs = milliseconds(marked.After)
		}
	}
	done.ErrorMessage = cut(err.Error(), maxErrorMessage)
	return done, nil
}

// milliseconds rounds up, so that a handler never runs sooner than it asked.
func milliseconds(d time.Duration) int64 {
	return int64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}
