package meter

import "github.com/taskhost/taskhost/handlers/wasm/wasmbin"

// Costs other than 1, in units of fuel.
const (
	costIndirect = 8  // call_indirect: the callee may be a leaf, which does not charge itself
	costGrow     = 64 // memory.grow, table.grow: they leave compiled code

	bytesPerUnitShift = 4
)

// BytesPerUnit is how many bytes of a memory operation cost one unit, which is about the time that they take.
const BytesPerUnit = 1 << bytesPerUnitShift

// conditional is the divisor of what is charged for code that may be skipped.
const conditional = 16

// leafWork bounds a leaf: a function that calls nothing, repeats nothing, and costs at most this. It must not be above
// costIndirect*conditional, so that calls through a table pay for one, too.
const leafWork = costIndirect * conditional

// instrCost is what one instruction costs, besides what depends on its operands.
func instrCost(in *wasmbin.Instr) int64 {
	switch in.Op {
	case wasmbin.OpNop, wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpElse, wasmbin.OpEnd:
		return 0
	case wasmbin.OpCallIndirect:
		return costIndirect
	case wasmbin.OpMemoryGrow:
		return costGrow
	case wasmbin.OpMisc:
		if in.Sub == wasmbin.MiscTableGrow {
			return costGrow
		}
	}
	return 1
}

// mark is a place in the code of a function, measured in cost from its beginning.
type mark struct {
	full   int64 // of everything
	likely int64 // times conditional: everything once, what may be skipped a conditional-th
	deep   int   // calls of deep functions; see debt
}

// charge is what is paid for the code from m to now. Code that was certain at m may have become skipped since, when m is the
// end of a block that others were left to pass over; it costs a conditional-th all the same.
func (m mark) charge(now mark) int64 {
	return max((max(now.likely-m.likely, now.full-m.full)+conditional-1)/conditional, 1)
}

// pass moves the mark over code of that cost.
func (m *mark) pass(cost int64) {
	m.full += cost
	m.likely += cost * conditional
}

// land makes what was passed since from code that may have been skipped.
func (m *mark) land(from mark) {
	m.likely = from.likely + (m.full - from.full)
}

// noType is the block type of a block without parameters and results, as wasmbin decodes it.
const noType = -64
