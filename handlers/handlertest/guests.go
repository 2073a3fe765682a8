package handlertest

import (
	_ "embed"
	"sync"
	"testing"
)

//go:embed testdata/reactor/main.go
var reactorSource string

//go:embed testdata/command/main.go
var commandSource string

// Guests are the conformance handlers as WebAssembly, built from testdata when they are first asked for, once per Guests. Both
// functions are required.
type Guests struct {
	// Build compiles a Go file; see wasmtest.GoReactor and wasmtest.GoCommand.
	BuildReactor, BuildCommand func(tb testing.TB, source string, flags ...string) []byte

	mu               sync.Mutex
	reactor, command []byte
}

// Reactor returns the conformance handler as a reactor.
func (g *Guests) Reactor(tb testing.TB) []byte {
	tb.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reactor == nil {
		g.reactor = g.BuildReactor(tb, reactorSource)
	}
	return g.reactor
}

// Command returns the conformance handler as a command.
func (g *Guests) Command(tb testing.TB) []byte {
	tb.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.command == nil {
		g.command = g.BuildCommand(tb, commandSource)
	}
	return g.command
}
