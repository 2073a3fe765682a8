package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"

	"github.com/taskhost/taskhost/config"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/plugin"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
	"github.com/taskhost/taskhost/host"
	"github.com/taskhost/taskhost/host/catalog"
	"github.com/taskhost/taskhost/host/httpapi"
	"github.com/taskhost/taskhost/queue"
)

// Options of a Server.
type Options struct {
	Config      config.Config // checked
	Log         *slog.Logger
	Commit      string      // as for Version
	AllowRemote bool        // listen on any address although there is no login
	Provided    []Provided  // handlers that come with the program
	Exe         string      // the program for child processes; "" = this one
	Fatal       func(error) // told once when the store is lost for good; must return at once
}

// Provided is a handler that comes with the program, served to every tenant.
type Provided struct {
	Type   string
	Module []byte
}

// ErrRemoteWithoutLogin refuses an address that others can reach while there is no login.
var ErrRemoteWithoutLogin = errors.New("this version has no login: everyone who reaches the address could run jobs")

// Server is a whole taskhost process: store, runtime, host, API. Close ends it.
type Server struct {
	o        Options
	store    Store
	runtime  Runtime
	plugins  *plugin.Runtime // nil without the role worker
	host     *host.Host
	api      *httpapi.Server // nil without the role api
	draining atomic.Bool
}

// Open opens the parts in order and returns when jobs are taken and requests answered. When it fails, or ctx ends first,
// nothing is left open.
func Open(ctx context.Context, o Options) (_ *Server, err error) {
	if o.Config.HasRole(config.RoleAPI) && !o.AllowRemote && !IsLoopback(o.Config.Listen) {
		return nil, fmt.Errorf("%w; listen is %s", ErrRemoteWithoutLogin, o.Config.Listen)
	}
	configured, err := readHandlers(o)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Config.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	s := &Server{o: o}
	defer func() {
		if err != nil {
			s.Kill()
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
		}
	}()
	if s.store, err = awaitStore(ctx, &o.Config, o.Log, o.Fatal); err != nil {
		return s, err
	}
	if err = s.store.Configure(ctx, scheduling(&o.Config)); err != nil {
		return s, fmt.Errorf("configure the store: %w", err)
	}
	if s.runtime, err = openRuntime(&o.Config, o.Exe, o.Log); err != nil {
		return s, err
	}
	if s.plugins, err = openPlugins(&o.Config, o.Log); err != nil {
		return s, err
	}
	if err = s.openHost(); err != nil {
		return s, err
	}
	if s.plugins != nil {
		if err = s.host.Catalog().Install(ctx, s.plugins.Versions()); err != nil {
			return s, err
		}
	}
	// First the handlers, then the jobs: whoever enqueues as soon as the address answers finds them live.
	if err = s.host.Catalog().EnsureConfigured(ctx, configured); err != nil {
		return s, err
	}
	if err = s.host.Schedules().EnsureConfigured(ctx, configuredSchedules(o.Config.Schedules)); err != nil {
		return s, err
	}
	if err = s.host.Start(ctx); err != nil {
		return s, err
	}
	if err = s.openAPI(ctx); err != nil {
		return s, err
	}
	return s, context.Cause(ctx)
}

func (s *Server) openHost() (err error) {
	ho := hostOptions(&s.o.Config)
	ho.Version = Version(s.o.Commit).Version
	ho.Store, ho.Runtimes, ho.Log = s.store, []handlers.Runtime{s.runtime}, s.o.Log
	if s.plugins != nil {
		ho.Runtimes = append(ho.Runtimes, s.plugins)
	}
	s.host, err = host.New(ho)
	return err
}

func (s *Server) openAPI(ctx context.Context) (err error) {
	if !s.o.Config.HasRole(config.RoleAPI) {
		return nil
	}
	version := Version(s.o.Commit)
	version.Store = s.store.Capabilities().Name
	api, err := httpapi.New(httpapi.Options{
		Listen: s.o.Config.Listen, AllowRemote: s.o.AllowRemote,
		Store: cancelNow{s.store, s.host}, Types: s.host.Registry(), Handlers: s.host.Catalog(), Operations: s.host.Operations(), Schedules: s.host.Schedules(), Workers: s.host.Workers(),
		Limits: limits(s.o.Config.Defaults), Defaults: apiDefaults(s.o.Config.Defaults),
		Probes: s.probes(), Sandbox: s.runtime.SandboxLevel(), Version: version, Log: s.o.Log.With("part", "api"),
	})
	if err != nil {
		return err
	}
	if err := api.Start(ctx); err != nil {
		return err
	}
	s.api = api
	return nil
}

