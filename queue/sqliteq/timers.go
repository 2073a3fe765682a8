package sqliteq

import "math"

// never is a time that does not come.
const never = int64(math.MaxInt64)

// due is one entry of a timeHeap: at (milliseconds) something is to be done with job seq.
type due struct {
	at  int64
	seq int64
	l   *line
}

// timeHeap is a binary heap, earliest first, ties by job number. Entries that no longer count are dropped when they come
// to the top, or by compact.
type timeHeap []due

func (d due) before(o due) bool { return d.at < o.at || d.at == o.at && d.seq < o.seq }

func (h *timeHeap) push(d due) {
	*h = append(*h, d)
	a := *h
	for i := len(a) - 1; i > 0; {
		parent := (i - 1) / 2
		if !a[i].before(a[parent]) {
			break
		}
		a[i], a[parent] = a[parent], a[i]
		i = parent
	}
}

func (h *timeHeap) pop() due {
	a := *h
	top := a[0]
	last := len(a) - 1
	a[0] = a[last]
	a[last] = due{}
	*h = a[:last]
	h.sink(0)
	return top
}

func (h timeHeap) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && h[right].before(h[child]) {
			child = right
		}
		if !h[child].before(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// compact keeps the entries for which keep is true.
func (h *timeHeap) compact(keep func(due) bool) {
	kept := (*h)[:0]
	for _, d := range *h {
		if keep(d) {
			kept = append(kept, d)
		}
	}
	clear((*h)[len(kept):])
	*h = kept
	for i := len(kept)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

// batchHeap orders the reserved batches by a lower bound of the end of their leases.
type batchHeap []*batch

func (h *batchHeap) push(b *batch) {
	b.index = len(*h)
	*h = append(*h, b)
	h.up(b.index)
}

func (h *batchHeap) remove(b *batch) {
	a := *h
	i, last := b.index, len(a)-1
	a[i] = a[last]
	a[i].index = i
	a[last] = nil
	*h = a[:last]
	b.index = -1
	if i < last {
		h.down(i)
		h.up(i)
	}
}

// rekey moves a batch whose bound was raised.
func (h batchHeap) rekey(b *batch, until int64) {
	b.until = until
	h.down(b.index)
}

func (h batchHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h batchHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if h[i].until >= h[parent].until {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h batchHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && h[right].until < h[child].until {
			child = right
		}
		if h[child].until >= h[i].until {
			return
		}
		h.swap(i, child)
		i = child
	}
}
