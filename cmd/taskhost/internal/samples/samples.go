// Package samples holds the sample handlers of `taskhost dev`: one WebAssembly module that serves the types hello, sleep and
// flaky. Its source is wasm-examples/samples/c; samples.json records what the committed module was built from, and a test
// fails when the two no longer belong together.
package samples

import _ "embed"

//go:generate go run ./build/regenerate

//go:embed samples.wasm
var module string

// Module returns the bytes of the module, a copy for each caller.
func Module() []byte { return []byte(module) }

// Types returns the task types the module serves, in the order they are shown.
func Types() []string { return []string{"hello", "sleep", "flaky"} }