func (s *Server) probes() []httpapi.Probe {
	probes := []httpapi.Probe{
		{Name: "process", Check: func(context.Context) error {
			if s.draining.Load() {
				return errors.New("draining")
			}
			return nil
		}},
		{Name: "store", Check: func(context.Context) error { return s.store.Err() }},
		{Name: "host", Check: func(context.Context) error { return s.host.Ready() }},
	}
	probes = append(probes, httpapi.Probe{Name: "quarantine", Advisory: true, Check: func(context.Context) error { return s.host.Catalog().Quarantines() }})
	if s.plugins != nil {
		probes = append(probes, httpapi.Probe{Name: "plugins", Advisory: true, Check: func(context.Context) error { return s.plugins.Ready() }})
	}
	return probes
}

// cancelNow makes the cancel of a running job reach its handler at once, rather than with the next extension of its lease.
type cancelNow struct {
	Store
	host *host.Host
}

// CancelJob cancels, and asks the lease keeper to look.
func (c cancelNow) CancelJob(ctx context.Context, tenant, id string) (*queue.Job, error) {
	job, err := c.Store.CancelJob(ctx, tenant, id)
	if err == nil && job.CancelRequested {
		c.host.CheckLeases()
	}
	return job, err
}

// readHandlers reads the modules of the configured handlers, before anything is opened.
func readHandlers(o Options) ([]catalog.ConfiguredHandler, error) {
	var list []catalog.ConfiguredHandler
	for _, p := range o.Provided {
		list = append(list, catalog.ConfiguredHandler{Type: p.Type, Module: p.Module})
	}
	for i, h := range o.Config.Handlers {
		module, err := os.ReadFile(h.Wasm)
		if err != nil {
			return nil, &config.Error{Problems: []config.Problem{{Path: fmt.Sprintf("handlers[%d].wasm", i), Message: err.Error()}}}
		}
		list = append(list, catalog.ConfiguredHandler{
			Type: h.Type, Module: module, Config: h.Config,
			Limits: handlers.Limits{MemoryBytes: int64(h.Memory), Timeout: h.Timeout, Fuel: h.Fuel},
		})
	}
	return list, nil
}

// URL is where the API is, "" without one.
func (s *Server) URL() string {
	if s.api == nil {
		return ""
	}
	addr := s.api.Addr().String()
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	return "http://" + addr
}

// Concurrency is how many jobs run at once.
func (s *Server) Concurrency() int { return s.host.Concurrency() }

// Sandbox is the lock-down of the child processes that was reached.
func (s *Server) Sandbox() string { return s.runtime.SandboxLevel() }

// SandboxMissing is what keeps the lock-down from the highest level, in one line; empty if nothing does.
func (s *Server) SandboxMissing() string { return s.runtime.SandboxReport().Missing(lockdown.Strict) }

// Kill makes a Close, now or later, give running jobs back at once.
func (s *Server) Kill() {
	if s.host != nil {
		s.host.Kill()
	}
}

// Close drains: no job is started any more, running ones may finish for worker.drain, the rest goes back to the front of its
// queue. Requests are answered until then, and readiness is false. It is for one caller, once.
func (s *Server) Close(ctx context.Context) error {
	s.draining.Store(true)
	var errs []error
	if s.host != nil {
		errs = append(errs, s.host.Stop(ctx))
	}
	if s.api != nil {
		stop, cancel := context.WithTimeout(ctx, stopAPIWithin)
		errs = append(errs, s.api.Stop(stop))
		cancel()
	}
	if s.runtime != nil {
		stop, cancel := context.WithTimeout(ctx, stopRuntimeWithin)
		errs = append(errs, s.runtime.Close(stop))
		cancel()
	}
	if s.plugins != nil {
		stop, cancel := context.WithTimeout(ctx, stopRuntimeWithin)
		errs = append(errs, s.plugins.Close(stop))
		cancel()
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}

// IsLoopback reports whether only this machine reaches an address such as "127.0.0.1:7070".
func IsLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
