package wasm

import (
	"bytes"
	"strings"
	"time"

	"github.com/taskhost/taskhost/abi"
	w "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// shape is a way not to end, or to take more than is given, and how such a job has to end.
type shape struct {
	id     int // of the case
	name   string
	module func() []byte
	want   string // kind of the error
}

// timeout is the one given, unless the job has to end by something else before.
func (s shape) timeout(d time.Duration) time.Duration {
	if s.want != abi.KindDeadline {
		return time.Minute
	}
	return d
}

// shapes are all of them.
func shapes() []shape {
	return []shape{
		{86, "loop in the handler", w.LoopReactor, abi.KindDeadline},
		{86, "loop in _start", loopInStart, abi.KindDeadline},
		{86, "loop in _initialize", loopInInitialize, abi.KindDeadline},
		{86, "loop in the start section", loopInStartSection, abi.KindDeadline},
		{87, "60 functions calling twice", callTree, abi.KindDeadline},
		{87, "fill all memory again and again", func() []byte { return bulk(11) }, abi.KindDeadline},
		{87, "copy all memory again and again", func() []byte { return bulk(10) }, abi.KindDeadline},
		{87, "grow by nothing again and again", growNothing, abi.KindDeadline},
		{87, "host calls again and again", hostCalls, abi.KindDeadline},
		{92, "two functions calling each other", func() []byte { return recursion(0) }, abi.KindStackOverflow},
		{92, "recursion with 1,000 locals", func() []byte { return recursion(1000) }, abi.KindStackOverflow},
		{88, "poll of a stream without a clock, again and again", pollStream, abi.KindDeadline},
		{88, "read of standard input, again and again", readInput, abi.KindDeadline},
		{88, "sleep for an hour", func() []byte { return sleep(3_600_000_000_000) }, abi.KindDeadline},
		{90, "flood of output", func() []byte { return flood(1) }, abi.KindResultSize},
		{90, "flood of log lines", func() []byte { return flood(2) }, abi.KindDeadline},
	}
}

func loopInStart() []byte {
	var b w.Builder
	return b.Command(nil, w.Forever())
}

func loopInInitialize() []byte {
	var b w.Builder
	b.ExportFunc(abi.ExportInitialize, b.Func(nil, nil, nil, w.Forever()))
	return b.Reactor(nil, w.I32Const(0))
}

func loopInStartSection() []byte {
	var b w.Builder
	b.Start(b.Func(nil, nil, nil, w.Forever()))
	return b.Reactor(nil, w.I32Const(0))
}

// callTree has no loop and no recursion, and would run for centuries.
func callTree() []byte {
	var b w.Builder
	f := b.Func(nil, nil, nil)
	for range 60 {
		f = b.Func(nil, nil, nil, w.Call(f), w.Call(f))
	}
	return b.Reactor(nil, w.Call(f), w.I32Const(0))
}

// bulk is memory.fill (11) or memory.copy (10) over 64 MiB, thousands of times in a straight line.
func bulk(op byte) []byte {
	const size = 64 << 20
	one := w.Code(w.I32Const(0), w.I32Const(1), w.I32Const(size-1), w.Ops(0xfc, op, 0))
	if op == 10 {
		one = append(one, 0)
	}
	var b w.Builder
	b.Memory(size >> 16)
	return b.Reactor(nil, bytes.Repeat(one, 5000), w.I32Const(0))
}

func growNothing() []byte {
	var b w.Builder
	return b.Reactor(nil, w.Ops(w.OpLoop, w.BlockEmpty), w.I32Const(0), w.MemoryGrow(), w.Ops(w.OpDrop), w.Br(0), w.Ops(w.OpEnd), w.I32Const(0))
}

func hostCalls() []byte {
	var b w.Builder
	size := b.ImportHost("input_len")
	return b.Reactor(nil, w.Ops(w.OpLoop, w.BlockEmpty), w.Call(size), w.Ops(w.OpDrop), w.Br(0), w.Ops(w.OpEnd), w.I32Const(0))
}

// recursion is two functions that call each other without end.
func recursion(locals uint32) []byte {
	var b w.Builder
	for other := range uint32(2) {
		b.Func(nil, w.Types(w.I64), []w.Local{{Count: locals, Type: w.I64}}, w.Call(1-other), w.I64Const(1), w.Ops(0x7c))
	}
	return b.Reactor(nil, w.Call(0), w.Ops(w.OpDrop), w.I32Const(0))
}

// sleep polls a clock.
func sleep(ns uint64) []byte {
	var b w.Builder
	poll := b.ImportFunc(abi.ModuleWASI, "poll_oneoff", w.Types(w.I32, w.I32, w.I32, w.I32), w.Types(w.I32))
	b.Memory(1)
	sub := make([]byte, 48)
	sub[16] = 1
	for i := range 8 {
		sub[24+i] = byte(ns >> (8 * i))
	}
	b.Data(0, sub)
	return b.Command(nil, w.I32Const(0), w.I32Const(100), w.I32Const(1), w.I32Const(200), w.Call(poll), w.Ops(w.OpDrop))
}

// pollStream polls standard output, which is always ready.
func pollStream() []byte {
	var b w.Builder
	poll := b.ImportFunc(abi.ModuleWASI, "poll_oneoff", w.Types(w.I32, w.I32, w.I32, w.I32), w.Types(w.I32))
	b.Memory(1)
	sub := make([]byte, 48)
	sub[8], sub[16] = 2, 1
	b.Data(0, sub)
	return b.Command(nil, w.Ops(w.OpLoop, w.BlockEmpty), w.I32Const(0), w.I32Const(100), w.I32Const(1), w.I32Const(200), w.Call(poll), w.Ops(w.OpDrop), w.Br(0), w.Ops(w.OpEnd))
}

// readInput reads standard input, which has ended, without end.
func readInput() []byte {
	var b w.Builder
	read := b.ImportFunc(abi.ModuleWASI, "fd_read", w.Types(w.I32, w.I32, w.I32, w.I32), w.Types(w.I32))
	b.Memory(1)
	b.Data(0, []byte{100, 0, 0, 0, 64, 0, 0, 0})
	return b.Command(nil, w.Ops(w.OpLoop, w.BlockEmpty), w.I32Const(0), w.I32Const(0), w.I32Const(1), w.I32Const(16), w.Call(read), w.Ops(w.OpDrop), w.Br(0), w.Ops(w.OpEnd))
}

// flood writes 64 bytes to a descriptor again and again.
func flood(fd int32) []byte {
	var b w.Builder
	write := b.ImportFunc(abi.ModuleWASI, "fd_write", w.Types(w.I32, w.I32, w.I32, w.I32), w.Types(w.I32))
	b.Memory(1)
	b.Data(0, []byte{100, 0, 0, 0, 64, 0, 0, 0})
	b.Data(100, []byte(strings.Repeat("x", 63)+"\n"))
	return b.Command(nil, w.Ops(w.OpLoop, w.BlockEmpty), w.I32Const(fd), w.I32Const(0), w.I32Const(1), w.I32Const(16), w.Call(write),
		w.Ops(w.OpDrop), w.Br(0), w.Ops(w.OpEnd))
}
