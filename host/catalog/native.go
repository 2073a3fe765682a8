package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/taskhost/taskhost/handlers"
)

// native are the handlers of this host's configuration that have no module: plugins. They are not stored, and no other host knows them.
type native struct {
	versions map[string]*handlers.Version // by type
	since    time.Time
}

// Install makes native handlers serve every tenant on this host, in place of those that were installed before. A host-wide handler that is
// stored for the same type does not serve here as long as a native one does. Call it before Start, and again when they change.
func (c *Catalog) Install(ctx context.Context, versions []*handlers.Version) error {
	now, err := c.o.Now(ctx)
	if err != nil {
		return fmt.Errorf("install native handlers: %w", err)
	}
	next := native{versions: map[string]*handlers.Version{}, since: now}
	for _, v := range versions {
		if v.Tenant != "" || c.runtimes[v.Runtime] == nil {
			return fmt.Errorf("install a native handler of %s for tenant %q and runtime %q: it must be host-wide, and of a runtime of this host", v.Type, v.Tenant, v.Runtime)
		}
		next.versions[v.Type] = v
	}
	c.live.Lock()
	before := c.native.versions
	c.native = next
	for typ := range before {
		if next.versions[typ] == nil {
			c.o.Registry.Remove("", typ)
		}
	}
	for _, v := range next.versions {
		c.o.Registry.SetLive(v)
	}
	c.live.Unlock()
	if len(before) == 0 {
		return nil
	}
	// What a native handler had covered comes into force again.
	uncovered, err := c.load(ctx)
	if err != nil {
		return err
	}
	for _, v := range uncovered {
		if err := c.tryPrepare(v); err != nil {
			c.goBackground(func() { c.keepPreparing(v) })
		}
	}
	return nil
}

// covers reports whether a native handler serves the type in place of a stored host-wide one. It needs the live lock.
func (c *Catalog) covers(tenant, typ string) bool {
	return tenant == "" && c.native.versions[typ] != nil
}

// nativeInfos describes the native handlers, by type.
func (c *Catalog) nativeInfos() []VersionInfo {
	c.live.Lock()
	defer c.live.Unlock()
	var infos []VersionInfo
	for _, typ := range slices.Sorted(maps.Keys(c.native.versions)) {
		v := c.native.versions[typ]
		infos = append(infos, VersionInfo{Type: v.Type, Version: v.Number, State: StateLive, Percent: 100, SHA256: v.SHA256, Kind: handlers.KindNative,
			Imports: []string{}, Warnings: []string{}, Instance: handlers.Instance{Mode: "plugin", Reason: "a native program runs all jobs"}, CreatedAt: c.native.since})
	}
	return infos
}
