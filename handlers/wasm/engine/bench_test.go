package engine

import (
	"testing"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
	"github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// BenchmarkFreshInstance is one attempt in a fresh instance, without any process boundary: what a job costs beside its own instructions.
func BenchmarkFreshInstance(b *testing.B) {
	for _, c := range []struct {
		name    string
		payload string
		load    func() *Module
	}{
		{"empty", "", func() *Module { return load(b, handlers.KindReactor, nopReactor) }},
		{"echo", "payload", func() *Module { return load(b, handlers.KindReactor, wasmtest.EchoReactor()) }},
		{"go-reactor", "count", func() *Module { return goReactor(b) }},
		{"go-command", "echo x", func() *Module { return goCommand(b) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := c.load()
			b.ReportAllocs()
			for b.Loop() {
				if out := m.Run(b.Context(), attempt.New(input(c.payload), &reports{})); out.Kind != handlers.OutcomeSucceeded {
					b.Fatalf("%s %v", out.Kind, out.Error)
				}
			}
		})
	}
}

// BenchmarkLoad is making a compiled Go guest ready to run, once per runner.
func BenchmarkLoad(b *testing.B) {
	module := guests.module(b, "reactor", wasmtest.GoReactor)
	for b.Loop() {
		m, err := Load(b.Context(), module, handlers.KindReactor, guests.cache)
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
