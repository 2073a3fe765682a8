package sqliteq

import "github.com/taskhost/taskhost/queue/fair"

// line is the ready jobs of one queue and priority, in order. It holds job numbers only: 8 bytes a job, and the
// directory of chunks. A job that leaves from the middle (cancelled, expired) stays as a tombstone, listed in Store.gone,
// until it comes to the front. Jobs that stepped aside are with their slots, and those of them that came back in back; each has
// its place before or behind those that entered at the front meanwhile, and before all that entered at the tail.
type line struct {
	q       *queueState
	prio    int
	head    *chunk
	tail    *chunk
	live    int     // in the chunks, without tombstones
	fronts  []int64 // places of the first jobs of the chunks, those that entered at the front, the first one last
	back    sidesteps
	aside   int // jobs that stepped aside
	entries []lineEntry
}

// takeable is how many jobs are in the line and not aside.
func (l *line) takeable() int { return l.live + len(l.back) }

// lineEntry is the line's place in the scheduler of one view.
type lineEntry struct {
	view  *view
	entry *fair.Entry[*line]
}

// chunk is a part of a line: items[lo:hi].
type chunk struct {
	items      []int64
	lo, hi     int
	prev, next *chunk
}

// Chunks grow with their line, so that a short line is small and a long one has few.
const (
	chunkMin = 8
	chunkMax = 1024
)

func (l *line) pushBack(seq int64) {
	if l.tail == nil || l.tail.hi == len(l.tail.items) {
		c := &chunk{items: make([]int64, l.nextChunk(l.tail)), prev: l.tail}
		if l.tail == nil {
			l.head = c
		} else {
			l.tail.next = c
		}
		l.tail = c
	}
	l.tail.items[l.tail.hi] = seq
	l.tail.hi++
	l.live++
}

// pushFront puts a job before all others. place is lower than every place given before.
func (l *line) pushFront(seq, place int64) {
	l.fronts = append(l.fronts, place)
	if l.head == nil || l.head.lo == 0 {
		n := l.nextChunk(l.head)
		c := &chunk{items: make([]int64, n), lo: n, hi: n, next: l.head}
		if l.head == nil {
			l.tail = c
		} else {
			l.head.prev = c
		}
		l.head = c
	}
	l.head.lo--
	l.head.items[l.head.lo] = seq
	l.live++
}

func (l *line) nextChunk(neighbour *chunk) int {
	if neighbour == nil {
		return chunkMin
	}
	return min(2*len(neighbour.items), chunkMax)
}

// front is the job that is next; gone lists the tombstones, and loses those that came to the front. Only for a line with
// takeable jobs.
func (l *line) front(gone map[int64]struct{}) int64 {
	if len(l.back) == 0 {
		return l.chunkFront(gone)
	}
	if l.live > 0 {
		seq := l.chunkFront(gone)
		if n := len(l.fronts); n > 0 && l.fronts[n-1] < l.back[0].place {
			return seq
		}
	}
	return l.back[0].seq
}

func (l *line) chunkFront(gone map[int64]struct{}) int64 {
	for {
		seq := l.head.items[l.head.lo]
		if len(gone) == 0 {
			return seq
		}
		if _, dead := gone[seq]; !dead {
			return seq
		}
		delete(gone, seq)
		l.drop()
	}
}

// popFront removes the first job of the chunks.
func (l *line) popFront() {
	l.drop()
	l.live--
}

func (l *line) drop() {
	if n := len(l.fronts); n > 0 {
		l.fronts = l.fronts[:n-1]
	}
	c := l.head
	c.lo++
	if c.lo < c.hi {
		return
	}
	if c.next == nil {
		c.lo, c.hi = 0, 0 // a line that fills and empties keeps a small chunk
		if len(c.items) > chunkMin {
			l.head, l.tail = nil, nil
		}
		return
	}
	l.head = c.next
	l.head.prev = nil
}

// bury counts a job in the middle, already listed as gone, out. The last one takes all tombstones with it.
func (l *line) bury(gone map[int64]struct{}) {
	l.live--
	if l.live > 0 {
		return
	}
	for seq := range l.all() {
		delete(gone, seq)
	}
	l.head, l.tail, l.fronts = nil, nil, nil
}

// all yields the jobs of the chunks in order, tombstones among them.
func (l *line) all() func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		for c := l.head; c != nil; c = c.next {
			for _, seq := range c.items[c.lo:c.hi] {
				if !yield(seq) {
					return
				}
			}
		}
	}
}
