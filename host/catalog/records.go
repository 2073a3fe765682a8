package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/queue"
)

// Kinds of records. Keys:
//
//	handler_version  <tenant>/<type>/<number, ten digits>   one version
//	handler_live     <tenant>/<type>                        which one is live, and which were before
//	module           <sha256>                               see modules.go
//	handler_quarantine                                      see quarantine.go
//	catalog          revision                               written after every change of handler_live and handler_quarantine
const (
	kindVersion = "handler_version"
	kindLive    = "handler_live"
	kindCatalog = "catalog"
	keyRevision = "revision"
)

// versionRecord is a stored version.
type versionRecord struct {
	VersionInfo
	Runtime string            `json:"runtime"`
	Limits  limitsRecord      `json:"limits"`
	Config  map[string]string `json:"config,omitempty"`
}

type limitsRecord struct {
	MemoryBytes     int64         `json:"memory_bytes,omitempty"`
	ResultBytes     int           `json:"result_bytes,omitempty"`
	LogBytes        int           `json:"log_bytes,omitempty"`
	CheckpointBytes int           `json:"checkpoint_bytes,omitempty"`
	Timeout         time.Duration `json:"timeout_ns,omitempty"`
	Fuel            int64         `json:"fuel,omitempty"`
}

// version is the record as the runtimes and the registry see it.
func (r *versionRecord) version() *handlers.Version {
	return &handlers.Version{Tenant: r.Tenant, Type: r.Type, Number: r.Version, Runtime: r.Runtime, SHA256: r.SHA256, Kind: r.Kind,
		Limits: handlers.Limits(r.Limits), Config: r.Config}
}

// liveRecord is the alias of a type.
type liveRecord struct {
	Tenant   string `json:"tenant"`
	Type     string `json:"type"`
	Version  int    `json:"version"`
	Previous []int  `json:"previous,omitempty"` // live before, the latest last; at most previousKept

	revision int64
}

const previousKept = 50

func versionPrefix(tenant, typ string) string { return tenant + "/" + typ + "/" }

func versionKey(tenant, typ string, number int) string {
	return fmt.Sprintf("%s%010d", versionPrefix(tenant, typ), number)
}

// list reads all records of a kind below a prefix. One that cannot be read is logged and left out: it must not keep the others
// from being used.
func list[T any](ctx context.Context, c *Catalog, kind, prefix string, each func(queue.Record, T)) error {
	after := ""
	for {
		page, err := c.o.Records.ListRecords(ctx, kind, prefix, after, 500)
		if err != nil {
			return fmt.Errorf("list %s records: %w", kind, err)
		}
		for _, rec := range page {
			after = rec.Key
			var v T
			if err := json.Unmarshal(rec.Value, &v); err != nil {
				c.o.Log.Error("stored record cannot be read", "kind", kind, "key", rec.Key, "error", err)
				continue
			}
			each(rec, v)
		}
		if len(page) < 500 {
			return nil
		}
	}
}

// storedVersion is a version with the revision of its record.
type storedVersion struct {
	versionRecord
	revision int64
}

// versionsOf returns the versions of a type, oldest first, and its alias (zero when none is live).
func (c *Catalog) versionsOf(ctx context.Context, tenant, typ string) ([]storedVersion, liveRecord, error) {
	var versions []storedVersion
	err := list(ctx, c, kindVersion, versionPrefix(tenant, typ), func(rec queue.Record, v versionRecord) {
		versions = append(versions, storedVersion{v, rec.Revision})
	})
	if err != nil {
		return nil, liveRecord{}, err
	}
	live, err := c.liveOf(ctx, tenant, typ)
	return versions, live, err
}

func (c *Catalog) liveOf(ctx context.Context, tenant, typ string) (liveRecord, error) {
	rec, err := c.o.Records.GetRecord(ctx, kindLive, tenant+"/"+typ)
	if errors.Is(err, queue.ErrNotFound) {
		return liveRecord{Tenant: tenant, Type: typ}, nil
	}
	if err != nil {
		return liveRecord{}, fmt.Errorf("read the live version of %s: %w", typ, err)
	}
	var live liveRecord
	if err := json.Unmarshal(rec.Value, &live); err != nil {
		return liveRecord{}, fmt.Errorf("%s record %q cannot be read: %w", kindLive, rec.Key, err)
	}
	live.revision = rec.Revision
	return live, nil
}

func (c *Catalog) getVersion(ctx context.Context, tenant, typ string, number int) (*storedVersion, error) {
	rec, err := c.o.Records.GetRecord(ctx, kindVersion, versionKey(tenant, typ, number))
	if errors.Is(err, queue.ErrNotFound) {
		return nil, notFound(typ, number)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s version %d: %w", typ, number, err)
	}
	v := storedVersion{revision: rec.Revision}
	if err := json.Unmarshal(rec.Value, &v.versionRecord); err != nil {
		return nil, fmt.Errorf("%s record %q cannot be read: %w", kindVersion, rec.Key, err)
	}
	return &v, nil
}

func (c *Catalog) putVersion(ctx context.Context, v *versionRecord, ifRevision int64) (int64, error) {
	value, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("encode %s version %d: %w", v.Type, v.Version, err)
	}
	return c.o.Records.PutRecord(ctx, kindVersion, versionKey(v.Tenant, v.Type, v.Version), value, ifRevision)
}

// putLive writes an alias if it was not changed since it was read, and tells the other hosts.
func (c *Catalog) putLive(ctx context.Context, live liveRecord) error {
	if over := len(live.Previous) - previousKept; over > 0 {
		live.Previous = slices.Clone(live.Previous[over:])
	}
	value, err := json.Marshal(live)
	if err != nil {
		return fmt.Errorf("encode the live version of %s: %w", live.Type, err)
	}
	if _, err := c.o.Records.PutRecord(ctx, kindLive, live.Tenant+"/"+live.Type, value, live.revision); err != nil {
		return fmt.Errorf("make %s version %d live: %w", live.Type, live.Version, err)
	}
	return c.tellOthers(ctx, live.Tenant, live.Type)
}

// shown is the version with what the alias adds to it.
func shown(v VersionInfo, live liveRecord) VersionInfo {
	v.Percent = 0
	if v.State == StateReady && v.Version == live.Version {
		v.State, v.Percent = StateLive, 100
	}
	v.Imports = append([]string{}, v.Imports...) // [] in JSON, not null
	v.Warnings = append([]string{}, v.Warnings...)
	return v
}
