package meter

import "fmt"

const (
	// uncheckedWork bounds what a function without a check at its entry can execute, with the functions without a check
	// that it calls, before a check is passed (backward jumps have one).
	uncheckedWork = 1 << 16
	// uncheckedRun bounds what runs between two checks of one function, beyond what the last of its calls adds.
	uncheckedRun = 1 << 16
	// debt bounds what runs between two payments of a deep function after it was called. A deep function is one through which
	// a chain of calls can pass again and again: those that call through a table, those on a cycle of direct calls, and those that
	// call them. Such a chain has paid for the code of all its functions when it is at its deepest. For the tick to come on its
	// way up, too, this code is paid for again as it runs, by a conditional-th; what a call closes the cycle pays for the
	// debt that its callee may leave.
	debt = 512
)

// graph rewrites all functions, each after those that it calls directly, and decides where they have checks, so that every
// cycle of calls passes one on the way down and one on the way up:
//
//   - leaves charge nothing themselves, their callers pay for them;
//   - a function that a depth-first walk over direct calls meets again while it is below it has a check at its entry, and
//     the call that closes the cycle has one behind it;
//   - a function that calls through a table has a check at its entry, and one behind each such call;
//   - a function with too much work has a check at its entry, and where it is needed between its calls;
//   - every other function charges its entry without a check.
type graph struct {
	m       *module
	calls   [][]int // of each defined function, as are the others
	own     []int64 // work without the callees
	leaves  []int64 // prices of the leaves, 0 for others
	state   []uint8
	work    []int64 // cost of everything, with callees without a check, when done; capped
	tail    []int64 // the most that can run between the last check and the return, when done
	due     []int64 // what is then due of the debt
	deep    []bool
	checked []bool
	out     []rewritten
}

// rewritten is a rewritten body.
type rewritten struct{ body, steps []byte }

const (
	unvisited uint8 = iota
	visiting
	done
)

// rewrite rewrites the bodies of all functions.
func (m *module) rewrite() ([]rewritten, error) {
	n := len(m.bodies)
	g := &graph{
		m: m, calls: make([][]int, n), own: make([]int64, n), leaves: make([]int64, n), state: make([]uint8, n),
		work: make([]int64, n), tail: make([]int64, n), due: make([]int64, n), deep: make([]bool, n), checked: make([]bool, n), out: make([]rewritten, n),
	}
	for i := range n {
		p, err := g.analyse(i, nil)
		if err != nil {
			return nil, err
		}
		g.calls[i], g.own[i], g.checked[i] = p.calls, p.work, p.indirect
		if p.work <= leafWork && p.backs == 0 && !p.bulk && !p.indirect && !p.imported && len(p.calls) == 0 && !m.exported[uint32(i)+m.imported] {
			g.leaves[i] = p.entry
		}
	}
	for i := range n {
		if g.state[i] == unvisited {
			if err := g.visit(i); err != nil {
				return nil, err
			}
		}
	}
	return g.out, nil
}

func (g *graph) analyse(i int, callees *graph) (*plan, error) {
	p, err := g.m.analyse(g.m.bodies[i], g.m.params[g.m.types[i]], callees, g.deep[i])
	if err != nil {
		return nil, fmt.Errorf("function %d: %w", uint32(i)+g.m.imported, err)
	}
	return p, nil
}

// visit rewrites function i after its callees, without recursion: the depth of a call chain is the uploader's choice.
func (g *graph) visit(i int) error {
	type step struct{ fn, next int }
	stack := []step{{fn: i}}
	g.state[i] = visiting
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next == len(g.calls[top.fn]) {
			if err := g.decide(top.fn); err != nil {
				return err
			}
			stack = stack[:len(stack)-1]
			continue
		}
		callee := g.calls[top.fn][top.next]
		top.next++
		switch g.state[callee] {
		case unvisited:
			g.state[callee] = visiting
			stack = append(stack, step{fn: callee})
		case visiting:
			g.checked[callee] = true
		}
	}
	return nil
}

// decide rewrites function i, whose callees are rewritten, but for those that are being visited: they have a check.
func (g *graph) decide(i int) error {
	work := g.own[i]
	g.deep[i] = g.checked[i] // so far for being on a cycle, or for calls through a table
	for _, callee := range g.calls[i] {
		g.deep[i] = g.deep[i] || g.deep[callee] || g.state[callee] != done
		if !g.checked[callee] {
			work = min(work+g.work[callee], uncheckedWork+1)
		}
	}
	g.work[i] = work
	if work > uncheckedWork {
		g.checked[i] = true
	}
	p, err := g.analyse(i, g)
	if err != nil {
		return err
	}
	g.tail[i], g.due[i] = p.tail, p.due
	w := bodyWriter{plan: p, m: g.m, checked: g.checked[i], leaf: g.leaves[i] > 0}
	body := g.m.bodies[i]
	g.out[i].body = w.body(make([]byte, 0, len(body)+len(body)/16+16), body)
	g.out[i].steps = w.steps
	g.state[i] = done
	g.calls[i] = nil
	return nil
}
