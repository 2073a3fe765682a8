package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/outage"
	"github.com/taskhost/taskhost/queue"
)

// Versions prepared at once at the start.
const prepareParallel = 4

// Start loads what is live into the registry and prepares it in the background (see Ready), takes up admissions that a stopped
// host left behind, and follows other hosts when the store is shared. The registry holds every live version when it returns: a job
// that comes before its handler is prepared waits for it.
func (c *Catalog) Start(ctx context.Context) error {
	c.mu.Lock()
	switch {
	case c.stopped:
		c.mu.Unlock()
		return lifecycle.ErrStopped
	case c.started:
		c.mu.Unlock()
		return lifecycle.ErrStarted
	}
	c.started = true
	c.mu.Unlock()

	lives, err := c.load(ctx)
	if err != nil {
		return err
	}
	compiling, err := c.interrupted(ctx)
	if err != nil {
		return err
	}
	c.goBackground(func() { c.prepareAll(lives) })
	for _, v := range compiling {
		c.goBackground(func() { c.readmit(v) })
	}
	if c.o.Shared {
		c.goBackground(c.follow)
	}
	return nil
}

// Stop ends the background work; admissions under way are taken up at the next start.
func (c *Catalog) Stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.cancel(lifecycle.ErrStopped)
	c.wg.Wait()
}

// goBackground runs fn unless the catalog was stopped; false then.
func (c *Catalog) goBackground(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return false
	}
	c.wg.Go(fn)
	return true
}

// load reads every alias and its version, and puts them into the registry.
func (c *Catalog) load(ctx context.Context) ([]*handlers.Version, error) {
	c.live.Lock()
	defer c.live.Unlock()
	revision, err := c.revision(ctx)
	if err != nil {
		return nil, err
	}
	var aliases []liveRecord
	if err := list(ctx, c, kindLive, "", func(_ queue.Record, l liveRecord) { aliases = append(aliases, l) }); err != nil {
		return nil, err
	}
	if err := c.loadQuarantines(ctx, aliases); err != nil {
		return nil, err
	}
	var changed []*handlers.Version
	for _, l := range aliases {
		if c.covers(l.Tenant, l.Type) {
			continue
		}
		if now, err := c.o.Registry.Resolve(l.Tenant, l.Type); err == nil && now.Tenant == l.Tenant && now.Type == l.Type && now.Number == l.Version {
			continue
		}
		stored, err := c.getVersion(ctx, l.Tenant, l.Type, l.Version)
		if ctx.Err() != nil || errors.Is(err, queue.ErrUnavailable) || errors.Is(err, queue.ErrClosed) {
			return nil, fmt.Errorf("load the live version of %s: %w", l.Type, err)
		}
		if err != nil { // one damaged record must not keep every other handler from its jobs
			c.o.Log.Error("live handler version cannot be loaded; its jobs find no handler", "tenant", l.Tenant, "type", l.Type, "version", l.Version, "error", err)
			c.unready(liveKey(l), err.Error())
			continue
		}
		v := stored.version()
		c.unready(liveKey(l), "")
		c.o.Registry.SetLive(v)
		changed = append(changed, v)
	}
	c.seen = revision
	return changed, nil
}

func (c *Catalog) revision(ctx context.Context) (int64, error) {
	rec, err := c.o.Records.GetRecord(ctx, kindCatalog, keyRevision)
	if errors.Is(err, queue.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the revision of the handlers: %w", err)
	}
	return rec.Revision, nil
}

// prepareAll prepares what was live at the start.
func (c *Catalog) prepareAll(versions []*handlers.Version) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, prepareParallel)
	for _, v := range versions {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := c.tryPrepare(v); err != nil {
				c.goBackground(func() { c.keepPreparing(v) })
			}
		})
	}
	wg.Wait()
	close(c.loaded)
}

func (c *Catalog) tryPrepare(v *handlers.Version) error {
	key := v.Tenant + "/" + v.Type
	err := c.prepare(c.ctx, v)
	if err != nil {
		if c.serves(v) {
			c.unready(key, err.Error())
		}
		return err
	}
	c.settled(key)
	return nil
}

// serves reports whether v is still the live version of its type on this host.
func (c *Catalog) serves(v *handlers.Version) bool {
	now, err := c.o.Registry.Resolve(v.Tenant, v.Type)
	return err == nil && now == v
}

// keepPreparing tries until it succeeds, or until another version took the place. The jobs of the type wait meanwhile.
func (c *Catalog) keepPreparing(v *handlers.Version) {
	backoff := queue.Backoff{Base: time.Second, Max: time.Minute}
	for n := 1; ; n++ {
		if outage.Sleep(c.ctx, backoff.Delay(n, c.o.Random())) != nil {
			return
		}
		if !c.serves(v) {
			return
		}
		err := c.tryPrepare(v)
		if err == nil || c.ctx.Err() != nil {
			return
		}
		c.o.Log.Error("live handler version cannot be prepared; its jobs wait", "tenant", v.Tenant, "type", v.Type, "version", v.Number, "tries", n+1, "error", err)
	}
}

// follow looks for changes by other hosts. One record is read; all the rest only when it changed.
func (c *Catalog) follow() {
	gate := outage.Gate{Log: c.o.Log, What: "follow the handlers", Random: c.o.Random}
	var w queue.Watch
	defer func() {
		if w.Stop != nil {
			w.Stop()
		}
	}()
	for {
		if w.C == nil {
			w = c.watch()
		}
		closed, err := c.awaitChange(w.C)
		if err != nil {
			return
		}
		if closed { // with the store
			w = queue.Watch{}
		}
		if err := c.followOnce(); err != nil && c.ctx.Err() == nil {
			if outage.Sleep(c.ctx, gate.Failed(err)) != nil {
				return
			}
			continue
		}
		gate.OK()
	}
}

// watch has the store tell of changes; the zero Watch when it does not.
func (c *Catalog) watch() queue.Watch {
	watcher, ok := c.o.Records.(queue.RecordWatcher)
	if !ok {
		return queue.Watch{}
	}
	ctx, cancel := context.WithTimeout(c.ctx, FollowEvery)
	defer cancel()
	w, err := watcher.WatchRecords(ctx, kindCatalog)
	if err != nil {
		if c.ctx.Err() == nil {
			c.o.Log.Debug("the store does not tell of changed handlers; they are looked for", "every", FollowEvery, "error", err)
		}
		return queue.Watch{}
	}
	return w
}

// awaitChange waits for a signal (nil: there are none), but not longer than it is good; closed when no more will come.
func (c *Catalog) awaitChange(signals <-chan struct{}) (closed bool, err error) {
	every := LookEvery
	if signals == nil {
		every = FollowEvery
	}
	timer := time.NewTimer(every)
	defer timer.Stop()
	select {
	case _, open := <-signals:
		return !open, nil
	case <-timer.C:
		return false, nil
	case <-c.ctx.Done():
		return false, context.Cause(c.ctx)
	}
}

func (c *Catalog) followOnce() error {
	revision, err := c.revision(c.ctx)
	if err != nil {
		return err
	}
	c.live.Lock()
	seen := c.seen
	c.live.Unlock()
	if revision == seen {
		return nil
	}
	changed, err := c.load(c.ctx)
	if err != nil {
		return err
	}
	for _, v := range changed {
		c.o.Log.Info("handler version live, made so by another host", "tenant", v.Tenant, "type", v.Type, "version", v.Number)
		if err := c.tryPrepare(v); err != nil {
			c.goBackground(func() { c.keepPreparing(v) })
		}
	}
	return nil
}
