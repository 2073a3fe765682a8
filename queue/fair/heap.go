package fair

// A member of a heap knows its place in it, so that it can be moved or removed in O(log n).
type member[T any] interface {
	comparable
	before(T) bool
	place() *int // index in the heap, absent when it is in none
}

const absent = -1

// heap is a binary heap with the smallest member first.
type heap[T member[T]] []T

func (h *heap[T]) push(m T) {
	*m.place() = len(*h)
	*h = append(*h, m)
	h.up(len(*h) - 1)
}

func (h *heap[T]) remove(m T) {
	i, last := *m.place(), len(*h)-1
	if i != last {
		h.swap(i, last)
	}
	var none T
	(*h)[last] = none
	*h = (*h)[:last]
	*m.place() = absent
	if i != last && !h.down(i) {
		h.up(i)
	}
}

// fix restores the order after m changed.
func (h *heap[T]) fix(m T) {
	if !h.down(*m.place()) {
		h.up(*m.place())
	}
}

func (h heap[T]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].place(), *h[j].place() = i, j
}

func (h heap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

// down reports whether the member moved.
func (h heap[T]) down(i int) bool {
	start := i
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].before(h[child]) {
			child = right
		}
		if !h[child].before(h[i]) {
			break
		}
		h.swap(i, child)
		i = child
	}
	return i != start
}
