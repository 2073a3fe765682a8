package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/queue"
)

// request is what a version is made of.
type request struct {
	tenant, typ string
	module      []byte
	sha         string
	limits      handlers.Limits
	config      map[string]string
}

// identity tells requests apart: equal ones are the same version.
func (q *request) identity() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s/%s/%+v", q.tenant, q.typ, q.sha, q.limits)
	for _, k := range slices.Sorted(maps.Keys(q.config)) {
		fmt.Fprintf(&b, "/%q=%q", k, q.config[k])
	}
	return b.String()
}

func (q *request) same(v *versionRecord) bool {
	return v.SHA256 == q.sha && handlers.Limits(v.Limits) == q.limits && maps.Equal(v.Config, q.config)
}

// Upload admits a module as the next version of a tenant's type, and stores it. It does not make it live. The same bytes
// again return the version that is there (created = false). A module at fault gives a *handlers.Refusal and leaves
// nothing behind. When admission takes longer than AdmitWait, the version is returned as compiling and finished in the
// background; a refusal is then kept with it. Hanging up ends the wait, not the admission.
func (c *Catalog) Upload(ctx context.Context, tenant, typ string, module []byte) (info VersionInfo, created bool, err error) {
	if err := queue.ValidName("tenant", tenant); err != nil {
		return VersionInfo{}, false, err
	}
	if err := queue.ValidName("type", typ); err != nil {
		return VersionInfo{}, false, err
	}
	return c.upload(ctx, request{tenant: tenant, typ: typ, module: module, sha: sum(module)})
}

func (c *Catalog) upload(ctx context.Context, q request) (VersionInfo, bool, error) {
	if c.admitter == nil {
		return VersionInfo{}, false, errors.New("this host has no runtime that takes uploads")
	}
	found, live, err := c.find(ctx, &q)
	if err != nil {
		return VersionInfo{}, false, err
	}
	if found != nil {
		return existing(found, live)
	}
	adm, started, err := c.admit(q)
	if err != nil {
		return VersionInfo{}, false, err
	}
	timer := time.NewTimer(c.o.AdmitWait)
	defer timer.Stop()
	select {
	case <-adm.done:
		return adm.answer(started)
	case <-ctx.Done():
		return VersionInfo{}, false, context.Cause(ctx)
	case <-timer.C:
	}
	if err := adm.store(ctx, StateCompiling); err != nil {
		return VersionInfo{}, false, err
	}
	return adm.answer(started)
}

// find returns the version that a request asks for, if there is one.
func (c *Catalog) find(ctx context.Context, q *request) (*storedVersion, liveRecord, error) {
	versions, live, err := c.versionsOf(ctx, q.tenant, q.typ)
	if err != nil {
		return nil, live, err
	}
	for i := range slices.Backward(versions) {
		if q.same(&versions[i].versionRecord) {
			return &versions[i], live, nil
		}
	}
	return nil, live, nil
}

func existing(v *storedVersion, live liveRecord) (VersionInfo, bool, error) {
	info := shown(v.VersionInfo, live)
	if info.State == StateRefused {
		return info, false, &handlers.Refusal{Reason: info.Refusal}
	}
	return info, false, nil
}

// admission is one run of the admission check. Requests for the same version share it.
type admission struct {
	c    *Catalog
	q    request
	done chan struct{} // closed at the end

	mu       sync.Mutex // guards what follows, and serialises the writes of the version
	rec      *versionRecord
	revision int64 // of the stored version; 0 = not stored
	live     liveRecord
	created  bool  // stored by this admission
	err      error // at the end
}

// admit starts an admission, or joins the one under way.
func (c *Catalog) admit(q request) (adm *admission, started bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, false, fmt.Errorf("upload %s: %w", q.typ, handlers.ErrStopped)
	}
	key := q.identity()
	if adm := c.inflight[key]; adm != nil {
		return adm, false, nil
	}
	adm = &admission{c: c, q: q, done: make(chan struct{})}
	adm.rec = &versionRecord{Runtime: c.uploads, Limits: limitsRecord(q.limits), Config: q.config,
		VersionInfo: VersionInfo{Tenant: q.tenant, Type: q.typ, SHA256: q.sha, SizeBytes: len(q.module)}}
	c.inflight[key] = adm
	c.wg.Go(func() {
		adm.run()
		c.mu.Lock()
		delete(c.inflight, key)
		c.mu.Unlock()
	})
	return adm, true, nil
}

