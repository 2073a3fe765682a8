package sqliteq

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// counters are the store's numbers that the meta row keeps. The writer owns them.
type counters struct {
	nextSeq  int64
	front    int64
	revision int64
	enqueued int64
	removed  int64
}

// group is one transaction of the writer. Requests add to it; rows of the hot path are written together by flush.
type group struct {
	w        *writer
	s        *Store
	now      time.Time
	nowMS    int64
	counters counters
	config   queue.Scheduling // in force at the beginning of the group

	inserts  []driver.Value // jobs, insertColumns each
	deletes  []int64        // jobs
	finished []driver.Value // finishedColumns each

	touched     map[int64]struct{} // waiting jobs changed in this group
	batchRows   []*batch
	batchesDone []int64
	firstEnd    [2]bool  // a finished row was added: others, dead
	finAdded    [2]int64 // finished rows that flush will insert
	finDeleted  [2]int64 // finished rows that were deleted
	dirty       bool     // the meta row is to be written
}

const (
	insertColumns   = 8
	finishedColumns = 11
	deadBase        = int64(1) << 60 // first number of a dead row in finished
)

// Indexes of writer.nextFin and Store.finishedFirst.
const (
	finOther = iota
	finDead
)

// regionOf is the half of finished that holds jobs of a terminal state.
func regionOf(s queue.State) int {
	if s == queue.StateDead {
		return finDead
	}
	return finOther
}

// deleteFinished removes the row of a finished job.
func (g *group) deleteFinished(f *finishedRow) error {
	g.finDeleted[regionOf(f.state)]++
	return g.exec(sqlFinishedDelete, f.fin)
}

func (g *group) begin(w *writer) {
	g.w, g.s = w, w.s
	g.now = w.s.now()
	g.nowMS = g.now.UnixMilli()
	g.counters = w.counters
	clear(g.inserts)
	clear(g.finished)
	g.inserts, g.deletes, g.finished = g.inserts[:0], g.deletes[:0], g.finished[:0]
	if g.touched == nil {
		g.touched = make(map[int64]struct{})
	}
	clear(g.touched)
	clear(g.batchRows)
	g.batchRows, g.batchesDone = g.batchRows[:0], g.batchesDone[:0]
	g.firstEnd, g.finAdded, g.finDeleted = [2]bool{}, [2]int64{}, [2]int64{}
	g.dirty = false
	w.s.mu.Lock()
	g.config = w.s.scheduling
	w.s.mu.Unlock()
}

func (g *group) exec(text string, args ...driver.Value) error {
	return g.w.c.exec(context.Background(), text, args...)
}

func (g *group) query(text string, each func([]driver.Value) error, args ...driver.Value) error {
	return g.w.c.query(context.Background(), text, each, args...)
}

// tailPos is a place behind every place given so far; seq numbers are such places too.
func (g *group) tailPos() int64 {
	n := g.counters.nextSeq
	g.counters.nextSeq++
	g.dirty = true
	g.w.counters.nextSeq = g.counters.nextSeq // never given twice, also when the group fails
	return n
}

// frontPos returns the first of n places before every place given so far.
func (g *group) frontPos(n int) int64 {
	g.counters.front -= int64(n)
	g.dirty = true
	g.w.counters.front = g.counters.front
	return g.counters.front
}

// flush writes what was gathered.
func (g *group) flush() error {
	changed := g.dirty || g.counters != g.w.counters
	if err := g.multi(insertJobs, g.inserts, insertColumns); err != nil {
		return err
	}
	if err := g.multi(insertFinished, g.finished, finishedColumns); err != nil {
		return err
	}
	if err := g.deleteJobs(); err != nil {
		return err
	}
	for _, b := range g.batchRows {
		if err := g.writeBatch(b); err != nil {
			return err
		}
	}
	for _, id := range g.batchesDone {
		if err := g.exec(sqlBatchDelete, id); err != nil {
			return err
		}
	}
	if err := g.writeServed(); err != nil {
		return err
	}
	if !changed {
		return nil
	}
	c := g.counters
	return g.exec(sqlMetaCounters, c.nextSeq, c.front, c.revision, c.enqueued, c.removed)
}

// Multi-row statements: the head, one tuple per row.
const (
	insertJobs     = "INSERT INTO jobs (seq, queue, priority, birth, run_at, expires_at, record, state) VALUES "
	insertFinished = "INSERT INTO finished (fin, tenant, seq, queue, priority, outcome, birth, finished_at, expires_at, record, state) VALUES "
	deleteJobs     = "DELETE FROM jobs WHERE seq IN "
)

// Rows per statement; each size is prepared once.
var rowSizes = [...]int{64, 16, 4, 1}

// multi inserts rows of the given number of columns with as few statements as rowSizes allows.
func (g *group) multi(head string, values []driver.Value, columns int) error {
	for _, size := range rowSizes {
		for len(values) >= size*columns {
			if err := g.exec(g.w.text(head, size, columns), values[:size*columns]...); err != nil {
				return err
			}
			values = values[size*columns:]
		}
	}
	return nil
}

// textKey names a generated statement.
type textKey struct {
	head          string
	rows, columns int
}

// text is head followed by rows tuples of question marks, made once.
func (w *writer) text(head string, rows, columns int) string {
	key := textKey{head, rows, columns}
	if t, ok := w.texts[key]; ok {
		return t
	}
	tuple := "(" + strings.Repeat("?,", columns-1) + "?)"
	t := head + strings.Repeat(tuple+",", rows-1) + tuple
	w.texts[key] = t
	return t
}

// deleteJobs removes rows: runs of neighbours, which a queue that is served in order gives, by range.
func (g *group) deleteJobs() error {
	slices.Sort(g.deletes)
	var single []driver.Value
	for i := 0; i < len(g.deletes); {
		end := i + 1
		for end < len(g.deletes) && g.deletes[end] == g.deletes[end-1]+1 {
			end++
		}
		if end-i >= 4 {
			if err := g.exec(sqlJobsDeleteRun, g.deletes[i], g.deletes[end-1]); err != nil {
				return err
			}
		} else {
			for _, seq := range g.deletes[i:end] {
				single = append(single, seq)
			}
		}
		i = end
	}
	for _, size := range rowSizes {
		for len(single) >= size {
			if err := g.exec(g.w.text(deleteJobs, 1, size), single[:size]...); err != nil {
				return err
			}
			single = single[size:]
		}
	}
	return nil
}

// servedEvery is how often the counters of reservations are written, at most.
const servedEvery = time.Second

// writeServed stores the counters that changed.
func (g *group) writeServed() error {
	if g.nowMS-g.w.flushed < servedEvery.Milliseconds() {
		return nil
	}
	g.w.flushed = g.nowMS
	return g.flushServed()
}

func (g *group) flushServed() error {
	type row struct {
		q      *queueState
		served int64
	}
	var rows []row
	g.s.mu.Lock()
	for _, q := range g.s.queuesByID {
		if q.stored && q.served != q.servedRow {
			rows = append(rows, row{q, q.served})
		}
	}
	g.s.mu.Unlock()
	for _, r := range rows {
		if err := g.exec(sqlQueueServed, r.served, r.q.id); err != nil {
			return err
		}
		r.q.servedRow = r.served // the writer's own; ahead of the row when the commit fails, which the next second mends
	}
	return nil
}
