package httpapi

import (
	"context"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// WaitParam is the query parameter of requests that may wait for a job.
type WaitParam struct {
	Wait string `query:"wait" doc:"wait up to so long, at most 55s (which wait without a value means), for the job to finish; the status of the answer does not depend on it" example:"30s"`
}

// bareParam is the value of a query parameter that is given without one, as in ?wait.
const bareParam = "true"

func (w WaitParam) duration() (time.Duration, error) {
	switch w.Wait {
	case "":
		return 0, nil
	case bareParam:
		return waitMax, nil
	}
	return parseDuration("wait", w.Wait, 0, waitMax)
}

// await returns the job as soon as it is terminal, or has more than attempts recorded attempts (when that is not
// negative), or the wait is over, the caller is gone or the server stops: then as it is.
func (s *Server) await(ctx context.Context, tenant, id string, wait time.Duration, attempts int) (*queue.Job, error) {
	enough := func(j *queue.Job) bool {
		return j.State.Terminal() || attempts >= 0 && len(j.Attempts) > attempts
	}
	// Subscribing first makes sure that no change falls between the look and the wait.
	watch, err := s.opt.Store.WatchJob(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	defer watch.Stop()
	job, err := s.opt.Store.GetJob(ctx, tenant, id)
	if err != nil || enough(job) {
		return job, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case _, open := <-watch.C:
			if job, err = s.opt.Store.GetJob(ctx, tenant, id); err != nil || enough(job) || !open {
				return job, err
			}
		case <-timer.C:
			return s.opt.Store.GetJob(ctx, tenant, id)
		case <-s.stopping.Done():
			return s.opt.Store.GetJob(ctx, tenant, id)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