// run checks the module and stores what came of it.
func (a *admission) run() {
	defer close(a.done)
	err := a.check()
	a.mu.Lock()
	defer a.mu.Unlock()
	refusal, refused := errors.AsType[*handlers.Refusal](err)
	switch {
	case err == nil:
		a.err = a.storeLocked(a.c.ctx, StateReady)
	case a.revision == 0:
		a.err = err // nobody was told of it: nothing is left behind
	case refused:
		a.rec.Refusal = refusal.Error()
		a.err = a.storeLocked(a.c.ctx, StateRefused)
	case a.c.ctx.Err() != nil, errors.Is(err, handlers.ErrBusy), errors.Is(err, handlers.ErrSandbox):
		a.err = err // stays compiling, and is taken up at the next start
	default:
		a.rec.Refusal = "it could not be checked: " + err.Error()
		a.err = a.storeLocked(a.c.ctx, StateRefused)
	}
	if a.revision != 0 {
		a.c.o.Log.Info("handler uploaded", "tenant", a.q.tenant, "type", a.q.typ, "version", a.rec.Version, "state", string(a.rec.State), "sha256", a.q.sha, "compile_ms", a.rec.CompileMS)
	}
}

// check asks the runtime, and fills in what it found.
func (a *admission) check() error {
	limits := a.c.o.Limits
	if a.q.limits.MemoryBytes > 0 {
		limits.MemoryBytes = a.q.limits.MemoryBytes
	}
	found, err := a.c.admitter.Admit(a.c.ctx, handlers.AdmitRequest{Tenant: a.q.tenant, Type: a.q.typ, Module: a.q.module, Limits: limits})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rec.Kind, a.rec.Imports, a.rec.Memory, a.rec.Instance = found.Kind, found.Imports, found.Memory, found.Instance
	a.rec.Exports, a.rec.Features, a.rec.Metered, a.rec.Lines = found.Exports, found.Features, found.Metered, found.SourceLines
	a.rec.CompileMS, a.rec.Warnings = found.CompileTime.Milliseconds(), found.Warnings
	return nil
}

// store writes the version in a state, unless it has gone further already.
func (a *admission) store(ctx context.Context, s State) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.revision != 0 || a.err != nil {
		return nil
	}
	return a.storeLocked(ctx, s)
}

func (a *admission) storeLocked(ctx context.Context, s State) error {
	a.rec.State = s
	if a.revision != 0 {
		revision, err := a.c.putVersion(ctx, a.rec, a.revision)
		if err != nil {
			return fmt.Errorf("store %s version %d: %w", a.rec.Type, a.rec.Version, err)
		}
		a.revision = revision
		return nil
	}
	if err := a.c.putModule(ctx, a.q.sha, a.q.module); err != nil {
		return err
	}
	now, err := a.c.o.Now(ctx)
	if err != nil {
		return fmt.Errorf("store a version of %s: %w", a.rec.Type, err)
	}
	a.rec.CreatedAt = now
	for least := 1; ; {
		versions, live, err := a.c.versionsOf(ctx, a.q.tenant, a.q.typ)
		if err != nil {
			return err
		}
		a.live = live
		a.rec.Version = least
		for i := range versions {
			if a.q.same(&versions[i].versionRecord) { // another host was faster
				*a.rec, a.revision = versions[i].versionRecord, versions[i].revision
				return nil
			}
			a.rec.Version = max(a.rec.Version, versions[i].Version+1)
		}
		revision, err := a.c.putVersion(ctx, a.rec, 0)
		if errors.Is(err, queue.ErrConflict) {
			least = a.rec.Version + 1 // taken meanwhile, or by a record that cannot be read
			continue
		}
		if err != nil {
			return fmt.Errorf("store %s version %d: %w", a.rec.Type, a.rec.Version, err)
		}
		a.revision, a.created = revision, true
		return nil
	}
}

// answer is what the uploader is told; started says that this upload began the admission.
func (a *admission) answer(started bool) (VersionInfo, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return VersionInfo{}, false, a.err
	}
	info := shown(a.rec.VersionInfo, a.live)
	if info.State == StateRefused {
		return info, false, &handlers.Refusal{Reason: info.Refusal}
	}
	return info, started && a.created, nil
}
