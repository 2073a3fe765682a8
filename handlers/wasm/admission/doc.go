// Package admission decides whether uploaded bytes may be compiled as a handler. It is a scanner over the raw bytes: it runs
// in the compile child before the engine sees anything, because an engine's decoder believes the counts it reads (a 15-byte
// module can make it allocate without end), and because compile time is not bounded by module size.
//
// What it promises: time linear in the module, allocation bounded by its length, no panic on any input, and either a Report
// or a *handlers.Refusal whose reason is one sentence that tells the author what to change. It checks structure, sizes, the
// cost drivers of the compiler (locals, nesting, branch tables, loop heads) and the handler contract (exports, imports and
// their signatures). It does not type-check code: the engine does that next, on the same bytes.
//
// Where is what: check.go the order of the steps, preamble.go "is this a module at all", sections.go, segments.go and names.go
// the sections, code.go and opcodes.go the walk over function bodies, contract.go the handler contract, wasi.go the table of
// WASI preview 1, limits.go every bound with its reason.
//
// The binary format: https://webassembly.github.io/spec/core/binary/index.html
package admission
