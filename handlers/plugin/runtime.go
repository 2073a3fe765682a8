package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/child"
)

// Runtime runs the jobs of plugins. It implements handlers.Runtime. Close it after use.
type Runtime struct {
	o        Options
	sockets  *sockets
	spawner  *child.Spawner
	draining sync.WaitGroup // groups that were replaced
	drain    context.Context
	hurry    context.CancelCauseFunc // ends drain: what drains is ended

	replacing sync.Mutex

	mu     sync.Mutex
	groups []*group
	routes map[string]route // by type or pattern
	number int              // of the configuration
	closed bool
}

type route struct {
	g       *group
	version *handlers.Version
}

var _ handlers.Runtime = (*Runtime)(nil)

// New sets up the plugins; their processes start in the background, and attempts wait for them. A plugin that does not start is no error
// here: see State.
func New(o Options) (*Runtime, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	specs, err := complete(o.Plugins)
	if err != nil {
		return nil, err
	}
	r := &Runtime{o: o, number: 1, routes: map[string]route{}}
	if err := r.furnish(specs); err != nil {
		return nil, err
	}
	r.drain, r.hurry = context.WithCancelCause(context.Background())
	for _, spec := range specs {
		r.groups = append(r.groups, newGroup(spec, &r.o, r.sockets, r.spawner))
	}
	r.route(r.groups, nil)
	return r, nil
}

// furnish makes what plugins need, when there is the first one.
func (r *Runtime) furnish(specs []Spec) (err error) {
	if len(specs) == 0 || r.sockets != nil {
		return nil
	}
	if r.sockets, err = openSockets(r.o.DataDir); err != nil {
		return err
	}
	r.spawner = child.NewSpawner()
	return nil
}

func complete(specs []Spec) ([]Spec, error) {
	specs = slices.Clone(specs)
	owner := map[string]int{}
	for i := range specs {
		if err := specs[i].fill(i); err != nil {
			return nil, err
		}
		for _, typ := range specs[i].Types {
			if first, dup := owner[typ]; dup {
				return nil, fmt.Errorf("plugins[%d]: the type %s is served by plugins[%d] already", i, typ, first)
			}
			owner[typ] = i
		}
	}
	return specs, nil
}

// route makes groups the ones that serve. Types of groups in kept keep their version. The lock is held, or nobody knows r yet.
func (r *Runtime) route(groups []*group, kept map[*group]bool) {
	routes := map[string]route{}
	for _, g := range groups {
		for _, typ := range g.spec.Types {
			if old, ok := r.routes[typ]; ok && kept[g] && old.g == g {
				routes[typ] = old
				continue
			}
			routes[typ] = route{g, &handlers.Version{Type: typ, Number: r.number, Runtime: Name, SHA256: g.spec.SHA256,
				Config: g.spec.Config, Limits: g.spec.Limits}}
		}
	}
	r.groups, r.routes = groups, routes
}

// Name is "plugin".
func (r *Runtime) Name() string { return Name }

// Versions are the handlers that the plugins provide to every tenant, sorted by type.
func (r *Runtime) Versions() []*handlers.Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*handlers.Version
	for _, typ := range slices.Sorted(maps.Keys(r.routes)) {
		list = append(list, r.routes[typ].version)
	}
	return list
}

// Slots is how many jobs run at once.
func (r *Runtime) Slots() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.groups {
		n += g.spec.Instances * g.spec.Concurrency
	}
	return n
}

// Prepare waits until the plugin has started once, or has failed to: there is nothing to fetch. A plugin that failed is an error, and
// goes on being tried.
func (r *Runtime) Prepare(ctx context.Context, v *handlers.Version, _ func(context.Context) ([]byte, error)) error {
	g := r.find(v)
	if g == nil {
		return fmt.Errorf("no plugin serves %s on this host", v.Type)
	}
	return g.ready(ctx)
}

// ready waits until the first process has started, or failed to.
func (g *group) ready(ctx context.Context) error {
	select {
	case <-g.settled:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.instances) == 0 {
		return g.lastErr
	}
	return nil
}

func (r *Runtime) find(v *handlers.Version) *group {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.routes[v.Type].g
}

// Invoke runs one attempt in a process of the plugin that serves the version's type. See handlers.Runtime.
func (r *Runtime) Invoke(ctx context.Context, inv *handlers.Invocation) handlers.Outcome {
	if inv.Version == nil || inv.Events == nil || inv.Deadline.IsZero() {
		return unavailable(errors.New("the invocation lacks its version, its events or its deadline"))
	}
	g := r.find(inv.Version)
	if g == nil {
		return unavailable(fmt.Errorf("no plugin serves %s on this host", inv.Version.Type))
	}
	full := *inv
	full.Limits = r.limits(inv.Limits)
	return g.invoke(ctx, &full)
}

