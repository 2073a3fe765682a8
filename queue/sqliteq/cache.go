package sqliteq

// entry is what a reservation needs of a waiting job.
type entry struct {
	birth      birth
	record     []byte
	payload    []byte // when it is not in the record
	checkpoint []byte
	st         *state
	expiresAt  int64
}

// entryOverhead is what an entry costs beside its bytes: the map's slot, the headers and the state, rounded up.
const entryOverhead = 256

func (e *entry) size() int {
	return entryOverhead + len(e.record) + len(e.payload) + len(e.checkpoint) + 160*len(e.st.attempts)
}

// cache keeps entries from enqueue until reserve, so that a queue that keeps up never reads the database. When it is
// full it takes no more: in a line the oldest are served first, and those are the ones it has. Entries of paused queues
// are not kept. With s.mu held.
type cache struct {
	max     int
	size    int
	entries map[int64]entry
}

func (c *cache) put(seq int64, e entry) { c.add(seq, e, c.max) }

// putSoon is put for an entry that is about to be needed: a quarter more is kept free for those.
func (c *cache) putSoon(seq int64, e entry) { c.add(seq, e, c.max+c.max/4) }

func (c *cache) add(seq int64, e entry, limit int) {
	n := e.size()
	if c.size+n > limit {
		return
	}
	c.drop(seq)
	c.entries[seq] = e
	c.size += n
}

func (c *cache) get(seq int64) (entry, bool) {
	e, ok := c.entries[seq]
	return e, ok
}

func (c *cache) drop(seq int64) {
	if e, ok := c.entries[seq]; ok {
		c.size -= e.size()
		delete(c.entries, seq)
	}
}
