//go:build !wasip1

package main

// call exists so that the package can be read and vetted anywhere; the host calls are inside a module only.
func (c call) call([]byte, []byte) int64 { panic("host calls exist in WebAssembly only: " + c.Call) }

var _ = play
