package meter

import (
	"fmt"

	"github.com/taskhost/taskhost/handlers/wasm/wasmbin"
)

// maxLocals bounds parameters and locals of one function, the added ones included (the engines' own limit is 50,000).
const maxLocals = 50_000

// addedLocals is how many a function may get.
const addedLocals = 4

// plan is what one body needs.
type plan struct {
	code     int // offset of the first instruction in the body
	groups   int // offset of the local groups
	declared uint32
	locals   uint32 // with the parameters
	edits    []edit // by offset
	calls    []int  // of defined functions, as they come
	imported bool   // it calls an imported function
	indirect bool   // it calls through a table
	bulk     bool   // it has an operation that is charged by its length
	memories int    // those on memory
	loops    []loop
	backs    int   // backward jumps
	checks   int   // other checks in the code
	work     int64 // cost of all its instructions
	entry    int64 // what a call costs
	tail     int64 // the most that can run between the last check and the return
	due      int64 // and what then is due of the debt
}

// loop is a loop that something may jump back to.
type loop struct {
	parent int  // -1 for none
	loud   bool // something in it other than its own jumps may change the fuel
	backs  int  // backward jumps inside
}

// edit is one place where the body changes: [at, to) is replaced.
type edit struct {
	at, to  int
	kind    editKind
	arg     uint32
	charge  int64
	loop    int    // innermost loop around it, -1 for none
	segment uint32 // of memory.init
}

type editKind uint8

const (
	editIndex  editKind = iota // arg: function index, shifted, or label
	editLoop                   // before a loop; arg: its number
	editBr                     // br backward; arg: label
	editBrIf                   // br_if backward, without operands; arg: label
	editCharge                 // before another instruction that may jump backward
	editCheck                  // a check that charges nothing
	editTable                  // before a table operation that has a length
	editMemory                 // a memory operation; arg: its number
)

func (p *plan) readLocals(r *wasmbin.Reader) {
	p.declared = r.Count()
	p.groups = r.Pos()
	total := uint64(p.locals)
	for n := p.declared; n > 0 && r.Err() == nil; n-- {
		total += uint64(r.U32())
		r.ValueType()
	}
	if total > maxLocals-addedLocals {
		r.Fail(fmt.Sprintf("%d parameters and locals, at most %d are allowed", total, maxLocals-addedLocals))
		return
	}
	p.locals = uint32(total)
}
