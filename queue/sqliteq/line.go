package sqliteq

import "github.com/taskhost/taskhost/queue/fair"

// line is the ready jobs of one queue and priority, in order. It holds job numbers only: 8 bytes a job, and the
// directory of chunks. A job that leaves from the middle (cancelled, expired) stays as a tombstone, listed in Store.gone,
// until it comes to the front.
type line struct {
	q       *queueState
	prio    int
	head    *chunk
	tail    *chunk
	live    int // without tombstones
	entries []lineEntry
}

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

func (l *line) pushFront(seq int64) {
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
// live jobs.
func (l *line) front(gone map[int64]struct{}) int64 {
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

// popFront removes what front returned.
func (l *line) popFront() {
	l.drop()
	l.live--
}

func (l *line) drop() {
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
	l.head, l.tail = nil, nil
}

// all yields the jobs in order, tombstones among them.
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
