package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Bounds of readiness.
const (
	// readyTTL is how long a round of probes is reused, so that many probers cost the store nothing.
	readyTTL = time.Second
	// probeTimeout is what one round of probes may take.
	probeTimeout = 2 * time.Second
)

// Health is the answer of a probe.
type Health struct {
	Status string   `json:"status" enum:"ok" example:"ok"`
	Checks []string `json:"checks,omitempty" doc:"what was checked"`
	// Sandbox is the lock-down of the processes that run handlers.
	Sandbox string `json:"sandbox,omitempty" enum:"off,basic,standard,strict" doc:"how far the kernel confines the processes that run handlers"`
	// Degraded is what does not work and keeps only some jobs from running.
	Degraded []string `json:"degraded,omitempty" doc:"what does not work, while everything else does, e.g. a plugin that does not start"`
}

type healthAnswer struct {
	CacheControl string `header:"Cache-Control"`
	Body         Health
}

type versionAnswer struct{ Body Version }

func (s *Server) healthRoutes() {
	register(s, route{
		id: "livez", method: http.MethodGet, path: "/livez", tag: "health", public: true, summary: "The process serves requests",
	}, func(context.Context, *struct{}) (*healthAnswer, error) {
		return &healthAnswer{CacheControl: "no-store", Body: Health{Status: "ok"}}, nil
	})
	register(s, route{
		id: "readyz", method: http.MethodGet, path: "/readyz", tag: "health", public: true,
		summary: "Everything that is needed to take and run jobs is there; 503 names what is not",
	}, s.readyz)
	register(s, route{
		id: "get-version", method: http.MethodGet, path: "/v1/version", tag: "health", summary: "What is running here",
	}, func(_ context.Context, _ *struct{ call }) (*versionAnswer, error) {
		return &versionAnswer{Body: s.opt.Version}, nil
	})
}

func (s *Server) readyz(ctx context.Context, _ *struct{}) (*healthAnswer, error) {
	faults, degraded := s.ready.check(ctx)
	if s.stopping.Err() != nil {
		faults = append([]string{"server: stopping"}, faults...)
	}
	if len(faults) > 0 {
		p := newProblem(CodeUnavailable, "not ready: %s", strings.Join(faults, "; "))
		p.Details = faults
		p.RetryAfterMS = readyTTL.Milliseconds()
		return nil, p
	}
	health := Health{Status: "ok", Sandbox: s.opt.Sandbox, Degraded: degraded}
	for _, p := range s.ready.probes {
		health.Checks = append(health.Checks, p.Name)
	}
	return &healthAnswer{CacheControl: "no-store", Body: health}, nil
}

// readiness runs the probes, one round at a time, and remembers the last round.
type readiness struct {
	probes []Probe

	mu       sync.Mutex
	at       time.Time
	faults   []string
	degraded []string
}

// check returns what is not ready, and what is no more than advisory of it, each as "name: reason".
func (r *readiness) check(ctx context.Context) (faults, degraded []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && time.Since(r.at) < readyTTL {
		return r.faults, r.degraded
	}
	// The round serves all who wait for it, so it does not end with the request that began it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	r.faults, r.degraded = nil, nil
	for _, p := range r.probes {
		err := p.Check(ctx)
		switch {
		case err == nil:
		case p.Advisory:
			r.degraded = append(r.degraded, fmt.Sprintf("%s: %v", p.Name, err))
		default:
			r.faults = append(r.faults, fmt.Sprintf("%s: %v", p.Name, err))
		}
	}
	r.at = time.Now()
	return r.faults, r.degraded
}
