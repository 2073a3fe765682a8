package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/queue"
)

// ConfiguredHandler is a handler that the operator's configuration, or dev, brings along.
type ConfiguredHandler struct {
	Tenant string // "" = host-wide
	Type   string // exact, or a pattern ending in "*" (host-wide only)
	Module []byte
	Limits handlers.Limits // zero fields: the host's defaults
	Config map[string]string
}

// EnsureConfigured makes the configured handlers live: one whose bytes, limits and configuration are those of the live version is
// left alone, any other becomes a new version and goes live. It stops at the first that cannot be; a module at fault
// gives an error wrapping *handlers.Refusal. Types that are no longer configured stay as they are. Call it before Start, so that
// no job comes before its handler.
func (c *Catalog) EnsureConfigured(ctx context.Context, configured []ConfiguredHandler) error {
	for i := range configured {
		h := &configured[i]
		if err := h.validate(); err != nil {
			return fmt.Errorf("handlers[%d]: %w", i, err)
		}
		if err := c.ensure(ctx, h); err != nil {
			return fmt.Errorf("handlers[%d] (%s): %w", i, h.Type, err)
		}
	}
	return nil
}

// Hosts of a fleet that start together configure the same handlers at once: whoever loses looks again, and finds it done.
const ensureTries = 5

func (c *Catalog) ensure(ctx context.Context, h *ConfiguredHandler) error {
	for try := 1; ; try++ {
		err := c.ensureOnce(ctx, h)
		if !errors.Is(err, queue.ErrConflict) || try == ensureTries {
			return err
		}
	}
}

func (c *Catalog) ensureOnce(ctx context.Context, h *ConfiguredHandler) error {
	q := request{tenant: h.Tenant, typ: h.Type, module: h.Module, sha: sum(h.Module), limits: h.Limits, config: h.Config}
	live, err := c.liveOf(ctx, h.Tenant, h.Type)
	if err != nil {
		return err
	}
	number := live.Version
	if number == 0 || !c.matches(ctx, &q, number) {
		info, err := c.ensureVersion(ctx, q)
		if err != nil {
			return err
		}
		number = info.Version
	}
	// Also when it is live already: it has to be prepared here, and in this host's registry.
	_, err = c.SetLive(ctx, h.Tenant, h.Type, number)
	return err
}

// matches reports whether a version is there, ready, and what a request asks for.
func (c *Catalog) matches(ctx context.Context, q *request, number int) bool {
	v, err := c.getVersion(ctx, q.tenant, q.typ, number)
	return err == nil && v.State == StateReady && q.same(&v.versionRecord)
}

// ensureVersion uploads and waits for the end of the admission, however long it takes.
func (c *Catalog) ensureVersion(ctx context.Context, q request) (VersionInfo, error) {
	info, _, err := c.upload(ctx, q)
	if err != nil || info.State != StateCompiling {
		return info, err
	}
	c.mu.Lock()
	adm := c.inflight[q.identity()]
	c.mu.Unlock()
	if adm != nil {
		select {
		case <-adm.done:
		case <-ctx.Done():
			return VersionInfo{}, context.Cause(ctx)
		}
	}
	return c.Get(ctx, q.tenant, q.typ, info.Version)
}

func (h *ConfiguredHandler) validate() error {
	if h.Tenant != "" {
		if err := queue.ValidName("tenant", h.Tenant); err != nil {
			return err
		}
		return queue.ValidName("type", h.Type)
	}
	if !handlers.ValidPattern(h.Type) {
		return &queue.InvalidError{Field: "type", Reason: fmt.Sprintf("must be a type, or a prefix followed by one \"*\"; got %q", h.Type)}
	}
	if name := patternPrefix(h.Type); name != "" {
		return queue.ValidName("type", name)
	}
	return nil
}

// patternPrefix is the type without a closing "*"; the pattern "*" has none, and an empty type is not allowed.
func patternPrefix(typ string) string {
	switch {
	case typ == "*":
		return ""
	case typ == "":
		return " " // not a valid name
	case typ[len(typ)-1] == '*':
		return typ[:len(typ)-1]
	}
	return typ
}
