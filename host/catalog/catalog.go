// Package catalog keeps the versions of handlers: it admits uploads, stores them durably before it acknowledges them, says which
// version of a type is live, and fills the handlers.Registry that every job is looked up in.
//
// A version is immutable: a number, the bytes, the limits and the configuration it was made with. Numbers rise per tenant and
// type. Uploading never makes a version live; SetLive and Rollback do. A version is prepared on this host before it goes live
// here, so that its first job does not wait.
package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/queue"
)

// Options of a Catalog.
type Options struct {
	Records  queue.Records
	Registry *handlers.Registry
	Runtimes []handlers.Runtime // the first that is a handlers.Admitter takes uploads
	Limits   handlers.Limits    // the host's defaults; uploads are checked against its memory
	Log      *slog.Logger
	Random   func() float64                               // uniform in [0, 1)
	Now      func(ctx context.Context) (time.Time, error) // store time

	// Shared says that other hosts change the same store; their changes are then looked for when the store tells of one (a
	// queue.RecordWatcher) and every LookEvery, or every FollowEvery. An embedded store is never looked at again.
	Shared bool

	AdmitWait time.Duration // after which a slow upload is answered as compiling; default 20 s
}

// AdmitWaitDefault is the default of Options.AdmitWait. FollowEvery keeps a change by another host below 5 s where the
// store does not tell; LookEvery is for signals that are lost with a connection.
const (
	AdmitWaitDefault = 20 * time.Second
	FollowEvery      = 4 * time.Second
	LookEvery        = time.Minute
)

// Catalog is the catalogue of handlers. Make one with New.
type Catalog struct {
	o        Options
	runtimes map[string]handlers.Runtime
	admitter handlers.Admitter
	uploads  string // name of the admitter's runtime

	ctx    context.Context // of everything in the background; ends with Stop
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	started  bool
	stopped  bool
	inflight map[string]*admission // by identity
	pending  map[string]string     // live versions being prepared: key → the last error, "" = under way
	loaded   chan struct{}         // closed when every version that was live at the start was tried

	live sync.Mutex // serialises changes of aliases and registry, so that both have the same order
	seen int64      // revision of the catalog record that the registry reflects

	native native // guarded by live

	quarantines quarantines
}

// New returns a catalog that is not started.
func New(o Options) *Catalog {
	if o.AdmitWait <= 0 {
		o.AdmitWait = AdmitWaitDefault
	}
	c := &Catalog{o: o, runtimes: map[string]handlers.Runtime{}, inflight: map[string]*admission{}, pending: map[string]string{}, loaded: make(chan struct{})}
	for _, rt := range o.Runtimes {
		c.runtimes[rt.Name()] = rt
		if a, ok := rt.(handlers.Admitter); ok && c.admitter == nil {
			c.admitter, c.uploads = a, rt.Name()
		}
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// Versions returns the versions of a type, newest first; queue.ErrNotFound when it has none. An empty tenant means the
// host-wide handlers.
func (c *Catalog) Versions(ctx context.Context, tenant, typ string) ([]VersionInfo, error) {
	versions, live, err := c.versionsOf(ctx, tenant, typ)
	if err != nil {
		return nil, err
	}
	if len(versions) == 0 {
		return nil, notFound(typ, 0)
	}
	infos := make([]VersionInfo, 0, len(versions))
	for _, v := range slices.Backward(versions) {
		infos = append(infos, shown(v.VersionInfo, live))
	}
	return infos, nil
}

// Get returns one version; queue.ErrNotFound when there is none. Version 0 means the live one, or the newest when none is live.
func (c *Catalog) Get(ctx context.Context, tenant, typ string, version int) (VersionInfo, error) {
	if version != 0 {
		v, err := c.getVersion(ctx, tenant, typ, version)
		if err != nil {
			return VersionInfo{}, err
		}
		live, err := c.liveOf(ctx, tenant, typ)
		if err != nil {
			return VersionInfo{}, err
		}
		return shown(v.VersionInfo, live), nil
	}
	infos, err := c.Versions(ctx, tenant, typ)
	if err != nil {
		return VersionInfo{}, err
	}
	return representative(infos), nil
}

// representative is the version that stands for its type: the live one, else the newest. infos is newest first.
func representative(infos []VersionInfo) VersionInfo {
	for _, v := range infos {
		if v.State == StateLive {
			return v
		}
	}
	return infos[0]
}

// List returns the handlers that serve a tenant, by type: its own, then the stored host-wide ones, each by its live version, or the
// newest when none is live; then the native ones.
func (c *Catalog) List(ctx context.Context, tenant string) ([]VersionInfo, error) {
	var all []VersionInfo
	installed := c.nativeInfos()
	for _, owner := range slices.Compact([]string{tenant, ""}) {
		byType := map[string][]VersionInfo{}
		var types []string
		err := list(ctx, c, kindVersion, owner+"/", func(_ queue.Record, v versionRecord) {
			if byType[v.Type] == nil {
				types = append(types, v.Type)
			}
			byType[v.Type] = append([]VersionInfo{v.VersionInfo}, byType[v.Type]...)
		})
		if err != nil {
			return nil, err
		}
		lives := map[string]liveRecord{}
		if err := list(ctx, c, kindLive, owner+"/", func(_ queue.Record, l liveRecord) { lives[l.Type] = l }); err != nil {
			return nil, err
		}
		for _, typ := range types {
			if owner == "" && slices.ContainsFunc(installed, func(v VersionInfo) bool { return v.Type == typ }) {
				continue // it does not serve here
			}
			infos := byType[typ]
			for i := range infos {
				infos[i] = shown(infos[i], lives[typ])
			}
			all = append(all, representative(infos))
		}
	}
	return append(all, installed...), nil
}

// prepare makes a version ready on this host.
func (c *Catalog) prepare(ctx context.Context, v *handlers.Version) error {
	rt := c.runtimes[v.Runtime]
	if rt == nil {
		return fmt.Errorf("prepare %s version %d: this host has no runtime %q", v.Type, v.Number, v.Runtime)
	}
	err := rt.Prepare(ctx, v, func(ctx context.Context) ([]byte, error) { return c.Module(ctx, v.SHA256) })
	if err != nil {
		return fmt.Errorf("prepare %s version %d: %w", v.Type, v.Number, err)
	}
	return nil
}
