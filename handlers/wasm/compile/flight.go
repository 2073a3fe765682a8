package compile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/admission"
	"github.com/taskhost/taskhost/handlers/wasm/artifact"
	"github.com/taskhost/taskhost/handlers/wasm/engine"
)

// order is a wish for an artifact.
type order struct {
	tenant      string
	sha256      string
	memoryBytes int64
	source      func(context.Context) ([]byte, error)
	upload      bool // the module is held in memory while it waits, so only so many may
}

// result is an artifact and what the memory limit makes of it.
type result struct {
	artifact *artifact.Artifact
	memory   handlers.Memory
	warnings []string
	took     time.Duration // 0 = the artifact was there
}

// flight is one artifact on its way; everybody who wants it waits for the same one. It ends early when nobody waits any more.
type flight struct {
	cancel  context.CancelCauseFunc
	waiters int // guarded by Service.mu
	done    chan struct{}
	result  *result
	err     error
}

var errNobodyWaits = errors.New("nobody waits for the artifact any more")

// obtain returns the artifact of an order, from the store or by a flight.
func (s *Service) obtain(ctx context.Context, o order) (*result, error) {
	if o.memoryBytes <= 0 {
		o.memoryBytes = s.opts.MemoryBytes
	}
	id := artifact.ThisMachine(o.sha256, Rewriter(), engine.Identity())
	key := fmt.Sprintf("%s/%d", id.Key(), o.memoryBytes)
	if r := s.refused.get(key); r != nil {
		return nil, r
	}
	f, err := s.join(key, id, o)
	if err != nil {
		return nil, err
	}
	select {
	case <-f.done:
		s.leave(key, f)
		return f.result, f.err
	case <-ctx.Done():
		s.leave(key, f)
		return nil, context.Cause(ctx)
	}
}

func (s *Service) join(key string, id artifact.Identity, o order) (*flight, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case stateNew:
		return nil, errors.New("compile: the service is not started")
	case stateClosed:
		return nil, handlers.ErrStopped
	}
	if f, ok := s.flights[key]; ok {
		f.waiters++
		return f, nil
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	f := &flight{cancel: cancel, waiters: 1, done: make(chan struct{})}
	s.flights[key] = f
	s.wg.Go(func() {
		defer cancel(nil)
		f.result, f.err = s.fly(ctx, key, id, o)
		s.mu.Lock()
		if s.flights[key] == f {
			delete(s.flights, key)
		}
		s.mu.Unlock()
		close(f.done)
	})
	return f, nil
}

// leave ends a flight that nobody waits for, and takes it off the list at once: who comes next starts a new one.
func (s *Service) leave(key string, f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiters--; f.waiters == 0 {
		if s.flights[key] == f {
			delete(s.flights, key)
		}
		f.cancel(errNobodyWaits)
	}
}

// fly gets the artifact: from the store if it verifies there, else from a child.
func (s *Service) fly(ctx context.Context, key string, id artifact.Identity, o order) (*result, error) {
	a, err := s.opts.Store.Open(id.Key())
	var tampered *artifact.TamperedError
	switch {
	case err == nil:
		return finish(a, o.memoryBytes, 0)
	case errors.As(err, &tampered):
		s.log.Error("a compiled artifact is not as it was published; compiling it again", "artifact", tampered.Key, "file", tampered.File, "reason", tampered.Reason)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := s.turns.take(ctx, o.tenant, o.upload); err != nil {
		return nil, err
	}
	defer s.turns.give()
	module, err := o.source(ctx)
	if err != nil {
		return nil, fmt.Errorf("fetch the module %.12s: %w", o.sha256, err)
	}
	if sum := sha256.Sum256(module); hex.EncodeToString(sum[:]) != o.sha256 {
		return nil, fmt.Errorf("the stored module has sha256 %.12x; %.12s is expected", sum, o.sha256)
	}
	return s.make(ctx, key, id, o, module)
}

// make compiles in a child and publishes what it made.
func (s *Service) make(ctx context.Context, key string, id artifact.Identity, o order, module []byte) (*result, error) {
	draft, err := s.opts.Store.NewDraft()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := draft.Discard(); err != nil {
			s.log.Warn("a compile draft could not be removed", "dir", draft.Dir, "error", err)
		}
	}()
	start := time.Now()
	e, err := s.run(ctx, draft.Dir, module, o.memoryBytes)
	if err != nil {
		return nil, err
	}
	took := time.Since(start)
	log := s.log.With("tenant", o.tenant, "sha256", o.sha256, "size_bytes", len(module), "took", took, "cpu", e.cpu, "max_rss_bytes", e.maxRSS)
	v, remember, err := s.judge(e, len(module))
	if err != nil {
		log.Error("compile failed", "error", err, "stderr", line(e.stderr))
		return nil, err
	}
	if v.Refusal != nil {
		r := v.Refusal.handlers()
		log.Info("module refused", "reason", r.Reason)
		if remember {
			s.refused.add(key, r)
		}
		return nil, r
	}
	a, err := s.opts.Store.Publish(draft, artifact.Manifest{Identity: id, Kind: v.Report.Kind, Memory: v.Report.DeclaredMemory,
		Imports: v.Report.Imports, Exports: v.Report.Exports, Features: v.Report.Features, Warnings: v.Report.Warnings})
	if err != nil {
		log.Error("a compile child left what cannot be published", "error", err)
		return nil, err
	}
	log.Info("module compiled", "artifact", a.Key, "kind", a.Manifest.Kind)
	return finish(a, o.memoryBytes, took)
}

// finish applies the memory limit, which is no part of an artifact: one artifact serves versions with different limits.
func finish(a *artifact.Artifact, memoryBytes int64, took time.Duration) (*result, error) {
	memory, warnings, refusal := admission.JudgeMemory(a.Manifest.Memory, memoryBytes)
	if refusal != nil {
		return nil, refusal
	}
	return &result{artifact: a, memory: memory, warnings: warnings, took: took}, nil
}
