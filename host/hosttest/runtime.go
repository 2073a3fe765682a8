package hosttest

import (
	"context"
	"sync"

	"github.com/taskhost/taskhost/handlers"
)

// Runtime is a bare handlers.Runtime and handlers.Admitter: it enforces nothing, and does what its functions say. Nil functions
// succeed.
type Runtime struct {
	RuntimeName string // default "func"
	Fn          func(ctx context.Context, inv *handlers.Invocation) handlers.Outcome
	PrepareFn   func(ctx context.Context, v *handlers.Version, source func(context.Context) ([]byte, error)) error
	AdmitFn     func(ctx context.Context, req handlers.AdmitRequest) (*handlers.Admission, error)

	mu       sync.Mutex
	prepared []handlers.Version
	admitted int
}

var (
	_ handlers.Runtime  = (*Runtime)(nil)
	_ handlers.Admitter = (*Runtime)(nil)
)

// Name is RuntimeName.
func (r *Runtime) Name() string {
	if r.RuntimeName == "" {
		return "func"
	}
	return r.RuntimeName
}

// Slots is 4.
func (r *Runtime) Slots() int { return 4 }

// Invoke calls Fn.
func (r *Runtime) Invoke(ctx context.Context, inv *handlers.Invocation) handlers.Outcome {
	if r.Fn == nil {
		return handlers.Outcome{Kind: handlers.OutcomeSucceeded}
	}
	return r.Fn(ctx, inv)
}

// Prepare calls PrepareFn, and notes the version when that succeeds.
func (r *Runtime) Prepare(ctx context.Context, v *handlers.Version, source func(context.Context) ([]byte, error)) error {
	if r.PrepareFn != nil {
		if err := r.PrepareFn(ctx, v, source); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prepared = append(r.prepared, *v)
	return nil
}

// Admit counts, and calls AdmitFn.
func (r *Runtime) Admit(ctx context.Context, req handlers.AdmitRequest) (*handlers.Admission, error) {
	r.mu.Lock()
	r.admitted++
	r.mu.Unlock()
	if r.AdmitFn == nil {
		return &handlers.Admission{SizeBytes: len(req.Module), Kind: handlers.KindCommand}, nil
	}
	return r.AdmitFn(ctx, req)
}

// Prepared returns the versions that were prepared, in order.
func (r *Runtime) Prepared() []handlers.Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]handlers.Version(nil), r.prepared...)
}

// Admitted is how often Admit was called.
func (r *Runtime) Admitted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.admitted
}
