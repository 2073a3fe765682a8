package luaexec

// foresight is which reads a script will ask for: those that its last two runs asked for both. They are read in the round trip in
// which the run begins.
type foresight struct {
	last  map[string]bool
	reads [][]string
}

// Bounds of what is foreseen: reads of one script, and the bytes of the reply that was last seen.
const (
	foreseenMost  = 64
	foreseenBytes = 8 << 10
)

// foresee returns the reads to begin a run with.
func (x *Executor) foresee(p *Program) [][]string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if f := x.foreseen[p]; f != nil {
		return f.reads
	}
	return nil
}

// remember learns from a run.
func (x *Executor) remember(p *Program, v *view) {
	asked := make(map[string]bool, len(v.asked))
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.foreseen[p]
	if f == nil {
		f = &foresight{}
		x.foreseen[p] = f
	}
	var reads [][]string
	for _, cmd := range v.asked {
		name := reading(cmd)
		if asked[name] {
			continue
		}
		asked[name] = true
		if f.last[name] && len(reads) < foreseenMost && weight(v.replies[name]) <= foreseenBytes {
			reads = append(reads, cmd)
		}
	}
	f.last, f.reads = asked, reads
}
