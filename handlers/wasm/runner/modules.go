package runner

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/artifact"
	"github.com/taskhost/taskhost/handlers/wasm/engine"
)

// modules keeps loaded modules by artifact, the least recently used one going first. A module in use is never closed.
type modules struct {
	max int

	mu     sync.Mutex
	loaded map[moduleKey]*list.Element // of *entry
	order  *list.List                  // most recently used first
}

type moduleKey struct {
	dir  string
	kind handlers.Kind
}

type entry struct {
	key    moduleKey
	ready  chan struct{} // closed when module and err are set
	module *engine.Module
	err    error
	users  int
	gone   bool // out of the list; closed by its last user
}

func newModules(max int) *modules {
	return &modules{max: max, loaded: map[moduleKey]*list.Element{}, order: list.New()}
}

// use returns the loaded module of an artifact, loading it if need be; concurrent users wait for one load. done must be called after
// the last use. Failures are not kept.
func (m *modules) use(ctx context.Context, dir string, kind handlers.Kind) (_ *engine.Module, done func() error, _ error) {
	key := moduleKey{dir, kind}
	m.mu.Lock()
	el, ok := m.loaded[key]
	if !ok {
		el = m.order.PushFront(&entry{key: key, ready: make(chan struct{})})
		m.loaded[key] = el
	}
	m.order.MoveToFront(el)
	e := el.Value.(*entry)
	e.users++
	victims := m.evict()
	m.mu.Unlock()

	err := closeAll(victims)
	if !ok {
		e.module, e.err = load(ctx, dir, kind)
		if e.err != nil {
			m.mu.Lock()
			m.remove(el)
			m.mu.Unlock()
		}
		close(e.ready)
	} else {
		<-e.ready
	}
	if err := errors.Join(e.err, err); err != nil {
		return nil, nil, errors.Join(err, m.done(e))
	}
	return e.module, func() error { return m.done(e) }, nil
}

func load(ctx context.Context, dir string, kind handlers.Kind) (*engine.Module, error) {
	module, err := os.ReadFile(filepath.Join(dir, artifact.ModuleFile))
	if err != nil {
		return nil, fmt.Errorf("artifact: %w", err)
	}
	m, err := engine.Load(context.WithoutCancel(ctx), module, kind, filepath.Join(dir, artifact.CacheDir))
	if err != nil {
		return nil, err
	}
	lines := filepath.Join(dir, artifact.LinesFile)
	if _, err := os.Stat(lines); err == nil {
		m.SetLines(lines)
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *modules) done(e *entry) error {
	m.mu.Lock()
	e.users--
	last := e.users == 0 && e.gone && e.module != nil
	m.mu.Unlock()
	if last {
		return e.module.Close()
	}
	return nil
}

// evict takes what is over the bound out of the list and returns what nobody uses, to be closed. The lock is held.
func (m *modules) evict() (unused []*entry) {
	for m.order.Len() > m.max {
		el := m.order.Back()
		e := el.Value.(*entry)
		m.remove(el)
		if e.users == 0 {
			unused = append(unused, e)
		}
	}
	return unused
}

func (m *modules) remove(el *list.Element) {
	e := el.Value.(*entry)
	if !e.gone {
		e.gone = true
		m.order.Remove(el)
		delete(m.loaded, e.key)
	}
}

func closeAll(unused []*entry) (err error) {
	for _, e := range unused {
		if e.module != nil {
			err = errors.Join(err, e.module.Close())
		}
	}
	return err
}

// close closes what nobody uses.
func (m *modules) close() error {
	m.mu.Lock()
	m.max = 0
	unused := m.evict()
	m.mu.Unlock()
	return closeAll(unused)
}
