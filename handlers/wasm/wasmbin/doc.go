// Package wasmbin reads and writes the WebAssembly binary format at the level of bytes: LEB128 numbers, names, sections,
// and instructions with their immediates. It validates nothing beyond what it must to go on, allocates nothing that the
// input's length does not bound, and never panics on any input. The format is that of the WebAssembly Core
// Specification 2.0, chapter 5.
package wasmbin
