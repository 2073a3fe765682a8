package sqliteq

import "container/heap"

// slots are the jobs of one concurrency key of a queue: how many run, and those in its lines that stepped aside for want of
// a free slot or came back since (RULES.md, Limits). A key without any has no slots.
type slots struct {
	q       *queueState
	key     string
	running int
	back    int
	aside   sidesteps
}

// sidestep is a ready job that stepped aside, then in slots.aside, or came back, then in line.back.
type sidestep struct {
	seq   int64
	l     *line
	k     *slots
	place int64 // its place in the line among those that left its middle: lower is nearer to the front
	back  bool
	index int
}

// slotsOf returns the slots of a key, made when there are none.
func (q *queueState) slotsOf(key string) *slots {
	k := q.slots[key]
	if k == nil {
		if q.slots == nil {
			q.slots = make(map[string]*slots)
		}
		k = &slots{q: q, key: key}
		q.slots[key] = k
	}
	return k
}

// tidy forgets slots of which there is nothing to know.
func (k *slots) tidy() {
	if k.running == 0 && k.back == 0 && len(k.aside) == 0 {
		delete(k.q.slots, k.key)
	}
}

// free reports whether one more job of the key may run.
func (k *slots) free() bool { return k.running < k.q.settings.MaxPerKey }

// bringBack lets jobs that stepped aside come back, as many as there are free slots, and reports whether one did. Who
// calls it lets their lines join.
func (k *slots) bringBack() (came bool) {
	for len(k.aside) > 0 && k.back < k.q.settings.MaxPerKey-k.running {
		sd := heap.Pop(&k.aside).(*sidestep)
		sd.back = true
		sd.l.aside--
		k.back++
		heap.Push(&sd.l.back, sd)
		came = true
	}
	k.tidy()
	return came
}

// stepAside moves the front job of a line out of the way; with s.mu held.
func (s *Store) stepAside(l *line, seq int64, k *slots) {
	sd := s.sidesteps[seq]
	if sd == nil {
		sd = &sidestep{seq: seq, l: l, k: k}
		if n := len(l.fronts); n > 0 {
			sd.place = l.fronts[n-1]
		} else {
			s.lastAside++
			sd.place = s.lastAside
		}
		l.popFront()
		s.sidesteps[seq] = sd
	} else {
		heap.Remove(&l.back, sd.index)
		k.back--
	}
	s.putAside(sd)
	if l.takeable() == 0 {
		s.sync(l)
	}
}

func (s *Store) putAside(sd *sidestep) {
	s.sidesteps[sd.seq] = sd
	sd.back = false
	sd.l.aside++
	heap.Push(&sd.k.aside, sd)
}

// forgetSidestep takes a job that starts, ends or leaves out of where it stepped to; with s.mu held.
func (s *Store) forgetSidestep(sd *sidestep) {
	delete(s.sidesteps, sd.seq)
	if sd.back {
		heap.Remove(&sd.l.back, sd.index)
		sd.k.back--
	} else {
		heap.Remove(&sd.k.aside, sd.index)
		sd.l.aside--
	}
}

// sidesteps is a heap: the highest priority first, in a priority the place.
type sidesteps []*sidestep

func (h sidesteps) Len() int { return len(h) }

func (h sidesteps) Less(i, j int) bool {
	a, b := h[i], h[j]
	return a.l.prio > b.l.prio || a.l.prio == b.l.prio && a.place < b.place
}

func (h sidesteps) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is heap.Interface.
func (h *sidesteps) Push(x any) {
	sd := x.(*sidestep)
	sd.index = len(*h)
	*h = append(*h, sd)
}

// Pop is heap.Interface.
func (h *sidesteps) Pop() any {
	a := *h
	last := len(a) - 1
	sd := a[last]
	a[last] = nil
	*h = a[:last]
	return sd
}
