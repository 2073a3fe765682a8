package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/taskhost/taskhost/host/catalog"
	"github.com/taskhost/taskhost/host/httpapi/jsonin"
	"github.com/taskhost/taskhost/queue"
)

// Handlers keeps handler versions; *catalog.Catalog is one.
type Handlers interface {
	// Upload admits a module and never activates it. created is false for bytes that are there already. A module at fault
	// is a *handlers.Refusal.
	Upload(ctx context.Context, tenant, typ string, module []byte) (info catalog.VersionInfo, created bool, err error)
	Versions(ctx context.Context, tenant, typ string) ([]catalog.VersionInfo, error)
	// Get returns one version; 0 is the one that stands for the type.
	Get(ctx context.Context, tenant, typ string, version int) (catalog.VersionInfo, error)
	List(ctx context.Context, tenant string) ([]catalog.VersionInfo, error)
	SetLive(ctx context.Context, tenant, typ string, version int) (catalog.VersionInfo, error)
	Rollback(ctx context.Context, tenant, typ string) (catalog.VersionInfo, error)
	// Quarantined says why the jobs of a tenant do not run with a version of an owner ("" = host-wide); false if they do.
	Quarantined(tenant, owner, typ string, version int) (catalog.Quarantine, bool)
}

// hostWide is the tenant of the handlers that serve every tenant; they come from the configuration.
const hostWide = ""

// HandlerVersion is one version of a handler in an answer.
type HandlerVersion struct {
	Type      string          `json:"type"`
	Version   int             `json:"version"`
	State     catalog.State   `json:"state" enum:"compiling,ready,live,refused"`
	Percent   int             `json:"percent" doc:"share of the type's jobs it gets"`
	HostWide  bool            `json:"host_wide" doc:"set by the configuration for every tenant"`
	SHA256    string          `json:"sha256"`
	SizeBytes int             `json:"size_bytes"`
	Kind      string          `json:"kind" doc:"command or reactor, or native for a plugin of the configuration; empty while compiling"`
	Imports   []string        `json:"imports"`
	Memory    HandlerMemory   `json:"memory"`
	Instance  HandlerInstance `json:"instance"`
	CompileMS int64           `json:"compile_ms"`
	Warnings  []string        `json:"warnings"`
	Exports   []string        `json:"exports" doc:"what the module exports, as name (kind)"`
	Features  []string        `json:"features" doc:"features of WebAssembly that it uses, beyond the first version"`
	Metered   bool            `json:"metered" doc:"the fuel of its jobs is counted, and they can be stopped anywhere"`
	Lines     bool            `json:"source_lines" doc:"traces of its traps name source lines"`
	Refusal   Text            `json:"refusal" doc:"why it was refused"`
	CreatedAt Timestamp       `json:"created_at"`

	Quarantine *HandlerQuarantine `json:"quarantine,omitempty" doc:"why the jobs of the tenant do not run with it: they are put off until a version of the type is made live; absent if they run"`
}

// HandlerQuarantine says what a version has done to be quarantined.
type HandlerQuarantine struct {
	Since     Timestamp `json:"since"`
	Jobs      int       `json:"jobs_crashed" doc:"how many jobs brought their process down within 10 minutes, each alone in it"`
	LastError string    `json:"last_error"`
}

// HandlerMemory is what a module declares, its maximum cut to the limit.
type HandlerMemory struct {
	MinBytes int64 `json:"min_bytes"`
	MaxBytes int64 `json:"max_bytes"`
}

// HandlerInstance says how instances of a version are made.
type HandlerInstance struct {
	Mode   string `json:"mode"`
	Reason string `json:"reason"`
}

// HandlerList lists handlers by type, each by its live version, or its newest when none is live.
type HandlerList struct {
	Handlers   []HandlerVersion `json:"handlers"`
	NextCursor Text             `json:"next_cursor" doc:"always null: the list is whole"`
}

// VersionList lists the versions of a type, newest first.
type VersionList struct {
	Versions   []HandlerVersion `json:"versions"`
	NextCursor Text             `json:"next_cursor" doc:"always null: the list is whole"`
}

// HandlerPath is the input of what is about one handler.
type HandlerPath struct {
	call
	Type string `path:"type" doc:"task type" example:"image.resize"`
}

type versionPath struct {
	HandlerPath
	Version string `path:"version" doc:"number of the version"`
}

type handlerAnswer struct {
	Status   int
	Location string `header:"Location"`
	Body     HandlerVersion
}

type handlerListAnswer struct{ Body HandlerList }

type versionListAnswer struct{ Body VersionList }

