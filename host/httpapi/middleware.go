package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"
)

// requestKey finds the request id in a context.
type requestKey struct{}

// requestID is the id of the request that ctx belongs to, "" outside of one.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// requestIDMax bounds an id that a caller or a proxy gives.
const requestIDMax = 64

// newRequestID takes the caller's id when it is harmless, else makes one.
func newRequestID(r *http.Request) string {
	if given := r.Header.Get("X-Request-Id"); given != "" && len(given) <= requestIDMax && plainID(given) {
		return given
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return "req_" + hex.EncodeToString(b[:])
}

func plainID(id string) bool {
	for _, c := range []byte(id) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// middleware surrounds every request, from the outside in: request id and log, panics, who may call, the routes.
func (s *Server) middleware(routes http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.writeProblem(w, r, newProblem(CodeForbidden, "a web page of another origin may not change anything here"))
	}))
	return s.identify(s.recover(s.hostCheck(crossOrigin.Handler(routes))))
}

// identify gives the request its id and logs it at debug.
func (s *Server) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := newRequestID(r)
		w.Header().Set("X-Request-Id", id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		ctx := context.WithValue(r.Context(), requestKey{}, id)
		rec := &recorder{ResponseWriter: w}
		start := time.Now()
		next.ServeHTTP(rec, r.WithContext(ctx))
		if s.log.Enabled(ctx, slog.LevelDebug) {
			s.log.DebugContext(ctx, "request", slog.String("request_id", id), slog.String("method", r.Method),
				slog.String("path", r.URL.Path), slog.Int("status", rec.status), slog.Int64("bytes", rec.bytes),
				slog.Duration("took", time.Since(start)), slog.String("remote", r.RemoteAddr))
		}
	})
}

// recover turns a panic into an answer, or, when part of an answer is out already, cuts the connection so that nobody
// takes it for whole.
func (s *Server) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); ok {
				if errors.Is(err, http.ErrAbortHandler) {
					panic(v)
				}
				if errors.As(err, new(*net.OpError)) { // huma panics when a caller is gone before its answer
					s.log.DebugContext(r.Context(), "an answer did not arrive", slog.String("request_id", requestID(r.Context())), slog.Any("error", err))
					panic(http.ErrAbortHandler)
				}
			}
			s.log.ErrorContext(r.Context(), "panic while serving a request", slog.String("request_id", requestID(r.Context())),
				slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
			if rec, ok := w.(*recorder); ok && rec.status != 0 {
				panic(http.ErrAbortHandler)
			}
			s.writeProblem(w, r, newProblem(CodeInternal, "the server failed; its log has the reason under this request id"))
		}()
		next.ServeHTTP(w, r)
	})
}

// hostCheck refuses, on a server without login, requests that are addressed to another name than this machine's: a web
// page can point a name of its own at 127.0.0.1 (DNS rebinding) and would then count as the same origin.
func (s *Server) hostCheck(next http.Handler) http.Handler {
	if !s.local {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
			host = host[1 : len(host)-1]
		}
		if !isLoopback(host) {
			s.writeProblem(w, r, newProblem(CodeForbidden, "Host %.80q is not this machine; without login the server answers to "+
				"localhost, 127.0.0.1 and [::1] only", r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// recorder remembers what was sent.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader sends the status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK { // 1xx are not the answer
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
