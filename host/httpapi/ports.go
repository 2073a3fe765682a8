package httpapi

import (
	"context"
	"net/http"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/queue"
)

// Store is the part of a queue engine that the API uses.
type Store interface {
	Enqueue(ctx context.Context, specs []queue.JobSpec) ([]queue.EnqueueOutcome, error)
	queue.Jobs
	queue.Explainer
	queue.Queues
	JobLogs(ctx context.Context, tenant, id string, after int64, limit int) (queue.LogPage, error)
	ReplayDead(ctx context.Context, f queue.DeadFilter, toQueue string, limit int) (queue.DeadChunk, error)
}

// Types answers which version serves a type; *handlers.Registry is one.
type Types interface {
	// Resolve returns an error wrapping handlers.ErrNoHandler when there is none.
	Resolve(tenant, typ string) (*handlers.Version, error)
}

// Authenticator says whose request it is.
type Authenticator interface {
	// Tenant returns the tenant of the request, or a *Problem of code unauthorized or forbidden.
	Tenant(r *http.Request) (string, error)
	// Login reports whether requests must prove who they are. A server without login listens on loopback only, unless
	// Options.AllowRemote says otherwise.
	Login() bool
}

// Anonymous is the Authenticator of a server without login: every request is of one tenant.
type Anonymous string

// Tenant returns the one tenant.
func (a Anonymous) Tenant(*http.Request) (string, error) { return string(a), nil }

// Login reports false.
func (Anonymous) Login() bool { return false }

// Probe is one condition of readiness. Check returns nil when it holds, and otherwise why not; it must end with its
// context.
type Probe struct {
	Name  string
	Check func(ctx context.Context) error
	// Advisory: a failure is shown, and the process is ready nevertheless.
	Advisory bool
}
