package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taskhost/taskhost/host/httpapi/jsonin"
	"github.com/taskhost/taskhost/queue"
)

// Bounds of the server.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	// requestTimeout bounds reading a request, and writing its answer, where nothing else does; a followed log lifts it.
	requestTimeout = moduleReadTimeout + 2*time.Minute
	maxHeaderBytes = 64 << 10
	waitMax        = 55 * time.Second // below the minute after which proxies commonly give up

	// batchPayloads is how many payloads of the full size fit into one batch; a thousand of them would let a single
	// request hold a gigabyte.
	batchPayloads = 64
	// moduleBytesDefault is the largest module that is admitted.
	moduleBytesDefault = 64 << 20
)

// Options are what a Server is made of.
type Options struct {
	// Listen is the address for Start, such as "127.0.0.1:7070"; port 0 takes a free one. Empty means that only Handler
	// is used.
	Listen string
	// AllowRemote permits an address that is not loopback although there is no login.
	AllowRemote bool

	Store      Store      // required
	Types      Types      // nil: unknown types are not told apart
	Handlers   Handlers   // nil: the handler routes are absent
	Operations Operations // nil: the operation routes are absent
	Workers    Workers    // nil: the list of workers is absent
	Schedules  Schedules  // nil: the schedule routes are absent

	Auth     Authenticator // nil = Anonymous("default")
	Limits   queue.Limits  // zero = queue.DefaultLimits
	Defaults Defaults
	Probes   []Probe // of /readyz
	Sandbox  string  // level of lock-down, for /readyz; "" = not shown

	ModuleBytes int64 // largest module; 0 = 64 MiB
	BatchBytes  int64 // largest body of a batch; 0 = 64 × Limits.PayloadBytes

	Version Version
	Log     *slog.Logger // nil = slog.Default
}

// Defaults are filled into jobs that do not say.
type Defaults struct {
	Queue       string        // "" = "default"
	MaxAttempts int           // 0 = 5
	Backoff     queue.Backoff // zero = the defaults of queue.Backoff
}

// Version is what GET /v1/version answers.
type Version struct {
	Version string `json:"version" example:"0.1.0"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go,omitempty"`
	Store   string `json:"store,omitempty" doc:"the store in use" example:"sqlite"`
}

// Server serves the API.
type Server struct {
	opt     Options
	log     *slog.Logger
	auth    Authenticator
	decoder jobDecoder // without a tenant
	mux     *http.ServeMux
	api     huma.API
	handler http.Handler
	local   bool // requests must be addressed to this machine; see hostCheck
	ready   readiness
	scans   sync.Pool // of *jsonin.Scanner, whose buffer is the largest part of a small request

	stopping context.Context // ends when Stop begins, with errStopping
	stop     context.CancelCauseFunc

	mu       sync.Mutex
	http     *http.Server
	listener net.Listener
	served   chan struct{} // closed when Serve has returned
}

// errStopping ends the waits of a server that stops.
var errStopping = errors.New("the server is stopping")

// New checks the options and builds the routes. It listens to nothing yet.
func New(opt Options) (*Server, error) {
	if opt.Store == nil {
		return nil, errors.New("httpapi: Options.Store is required")
	}
	if opt.Auth == nil {
		opt.Auth = Anonymous("default")
	}
	if opt.Limits == (queue.Limits{}) {
		opt.Limits = queue.DefaultLimits()
	}
	if opt.Log == nil {
		opt.Log = slog.Default()
	}
	if opt.Defaults.Queue == "" {
		opt.Defaults.Queue = "default"
	}
	if opt.Defaults.MaxAttempts == 0 {
		opt.Defaults.MaxAttempts = 5
	}
	if opt.ModuleBytes == 0 {
		opt.ModuleBytes = moduleBytesDefault
	}
	if opt.BatchBytes == 0 {
		opt.BatchBytes = batchPayloads * int64(opt.Limits.PayloadBytes)
	}
	if err := checkListen(opt); err != nil {
		return nil, err
	}
	s := &Server{opt: opt, log: opt.Log, auth: opt.Auth, mux: http.NewServeMux()}
	s.local = !opt.Auth.Login() && !opt.AllowRemote
	s.decoder = jobDecoder{limits: opt.Limits, defaults: opt.Defaults, bounds: bounds(opt)}
	s.ready.probes = opt.Probes
	s.scans.New = func() any { return jsonin.New(nil) }
	s.stopping, s.stop = context.WithCancelCause(context.Background())
	if err := s.routes(); err != nil {
		return nil, err
	}
	s.handler = s.middleware(s.mux)
	return s, nil
}

// bounds is how long a body may be. A single job is one payload in base64, headers and labels with every character
// escaped, and room for the rest.
func bounds(opt Options) bodyBounds {
	single := int64(opt.Limits.PayloadBytes)*4/3 + 12*int64(opt.Limits.HeaderBytes) + smallBodyBytes
	return bodyBounds{single: single, batch: max(single, opt.BatchBytes)}
}

// checkListen refuses to open a server without login to others.
func checkListen(opt Options) error {
	if opt.Listen == "" || opt.Auth.Login() || opt.AllowRemote {
		return nil
	}
	host, _, err := net.SplitHostPort(opt.Listen)
	if err != nil {
		return fmt.Errorf("listen address %q: %w", opt.Listen, err)
	}
	if !isLoopback(host) {
		return fmt.Errorf("listen address %q is not loopback and there is no login: everyone who reaches it could run jobs; "+
			"use 127.0.0.1, or allow it explicitly", opt.Listen)
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Handler serves the API without a listener of its own. Waiting requests end with their own contexts, and with Stop.
func (s *Server) Handler() http.Handler { return s.handler }

// Start listens and serves until Stop. It returns when connections are accepted. It may be called once.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return errors.New("httpapi: started twice")
	}
	if s.stopping.Err() != nil {
		return errStopping
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.opt.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.listener = listener
	s.http = &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	s.served = make(chan struct{})
	go func() {
		defer close(s.served)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the HTTP server ended", slog.Any("error", err))
		}
	}()
	return nil
}

// Addr is the address that Start listens on, nil before.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Stop stops accepting, answers every waiting request at once and lets the others finish until ctx ends; then their
// connections are cut and the error says so. It is safe to call twice, and on a Server that was never started.
func (s *Server) Stop(ctx context.Context) error {
	s.stop(errStopping)
	s.mu.Lock()
	server, served := s.http, s.served
	s.mu.Unlock()
	if server == nil {
		return nil
	}
	err := server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests were cut off: %w", err), server.Close())
	}
	<-served
	return err
}
