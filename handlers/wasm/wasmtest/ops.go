package wasmtest

// Opcodes that tests write often.
const (
	OpUnreachable  = 0x00
	OpNop          = 0x01
	OpBlock        = 0x02 // followed by a block type, e.g. BlockEmpty
	OpLoop         = 0x03
	OpIf           = 0x04
	OpElse         = 0x05
	OpEnd          = 0x0b
	OpBr           = 0x0c
	OpBrIf         = 0x0d
	OpBrTable      = 0x0e
	OpReturn       = 0x0f
	OpCall         = 0x10
	OpCallIndirect = 0x11
	OpDrop         = 0x1a
	OpI32Eqz       = 0x45
	OpI32Eq        = 0x46
	OpI32LtU       = 0x49
	OpI32GeU       = 0x4f
	OpI32Add       = 0x6a
	OpI32Sub       = 0x6b
	OpI32WrapI64   = 0xa7
	OpI64ExtendI32 = 0xad // unsigned
	BlockEmpty     = 0x40
)

// Ops is a run of opcodes and immediates as written.
func Ops(code ...byte) []byte { return code }

// Code joins pieces of code.
func Code(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// I32Const pushes a 32-bit constant.
func I32Const(v int32) []byte { return append([]byte{0x41}, Sleb(int64(v))...) }

// I64Const pushes a 64-bit constant.
func I64Const(v int64) []byte { return append([]byte{0x42}, Sleb(v)...) }

// Call calls a function.
func Call(index uint32) []byte { return append([]byte{OpCall}, Uleb(uint64(index))...) }

// LocalGet pushes a local.
func LocalGet(i uint32) []byte { return append([]byte{0x20}, Uleb(uint64(i))...) }

// LocalSet pops into a local.
func LocalSet(i uint32) []byte { return append([]byte{0x21}, Uleb(uint64(i))...) }

// LocalTee stores into a local and keeps the value.
func LocalTee(i uint32) []byte { return append([]byte{0x22}, Uleb(uint64(i))...) }

// GlobalGet pushes a global.
func GlobalGet(i uint32) []byte { return append([]byte{0x23}, Uleb(uint64(i))...) }

// GlobalSet pops into a global.
func GlobalSet(i uint32) []byte { return append([]byte{0x24}, Uleb(uint64(i))...) }

// I32Load loads four bytes at the popped address plus offset.
func I32Load(offset uint32) []byte { return append([]byte{0x28, 0x02}, Uleb(uint64(offset))...) }

// I32Store stores four bytes at the popped address plus offset.
func I32Store(offset uint32) []byte { return append([]byte{0x36, 0x02}, Uleb(uint64(offset))...) }

// MemoryGrow pops a number of pages and pushes the old size, or -1.
func MemoryGrow() []byte { return []byte{0x40, 0x00} }

// MemorySize pushes the size in pages.
func MemorySize() []byte { return []byte{0x3f, 0x00} }

// Br branches to the label.
func Br(label uint32) []byte { return append([]byte{OpBr}, Uleb(uint64(label))...) }

// BrIf branches to the label if the popped value is not zero.
func BrIf(label uint32) []byte { return append([]byte{OpBrIf}, Uleb(uint64(label))...) }

// Forever is a loop that never ends.
func Forever() []byte { return []byte{OpLoop, BlockEmpty, OpBr, 0x00, OpEnd} }