func (s *Server) handlerRoutes() {
	if s.opt.Handlers == nil {
		return
	}
	register(s, route{
		id: "upload-version", method: http.MethodPost, path: "/v1/handlers/{type}/versions", tag: "handlers", status: http.StatusCreated,
		summary: "Upload a WebAssembly module as the next version of a handler",
		description: "The module is checked and compiled before the answer; it is not made live. The same bytes again answer the version " +
			"that is there. A module at fault answers module_refused with all reasons.",
		body: binaryBody(moduleTypes()...),
		also: map[int]string{http.StatusOK: "the same bytes are a version already", http.StatusAccepted: "compiling goes on; look again later"},
	}, s.uploadVersion)
	register(s, route{
		id: "list-handlers", method: http.MethodGet, path: "/v1/handlers", tag: "handlers", summary: "List the handlers that serve the tenant",
	}, func(ctx context.Context, in *struct{ call }) (*handlerListAnswer, error) {
		infos, err := s.opt.Handlers.List(ctx, in.tenant)
		if err != nil {
			return nil, err
		}
		return &handlerListAnswer{Body: HandlerList{Handlers: s.viewVersions(in.tenant, infos)}}, nil
	})
	register(s, route{
		id: "get-handler", method: http.MethodGet, path: "/v1/handlers/{type}", tag: "handlers",
		summary: "Show the live version of a handler, or its newest when none is live",
	}, func(ctx context.Context, in *HandlerPath) (*handlerAnswer, error) { return s.getVersion(ctx, in, 0) })
	register(s, route{
		id: "list-versions", method: http.MethodGet, path: "/v1/handlers/{type}/versions", tag: "handlers", summary: "List the versions of a handler",
	}, s.listVersions)
	register(s, route{
		id: "get-version-of-handler", method: http.MethodGet, path: "/v1/handlers/{type}/versions/{version}", tag: "handlers", summary: "Show one version",
	}, func(ctx context.Context, in *versionPath) (*handlerAnswer, error) {
		n, err := parseInteger("version", in.Version, 1, 1<<30)
		if err != nil {
			return nil, err
		}
		return s.getVersion(ctx, &in.HandlerPath, n)
	})
	register(s, route{
		id: "set-live", method: http.MethodPut, path: "/v1/handlers/{type}/live", tag: "handlers", summary: "Make a version live",
		body: s.jsonBody(true, schemaOf[LiveRequest](s)),
	}, s.setLive)
	register(s, route{
		id: "rollback", method: http.MethodPost, path: "/v1/handlers/{type}/rollback", tag: "handlers",
		summary: "Make the version live again that was live before",
	}, func(ctx context.Context, in *HandlerPath) (*handlerAnswer, error) {
		info, err := s.opt.Handlers.Rollback(ctx, in.tenant, in.Type)
		if err != nil {
			return nil, s.notOwned(ctx, in, err)
		}
		return &handlerAnswer{Status: http.StatusOK, Body: s.viewVersion(in.tenant, info)}, nil
	})
}

// moduleTypes are the content types of an upload.
func moduleTypes() []string { return []string{"application/wasm", "application/octet-stream"} }

func (s *Server) uploadVersion(ctx context.Context, in *HandlerPath) (*handlerAnswer, error) {
	if err := queue.ValidName("type", in.Type); err != nil {
		return nil, err
	}
	if t := in.contentType(); !slices.Contains(moduleTypes(), t) {
		return nil, newProblem(CodeUnsupportedMediaType, "Content-Type %.80q is not supported; this route takes the module itself as %s or %s",
			in.request.Header.Get("Content-Type"), moduleTypes()[0], moduleTypes()[1])
	}
	module, err := in.readAll(s.opt.ModuleBytes, moduleReadTimeout)
	if size := (*bodySizeError)(nil); errors.As(err, &size) && size.exact {
		return nil, &queue.LimitError{Field: "module", Limit: "module", Max: size.max, Got: size.got, Unit: "bytes"}
	}
	if err != nil {
		return nil, err
	}
	if len(module) == 0 {
		return nil, invalid("body", "is empty; send the module")
	}
	info, created, err := s.opt.Handlers.Upload(ctx, in.tenant, in.Type, module)
	if err != nil {
		return nil, err
	}
	answer := &handlerAnswer{
		Status: http.StatusOK, Body: s.viewVersion(in.tenant, info),
		Location: fmt.Sprintf("/v1/handlers/%s/versions/%d", info.Type, info.Version),
	}
	switch {
	case info.State == catalog.StateCompiling:
		answer.Status = http.StatusAccepted
	case created:
		answer.Status = http.StatusCreated
	}
	return answer, nil
}

