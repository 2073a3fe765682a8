package catalog

import (
	"context"
	"fmt"
	"slices"
)

// SetLive makes a version serve its type: prepared on this host first, then stored, then in force here; other hosts follow
// within 5 s. A version that is compiling or refused gives a *StateError, an unknown one queue.ErrNotFound. Making the live
// version live again lifts its quarantine, if it has one, and changes nothing else.
func (c *Catalog) SetLive(ctx context.Context, tenant, typ string, version int) (VersionInfo, error) {
	c.live.Lock()
	defer c.live.Unlock()
	live, err := c.liveOf(ctx, tenant, typ)
	if err != nil {
		return VersionInfo{}, err
	}
	next := live
	next.Version = version
	if live.Version != 0 && live.Version != version {
		next.Previous = append(slices.Clone(live.Previous), live.Version)
	}
	return c.switchTo(ctx, live, next)
}

// Rollback makes the version live again that was live before the present one; a *NoEarlierError when there is none. Rolling
// back again goes one further back.
func (c *Catalog) Rollback(ctx context.Context, tenant, typ string) (VersionInfo, error) {
	c.live.Lock()
	defer c.live.Unlock()
	live, err := c.liveOf(ctx, tenant, typ)
	if err != nil {
		return VersionInfo{}, err
	}
	last := len(live.Previous) - 1
	if last < 0 {
		if live.Version == 0 {
			return VersionInfo{}, notFound(typ, 0)
		}
		return VersionInfo{}, &NoEarlierError{Type: typ}
	}
	next := live
	next.Version, next.Previous = live.Previous[last], slices.Clone(live.Previous[:last])
	return c.switchTo(ctx, live, next)
}

// switchTo prepares, stores, and puts into force. It needs the live lock.
func (c *Catalog) switchTo(ctx context.Context, from, to liveRecord) (VersionInfo, error) {
	v, err := c.getVersion(ctx, to.Tenant, to.Type, to.Version)
	if err != nil {
		return VersionInfo{}, err
	}
	if v.State != StateReady {
		return VersionInfo{}, &StateError{Type: v.Type, Version: v.Version, State: v.State, Op: "make live", Reason: v.Refusal}
	}
	version := v.version()
	if err := c.prepare(ctx, version); err != nil {
		return VersionInfo{}, err
	}
	if from.Version != to.Version {
		if err := c.putLive(ctx, to); err != nil {
			return VersionInfo{}, err
		}
		c.o.Log.Info("handler version live", "tenant", v.Tenant, "type", v.Type, "version", v.Version, "before", from.Version, "sha256", v.SHA256)
	}
	if err := c.liftQuarantine(ctx, to.Tenant, to.Type); err != nil {
		return VersionInfo{}, err
	}
	if !c.covers(to.Tenant, to.Type) {
		c.o.Registry.SetLive(version)
	}
	c.settled(liveKey(to))
	return shown(v.VersionInfo, to), nil
}

func liveKey(l liveRecord) string { return l.Tenant + "/" + l.Type }

// unready notes that a live version is not prepared yet, and why not.
func (c *Catalog) unready(key, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[key] = reason
}

func (c *Catalog) settled(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, key)
}

// Ready says whether every live version is prepared on this host; nil is yes, an error names those that are not and why.
func (c *Catalog) Ready() error {
	select {
	case <-c.loaded:
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Errorf("handlers: %d live versions are being prepared", len(c.pending))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, reason := range c.pending {
		if reason == "" {
			reason = "being prepared"
		}
		return fmt.Errorf("handlers: %d live versions are not ready, among them %s: %s", len(c.pending), key, reason)
	}
	return nil
}

// Loaded is closed when every version that was live at the start has been prepared, or has failed once.
func (c *Catalog) Loaded() <-chan struct{} { return c.loaded }
