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
		kind    handlers.Kind
		payload string
		module  func() []byte
	}{
		{"empty", handlers.KindReactor, "", func() []byte { return nopReactor }},
		{"echo", handlers.KindReactor, "payload", wasmtest.EchoReactor},
		{"go-reactor", handlers.KindReactor, "count", func() []byte { return guest(b, "reactor", wasmtest.GoReactor) }},
		{"go-command", handlers.KindCommand, "echo x", func() []byte { return guest(b, "command", wasmtest.GoCommand) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := load(b, c.kind, c.module())
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
	module, dir := guest(b, "reactor", wasmtest.GoReactor), b.TempDir()
	if err := Compile(b.Context(), module, dir); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m, err := Load(b.Context(), module, handlers.KindReactor, dir)
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
