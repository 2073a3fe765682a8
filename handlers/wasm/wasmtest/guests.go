package wasmtest

import "github.com/taskhost/taskhost/abi"

// Types is short for a list of value types.
func Types(t ...ValType) []ValType { return t }

// TypesOf translates the names of abi.Import ("i32", "i64").
func TypesOf(names []string) []ValType {
	var out []ValType
	for _, n := range names {
		switch n {
		case "i32":
			out = append(out, I32)
		case "i64":
			out = append(out, I64)
		default:
			panic("wasmtest: unknown value type " + n)
		}
	}
	return out
}

// ImportHost imports a function of abi.ModuleHost with the signature the contract gives it.
func (b *Builder) ImportHost(name string) uint32 {
	for _, imp := range abi.HostImports() {
		if imp.Name == name {
			return b.ImportFunc(abi.ModuleHost, name, TypesOf(imp.Params), TypesOf(imp.Results))
		}
	}
	panic("wasmtest: the host offers no function " + name)
}

// Reactor completes a reactor around what is already in b: one page of memory unless there is one, the marker, and
// taskhost_handle with this body, which must leave an i32.
func (b *Builder) Reactor(locals []Local, body ...[]byte) []byte {
	if len(b.memories) == 0 {
		b.Memory(1)
	}
	b.ExportMemory(abi.ExportMemory)
	b.ExportFunc(abi.ExportMarker, b.Func(nil, nil, nil))
	b.ExportFunc(abi.ExportHandle, b.Func(nil, Types(I32), locals, body...))
	return b.Module()
}

// Command completes a command around what is already in b: one page of memory unless there is one, and _start with this
// body, which must leave nothing.
func (b *Builder) Command(locals []Local, body ...[]byte) []byte {
	if len(b.memories) == 0 {
		b.Memory(1)
	}
	b.ExportMemory(abi.ExportMemory)
	b.ExportFunc(abi.ExportStart, b.Func(nil, nil, locals, body...))
	return b.Module()
}

// EchoReactor returns a reactor whose result is its payload, of up to a page.
func EchoReactor() []byte {
	var b Builder
	read := b.ImportHost("input_read")
	write := b.ImportHost("output_write")
	return b.Reactor(nil,
		I32Const(0),
		I64Const(0), I32Const(0), I32Const(65536), Call(read), Ops(OpI32WrapI64),
		Call(write), Ops(OpDrop),
		I32Const(abi.HandleDone))
}

// LoopReactor returns a reactor that never returns.
func LoopReactor() []byte {
	var b Builder
	return b.Reactor(nil, Forever(), I32Const(abi.HandleDone))
}