func (r *Runtime) limits(l handlers.Limits) handlers.Limits {
	d := r.o.Limits
	orDefault(&l.MemoryBytes, d.MemoryBytes)
	orDefault(&l.ResultBytes, d.ResultBytes)
	orDefault(&l.LogBytes, d.LogBytes)
	orDefault(&l.CheckpointBytes, d.CheckpointBytes)
	return l
}

// State is how every plugin is, in the order of the configuration.
func (r *Runtime) State() []State {
	r.mu.Lock()
	groups := slices.Clone(r.groups)
	r.mu.Unlock()
	list := make([]State, len(groups))
	for i, g := range groups {
		list[i] = g.state()
	}
	return list
}

// Ready says which plugins do not run; nil when all do.
func (r *Runtime) Ready() error {
	var down []string
	for _, s := range r.State() {
		switch {
		case s.Broken:
			down = append(down, fmt.Sprintf("%s: crash loop, %d failures in a row: %s", s.Plugin, s.Failures, s.Error))
		case len(s.Processes) == 0 && s.Error != "":
			down = append(down, s.Plugin+": "+s.Error)
		case len(s.Processes) == 0:
			down = append(down, s.Plugin+": starting")
		}
	}
	if len(down) > 0 {
		return errors.New(strings.Join(down, "; "))
	}
	return nil
}

// Replace makes a changed list of plugins serve. Those whose settings and program are as before go on as they are; the others are started
// beside the old ones and take over when they are ready, while the jobs in the old ones finish. When one does not start, nothing changes and
// the error says why. Versions has changed when it returns nil.
func (r *Runtime) Replace(ctx context.Context, specs []Spec) error {
	specs, err := complete(specs)
	if err != nil {
		return err
	}
	r.replacing.Lock()
	defer r.replacing.Unlock()
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return handlers.ErrStopped
	}
	old := r.groups
	err = r.furnish(specs)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	var next, fresh []*group
	kept := map[*group]bool{}
	for _, spec := range specs {
		g := unchanged(old, &spec)
		if g == nil {
			g = newGroup(spec, &r.o, r.sockets, r.spawner)
			fresh = append(fresh, g)
		} else {
			kept[g] = true
		}
		next = append(next, g)
	}
	for _, g := range fresh {
		if err := g.ready(ctx); err != nil {
			for _, g := range fresh {
				err = errors.Join(err, g.close(r.drain))
			}
			return fmt.Errorf("plugin %s: nothing was changed: %w", g.spec.name(), err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.draining.Add(len(fresh))
		for _, g := range fresh {
			go r.retire(g)
		}
		return handlers.ErrStopped
	}
	r.number++
	r.route(next, kept)
	for _, g := range old {
		if !kept[g] {
			r.draining.Add(1)
			go r.retire(g)
		}
	}
	return nil
}

// retire lets the jobs of a group finish, and ends it.
func (r *Runtime) retire(g *group) {
	defer r.draining.Done()
	if err := g.close(r.drain); err != nil {
		g.log.Warn("a plugin that was replaced was still busy", "error", err)
	}
}

// unchanged finds the group of a plugin that neither its settings nor its program distinguish from spec.
func unchanged(groups []*group, spec *Spec) *group {
	for _, g := range groups {
		if !reflect.DeepEqual(g.spec, *spec) {
			continue
		}
		g.mu.Lock()
		sum := g.sum
		g.mu.Unlock()
		if now, err := fileDigest(spec.Command); err == nil && now == sum {
			return g
		}
	}
	return nil
}

// Close refuses new attempts, waits for those in flight until ctx ends, kills what is left, and returns when all processes are gone. The error
// tells what had to be ended.
func (r *Runtime) Close(ctx context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	groups := r.groups
	r.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { r.hurry(context.Cause(ctx)) })
	defer stop()
	errs := make([]error, len(groups))
	var wg sync.WaitGroup
	for n, g := range groups {
		wg.Go(func() { errs[n] = g.close(ctx) })
	}
	wg.Wait()
	r.draining.Wait()
	r.hurry(nil)
	if r.sockets != nil {
		r.spawner.Close()
		return errors.Join(errors.Join(errs...), r.sockets.close())
	}
	return errors.Join(errs...)
}
