package sqliteq

import (
	"math/rand/v2"
	"strconv"

	"github.com/taskhost/taskhost/queue"
)

// A batch row says what a process had in its hands, so that a crash budget survives the process: whoever opens the store
// next counts a crash for every job of every row. It is written after Reserve has answered, and not at all when the
// batch is finished by then.
//
// Jobs that were settled since stay in the row. They are told by state.returns, which rises with every settle that
// gives a job back: the row holds the number at the reservation.

const batchFormat = 1

func encodeBatch(b *batch) []byte {
	e := newEncoder(batchFormat, 16+6*b.left)
	for _, r := range b.jobs {
		if !r.settled {
			e.int(r.seq)
			e.int(r.st.returns)
			e.int(r.order)
		}
	}
	return e.seal()
}

// batchJob is one job of a batch row.
type batchJob struct {
	seq     int64
	returns int64
	order   int64
}

func decodeBatch(b []byte) ([]batchJob, error) {
	d := open(b, batchFormat)
	var jobs []batchJob
	for d.err == nil && len(d.b) > 0 {
		jobs = append(jobs, batchJob{seq: d.int(), returns: d.int(), order: d.int()})
	}
	return jobs, d.close()
}

// batchWork is the un-awaited request that follows a Reserve: it frees the unique keys that are held until a job starts,
// and writes the batch's row.
type batchWork struct {
	s     *Store
	b     *batch
	frees []uniqueKey
}

// uniqueKey is a held unique key.
type uniqueKey struct {
	tenant int64
	key    string
	seq    int64
}

func (w *batchWork) plan(g *group) error {
	for _, u := range w.frees {
		if err := g.exec(sqlUniqueDelete, u.tenant, u.key, u.seq); err != nil {
			return err
		}
	}
	g.batchRows = append(g.batchRows, w.b)
	return nil
}

func (w *batchWork) apply(*group)  {}
func (w *batchWork) revert(*group) { w.b.row = 0 }
func (w *batchWork) finish(error)  {}
func (w *batchWork) weight() int   { return 1 }

// writeBatch is part of flush, after the group's settlements are known.
func (g *group) writeBatch(b *batch) error {
	s := g.s
	s.mu.Lock()
	if b.left == b.settling || b.row != 0 {
		s.mu.Unlock()
		return nil
	}
	s.lastRow++
	b.row = s.lastRow
	row := encodeBatch(b)
	s.mu.Unlock()
	return g.exec(sqlBatchInsert, b.row, b.worker, b.started, b.lease, row)
}

// newToken makes the token of a batch, with s.mu held: the epoch, and 128 bits of ChaCha8 seeded by the system.
func newToken(epoch int64, random *rand.ChaCha8) queue.Token {
	const digits = "0123456789abcdef"
	var raw [16]byte
	_, _ = random.Read(raw[:]) // never fails
	out := make([]byte, 0, 40)
	out = strconv.AppendInt(out, epoch, 10)
	out = append(out, '-')
	for _, c := range raw {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return queue.Token(out)
}
