package wasmtest

import (
	"testing"

	"github.com/taskhost/taskhost/handlers/wasm/meter"
)

// Metered returns a module as the compile child would hand it to the compiler. The module must be valid.
func Metered(tb testing.TB, module []byte) []byte {
	tb.Helper()
	r, err := meter.Instrument(module)
	if err != nil {
		tb.Fatalf("meter a module: %v", err)
	}
	return r.Module
}