// getVersion looks among the tenant's own handlers first.
func (s *Server) getVersion(ctx context.Context, in *HandlerPath, version int) (*handlerAnswer, error) {
	info, err := s.opt.Handlers.Get(ctx, in.tenant, in.Type, version)
	if errors.Is(err, queue.ErrNotFound) {
		info, err = s.opt.Handlers.Get(ctx, hostWide, in.Type, version)
	}
	if err != nil {
		return nil, noHandler(in.Type, err)
	}
	return &handlerAnswer{Status: http.StatusOK, Body: s.viewVersion(in.tenant, info)}, nil
}

func (s *Server) listVersions(ctx context.Context, in *HandlerPath) (*versionListAnswer, error) {
	infos, err := s.opt.Handlers.Versions(ctx, in.tenant, in.Type)
	if errors.Is(err, queue.ErrNotFound) {
		infos, err = s.opt.Handlers.Versions(ctx, hostWide, in.Type)
	}
	if err != nil {
		return nil, noHandler(in.Type, err)
	}
	return &versionListAnswer{Body: VersionList{Versions: s.viewVersions(in.tenant, infos)}}, nil
}

func (s *Server) setLive(ctx context.Context, in *HandlerPath) (*handlerAnswer, error) {
	version, percent := 0, 100
	err := in.scan(false, smallBodyBytes, func(sc *jsonin.Scanner) error {
		f := fieldReader{s: sc}
		return sc.Object(func(key string) (err error) {
			switch key {
			case "version":
				version, err = f.integer(key, 1, 1<<30)
			case "percent":
				percent, err = f.integer(key, 0, 100)
			default:
				return f.unknown(key, nil, "version", "percent")
			}
			return err
		})
	})
	switch {
	case err != nil:
		return nil, err
	case version == 0:
		return nil, invalid("version", "is required")
	case percent != 100:
		return nil, invalid("percent", "must be 100: sharing a type between versions is not in this version, got %d", percent)
	}
	info, err := s.opt.Handlers.SetLive(ctx, in.tenant, in.Type, version)
	if err != nil {
		return nil, s.notOwned(ctx, in, err)
	}
	return &handlerAnswer{Status: http.StatusOK, Body: s.viewVersion(in.tenant, info)}, nil
}

// notOwned tells a type that the tenant does not have from one that the configuration owns.
func (s *Server) notOwned(ctx context.Context, in *HandlerPath, err error) error {
	if !errors.Is(err, queue.ErrNotFound) {
		return err
	}
	if _, own := s.opt.Handlers.Versions(ctx, in.tenant, in.Type); errors.Is(own, queue.ErrNotFound) {
		if _, wide := s.opt.Handlers.Versions(ctx, hostWide, in.Type); wide == nil {
			return newProblem(CodeManagedByConfig, "the handler %q is set by the configuration; upload a version of your own to replace it for your jobs", in.Type)
		}
	}
	return noHandler(in.Type, err)
}

func noHandler(typ string, err error) error {
	if errors.Is(err, queue.ErrNotFound) || errors.Is(err, queue.ErrInvalid) {
		return newProblem(CodeNotFound, "no such handler or version of type %.140q", typ)
	}
	return err
}

func (s *Server) viewVersions(tenant string, infos []catalog.VersionInfo) []HandlerVersion {
	list := make([]HandlerVersion, len(infos))
	for i, info := range infos {
		list[i] = s.viewVersion(tenant, info)
	}
	return list
}

func (s *Server) viewVersion(tenant string, v catalog.VersionInfo) HandlerVersion {
	view := HandlerVersion{
		Type: v.Type, Version: v.Version, State: v.State, Percent: v.Percent, HostWide: v.Tenant == hostWide, SHA256: v.SHA256,
		SizeBytes: v.SizeBytes, Kind: string(v.Kind), Imports: notNil(v.Imports),
		Memory:    HandlerMemory{MinBytes: v.Memory.MinBytes, MaxBytes: v.Memory.MaxBytes},
		Instance:  HandlerInstance{Mode: v.Instance.Mode, Reason: v.Instance.Reason},
		CompileMS: v.CompileMS, Warnings: notNil(v.Warnings), Exports: notNil(v.Exports), Features: notNil(v.Features),
		Metered: v.Metered, Lines: v.Lines, Refusal: Text(v.Refusal), CreatedAt: Timestamp{v.CreatedAt},
	}
	if q, is := s.opt.Handlers.Quarantined(tenant, v.Tenant, v.Type, v.Version); is {
		view.Quarantine = &HandlerQuarantine{Since: Timestamp{q.Since}, Jobs: q.Jobs, LastError: q.LastError}
	}
	return view
}

// notNil makes an empty list [] rather than null.
func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
