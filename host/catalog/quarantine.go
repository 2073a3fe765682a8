package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/outage"
	"github.com/taskhost/taskhost/queue"
)

// A version whose jobs keep killing their process while they run alone in it is quarantined: once QuarantineJobs different jobs of one
// tenant have done so within QuarantineWindow on one host, the jobs of that tenant are put off, uncounted, on every host of the store.
// A host-wide version is quarantined for the tenant whose jobs crashed, and serves the others on. The quarantine is stored, survives
// restarts, and ends when a version of the type is made live: another one, or the same again. A version of the configuration is made live
// by every start of a host.
const (
	QuarantineJobs   = 5
	QuarantineWindow = 10 * time.Minute
)

// kindQuarantine records have the key <tenant of the jobs>/<tenant of the version>/<type>.
const kindQuarantine = "handler_quarantine"

// Quarantine is why the jobs of one tenant do not run with a version.
type Quarantine struct {
	Since     time.Time // of this host's clock, or of the host that saw the crashes
	Jobs      int       // how many different jobs crashed, each alone in its process
	LastError string    // of the last of them
}

type quarantineRecord struct {
	Tenant  string    `json:"tenant"` // of the jobs
	Owner   string    `json:"owner"`  // of the version; empty = host-wide
	Type    string    `json:"type"`   // of the version
	Version int       `json:"version"`
	Since   time.Time `json:"since"`
	Jobs    int       `json:"jobs"`
	Error   string    `json:"error"`
}

func (r *quarantineRecord) key() string { return r.Tenant + "/" + r.Owner + "/" + r.Type }

// held names what is quarantined.
type held struct {
	tenant, owner, typ string
	version            int
}

func heldOf(tenant string, v *handlers.Version) held { return held{tenant, v.Tenant, v.Type, v.Number} }

type quarantine struct {
	Quarantine
	stored bool
}

type crash struct {
	job string
	at  time.Time
}

// quarantines is what this host knows; every job is looked up in it, without a lock.
type quarantines struct {
	held atomic.Pointer[map[held]quarantine]

	mu      sync.Mutex // serialises writers, and guards crashes
	crashes map[held][]crash
}

func (q *quarantines) all() map[held]quarantine {
	if m := q.held.Load(); m != nil {
		return *m
	}
	return nil
}

// change replaces the map by a changed copy. It needs the lock.
func (q *quarantines) change(do func(map[held]quarantine)) {
	next := maps.Clone(q.all())
	if next == nil {
		next = map[held]quarantine{}
	}
	do(next)
	q.held.Store(&next)
}

// crashed counts a crash, and returns the quarantine that it brings about; false if none. The version is held at once.
func (q *quarantines) crashed(h held, job, why string, now time.Time) (Quarantine, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, already := q.all()[h]; already { // it was running when the quarantine began
		return Quarantine{}, false
	}
	if q.crashes == nil {
		q.crashes = map[held][]crash{}
	}
	for k, list := range q.crashes { // one job counts once, however often it crashes
		recent := slices.DeleteFunc(list, func(c crash) bool { return now.Sub(c.at) >= QuarantineWindow || k == h && c.job == job })
		if q.crashes[k] = recent; len(recent) == 0 {
			delete(q.crashes, k)
		}
	}
	q.crashes[h] = append(q.crashes[h], crash{job, now})
	n := len(q.crashes[h])
	if n < QuarantineJobs {
		return Quarantine{}, false
	}
	delete(q.crashes, h)
	found := Quarantine{Since: now, Jobs: n, LastError: why}
	q.change(func(m map[held]quarantine) { m[h] = quarantine{Quarantine: found} })
	return found, true
}

// lift ends all quarantines of a type, and forgets its crashes.
func (q *quarantines) lift(owner, typ string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.change(func(m map[held]quarantine) {
		maps.DeleteFunc(m, func(h held, _ quarantine) bool { return h.owner == owner && h.typ == typ })
	})
	maps.DeleteFunc(q.crashes, func(h held, _ []crash) bool { return h.owner == owner && h.typ == typ })
}

// follow takes over what is stored; what this host has yet to store stays.
func (q *quarantines) follow(stored map[held]quarantine) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.change(func(m map[held]quarantine) {
		for h, was := range m {
			if _, still := stored[h]; was.stored && !still {
				delete(m, h)
			}
		}
		maps.Copy(m, stored)
	})
}

// Crashed notes that a job's process died while the job was alone in it. It does not block: a quarantine that this brings about is in
// force on this host when it returns, and stored in the background. Native handlers have a breaker of their own and are left alone.
func (c *Catalog) Crashed(tenant, job string, v *handlers.Version, why string) {
	if v.Kind == handlers.KindNative {
		return
	}
	h := heldOf(tenant, v)
	q, begun := c.quarantines.crashed(h, job, why, time.Now())
	if !begun {
		return
	}
	c.o.Log.Error("handler version quarantined: its jobs wait until a version of the type is made live", "tenant", tenant, "type", v.Type, "version", v.Number,
		"host_wide", v.Tenant == "", "jobs_crashed", q.Jobs, "within", QuarantineWindow, "error", why)
	c.goBackground(func() { c.keepQuarantined(h, q) })
}

