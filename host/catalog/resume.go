package catalog

import (
	"context"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// On a shared store a version that is compiling may be in another host's hands; it is taken up only when it is older than any
// admission takes.
const strandedAfter = 10 * time.Minute

// interrupted returns the versions whose admission was cut off by the end of a host.
func (c *Catalog) interrupted(ctx context.Context) ([]storedVersion, error) {
	if c.admitter == nil {
		return nil, nil
	}
	now, err := c.o.Now(ctx)
	if err != nil {
		return nil, err
	}
	var found []storedVersion
	err = list(ctx, c, kindVersion, "", func(rec queue.Record, v versionRecord) {
		if v.State == StateCompiling && (!c.o.Shared || now.Sub(v.CreatedAt) > strandedAfter) {
			found = append(found, storedVersion{v, rec.Revision})
		}
	})
	return found, err
}

// readmit runs an admission again that was cut off.
func (c *Catalog) readmit(v storedVersion) {
	module, err := c.Module(c.ctx, v.SHA256)
	if err != nil {
		c.o.Log.Error("upload cannot be taken up again", "tenant", v.Tenant, "type", v.Type, "version", v.Version, "error", err)
		return
	}
	rec := v.versionRecord
	a := &admission{c: c, rec: &rec, revision: v.revision, done: make(chan struct{}),
		q: request{tenant: v.Tenant, typ: v.Type, module: module, sha: v.SHA256, limits: rec.version().Limits, config: v.Config}}
	c.o.Log.Info("taking up an upload that was cut off", "tenant", v.Tenant, "type", v.Type, "version", v.Version)
	a.run()
}
