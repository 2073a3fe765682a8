// Package hostcall is module taskhost_v1: what a handler asks of its host. SPEC.md §4 is the law. Each family of functions has its file.
//
// A guest passes numbers; all of them are checked. Nothing a guest passes makes a function trap or panic: a bad range is abi.ErrInvalid.
package hostcall

import (
	"context"
	"sync"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
)

// call is one host call: the attempt, the guest's memory and the arguments.
type call struct {
	*attempt.State
	mem  api.Memory
	args []uint64
}

func (c *call) u32(i int) uint32 { return uint32(c.args[i]) }
func (c *call) i32(i int) int32  { return int32(uint32(c.args[i])) }
func (c *call) i64(i int) int64  { return int64(c.args[i]) }

// function answers a call with a length or value ≥ 0, or a negative errno.
type function func(*call) int64

// functions is what the host offers, by name. Signatures are in abi.HostImports.
func functions() map[string]function {
	return map[string]function{
		"input_len":      inputLen,
		"input_read":     inputRead,
		"output_write":   outputWrite,
		"fail":           fail,
		"log":            log,
		"progress":       progress,
		"checkpoint_put": checkpointPut,
		"checkpoint_get": checkpointGet,
		"meta_get":       metaGet,
		"config_get":     configGet,
		"should_stop":    shouldStop,
		"deadline_ms":    deadlineMS,
		"host_has":       hostHas,
	}
}

// Export adds the functions to a host module builder, which must be for abi.ModuleHost. It panics when the contract names a function
// that is not here.
func Export(b wazero.HostModuleBuilder) wazero.HostModuleBuilder {
	table := functions()
	calls := &sync.Pool{New: func() any { return new(call) }} // a guest that calls in a loop must not make garbage for its neighbours to collect
	for _, imp := range abi.HostImports() {
		fn, ok := table[imp.Name]
		if !ok {
			panic("hostcall: the contract has a function that is not implemented: " + imp.Name)
		}
		narrow := imp.Results[0] == "i32"
		b = b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, mod api.Module, stack []uint64) {
			c := calls.Get().(*call)
			*c = call{State: attempt.From(ctx), mem: mod.Memory(), args: stack}
			c.ChargeCall()
			r := fn(c)
			*c = call{}
			calls.Put(c)
			if narrow {
				stack[0] = uint64(uint32(int32(r)))
			} else {
				stack[0] = uint64(r)
			}
		}), types(imp.Params), types(imp.Results)).Export(imp.Name)
	}
	return b
}

func types(names []string) []api.ValueType {
	var out []api.ValueType
	for _, n := range names {
		if n == "i64" {
			out = append(out, api.ValueTypeI64)
		} else {
			out = append(out, api.ValueTypeI32)
		}
	}
	return out
}

// bytes returns the range of memory that arguments i and i+1 name. It is valid until the guest runs on.
func (c *call) bytes(i int) ([]byte, bool) {
	b, ok := c.mem.Read(c.u32(i), c.u32(i+1))
	c.ChargeBytes(len(b))
	return b, ok
}

// text returns the text that arguments i and i+1 name, cut to max bytes.
func (c *call) text(i, max int) (string, bool) {
	b, ok := c.bytes(i)
	if !ok || !utf8.Valid(b) {
		return "", false
	}
	if len(b) > max { // one byte more lets Cut see where a character begins
		return attempt.Cut(string(b[:max+1]), max), true
	}
	return string(b), true
}

// give copies value to the buffer that arguments i and i+1 name and returns its full length.
func give[T string | []byte](c *call, i int, value T) int64 {
	buf, ok := c.bytes(i)
	if !ok {
		return int64(abi.ErrInvalid)
	}
	copy(buf, value)
	return int64(len(value))
}