// Held reports whether the jobs of a tenant must not run with a version.
func (c *Catalog) Held(tenant string, v *handlers.Version) bool {
	m := c.quarantines.all()
	if len(m) == 0 {
		return false
	}
	_, is := m[heldOf(tenant, v)]
	return is
}

// Quarantined returns why the jobs of a tenant do not run with a version of an owner ("" = host-wide); false if they do.
func (c *Catalog) Quarantined(tenant, owner, typ string, version int) (Quarantine, bool) {
	q, is := c.quarantines.all()[held{tenant, owner, typ, version}]
	return q.Quarantine, is
}

// Quarantines says which versions are quarantined; nil is none.
func (c *Catalog) Quarantines() error {
	m := c.quarantines.all()
	for h, q := range m {
		return fmt.Errorf("%d handler versions are quarantined, among them %s version %d for tenant %s: %d jobs crashed, each alone in its process; make a version live to lift it",
			len(m), h.typ, h.version, h.tenant, q.Jobs)
	}
	return nil
}

// keepQuarantined stores a quarantine, however long that takes, unless it was lifted meanwhile.
func (c *Catalog) keepQuarantined(h held, q Quarantine) {
	backoff := queue.Backoff{Base: time.Second, Max: time.Minute}
	for n := 1; ; n++ {
		err := c.storeQuarantine(c.ctx, h, q)
		if err == nil || c.ctx.Err() != nil {
			return
		}
		c.o.Log.Error("quarantine is not stored yet; it is in force on this host", "tenant", h.tenant, "type", h.typ, "version", h.version, "tries", n, "error", err)
		if outage.Sleep(c.ctx, backoff.Delay(n, c.o.Random())) != nil {
			return
		}
	}
}

func (c *Catalog) storeQuarantine(ctx context.Context, h held, q Quarantine) error {
	c.live.Lock()
	defer c.live.Unlock()
	if _, still := c.quarantines.all()[h]; !still {
		return nil
	}
	rec := quarantineRecord{Tenant: h.tenant, Owner: h.owner, Type: h.typ, Version: h.version, Since: q.Since.UTC(), Jobs: q.Jobs, Error: q.LastError}
	value, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("encode the quarantine of %s version %d: %w", h.typ, h.version, err)
	}
	if _, err := c.o.Records.PutRecord(ctx, kindQuarantine, rec.key(), value, queue.AnyRevision); err != nil {
		return fmt.Errorf("store the quarantine of %s version %d: %w", h.typ, h.version, err)
	}
	if err := c.tellOthers(ctx, h.owner, h.typ); err != nil {
		return err
	}
	c.quarantines.mu.Lock()
	defer c.quarantines.mu.Unlock()
	c.quarantines.change(func(m map[held]quarantine) { m[h] = quarantine{q, true} })
	return nil
}

// liftQuarantine ends the quarantines of a type. It needs the live lock.
func (c *Catalog) liftQuarantine(ctx context.Context, owner, typ string) error {
	var found []quarantineRecord
	err := list(ctx, c, kindQuarantine, "", func(_ queue.Record, r quarantineRecord) {
		if r.Owner == owner && r.Type == typ {
			found = append(found, r)
		}
	})
	if err != nil {
		return err
	}
	for _, r := range found {
		if err := c.o.Records.DeleteRecord(ctx, kindQuarantine, r.key()); err != nil && !errors.Is(err, queue.ErrNotFound) {
			return fmt.Errorf("lift the quarantine of %s for tenant %s: %w", typ, r.Tenant, err)
		}
		c.o.Log.Info("handler quarantine lifted", "tenant", r.Tenant, "type", typ, "version", r.Version)
	}
	c.quarantines.lift(owner, typ)
	if len(found) == 0 {
		return nil
	}
	return c.tellOthers(ctx, owner, typ)
}

// loadQuarantines reads what is stored. A quarantine of a version that is not the one of its alias has ended.
func (c *Catalog) loadQuarantines(ctx context.Context, aliases []liveRecord) error {
	live := map[string]int{}
	for _, l := range aliases {
		live[liveKey(l)] = l.Version
	}
	stored := map[held]quarantine{}
	err := list(ctx, c, kindQuarantine, "", func(_ queue.Record, r quarantineRecord) {
		if live[r.Owner+"/"+r.Type] == r.Version {
			stored[held{r.Tenant, r.Owner, r.Type, r.Version}] = quarantine{Quarantine{r.Since, r.Jobs, r.Error}, true}
		}
	})
	if err != nil {
		return err
	}
	c.quarantines.follow(stored)
	return nil
}

// tellOthers makes hosts that share the store look at the handlers anew.
func (c *Catalog) tellOthers(ctx context.Context, owner, typ string) error {
	note := []byte(strconv.Quote(owner + "/" + typ))
	if _, err := c.o.Records.PutRecord(ctx, kindCatalog, keyRevision, note, queue.AnyRevision); err != nil {
		return fmt.Errorf("tell other hosts that %s changed: %w", typ, err)
	}
	return nil
}
