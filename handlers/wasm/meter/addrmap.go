package meter

import (
	"encoding/binary"
	"sort"
)

// Map says which place of the original code a place of the rewritten code stands for. Places are offsets in the body of the code
// section, as DWARF and wazero count them. It takes about three bytes for every call and branch of the module.
type Map struct {
	functions []mapped // by offset, which is the same order in both modules
	steps     []byte   // triples of uvarints: bytes copied, bytes left out of the original, bytes put in
}

// mapped is one function: its body without its length.
type mapped struct {
	original, originalEnd   uint32
	rewritten, rewrittenEnd uint32
	steps, stepsEnd         int
}

// Original is the place in the original code of a place in the rewritten code. Added code belongs to the instruction that it precedes
// or replaces. It is false for what is in no function.
func (m *Map) Original(rewritten uint32) (uint32, bool) {
	i := sort.Search(len(m.functions), func(i int) bool { return m.functions[i].rewrittenEnd > rewritten })
	if i == len(m.functions) || rewritten < m.functions[i].rewritten {
		return 0, false
	}
	f := &m.functions[i]
	from, to := f.rewritten, f.original
	for c := (cursor{m.steps[f.steps:f.stepsEnd]}); !c.done(); {
		same, left, put := c.next()
		if rewritten < from+same {
			break
		}
		from, to = from+same, to+same
		if rewritten < from+put {
			return to, true
		}
		from, to = from+put, to+left
	}
	return to + (rewritten - from), true
}

// inverse finds the places in the rewritten code of places in the original.
type inverse struct {
	m       *Map
	changes []change // of all functions, by offset
	first   []int    // of each function, in changes
}

// change is where steps left something out or put something in.
type change struct {
	original, left uint32
	rewritten, put uint32
}

func (m *Map) inverse() *inverse {
	v := &inverse{m: m, first: make([]int, len(m.functions)+1)}
	for i := range m.functions {
		f := &m.functions[i]
		from, to := f.original, f.rewritten
		for c := (cursor{m.steps[f.steps:f.stepsEnd]}); !c.done(); {
			same, left, put := c.next()
			from, to = from+same, to+same
			v.changes = append(v.changes, change{from, left, to, put})
			from, to = from+left, to+put
		}
		v.first[i+1] = len(v.changes)
	}
	return v
}

// rewritten is the first byte of what stands for the instruction at that place. The end of a function is a place in it, too.
func (v *inverse) rewritten(original uint32) (uint32, bool) {
	fs := v.m.functions
	i := sort.Search(len(fs), func(i int) bool { return fs[i].originalEnd >= original })
	if i == len(fs) || original < fs[i].original {
		return 0, false
	}
	changes := v.changes[v.first[i]:v.first[i+1]]
	// The first change whose place is not passed: what it puts in belongs to the instruction there.
	n := sort.Search(len(changes), func(n int) bool { return changes[n].original >= original })
	if n < len(changes) && changes[n].original == original {
		return changes[n].rewritten, true
	}
	if n == 0 {
		return fs[i].rewritten + (original - fs[i].original), true
	}
	c := changes[n-1]
	return c.rewritten + c.put + max(original, c.original+c.left) - (c.original + c.left), true
}

// cursor reads steps.
type cursor struct{ b []byte }

func (c *cursor) done() bool { return len(c.b) == 0 }

func (c *cursor) next() (same, left, put uint32) {
	var v [3]uint32
	for i := range v {
		x, n := binary.Uvarint(c.b)
		v[i], c.b = uint32(x), c.b[n:]
	}
	return v[0], v[1], v[2]
}

// appendStep appends one triple.
func appendStep(b []byte, same, left, put int) []byte {
	b = binary.AppendUvarint(b, uint64(same))
	b = binary.AppendUvarint(b, uint64(left))
	return binary.AppendUvarint(b, uint64(put))
}
