package redisq

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Bounds of merging: concurrent Enqueue calls share a script call.
const (
	committers     = 2   // script calls under way at once: one runs while the next is put together
	enqueueBatch   = 500 // jobs of one script call, about
	enqueueWaiting = 256 // calls that wait to be merged before callers block
	enqueueBytes   = 4 << 20
)

// enqueueCall is one caller's valid jobs of at most enqueueBatch.
type enqueueCall struct {
	jobs     []newJob
	bytes    int
	outcomes []queue.EnqueueOutcome // of jobs
	err      error
	done     chan struct{}
}

// newJob is a spec made ready to be sent.
type newJob struct {
	spec   *queue.JobSpec
	record []byte
	mark   string
	number int    // its place among the jobs of a script call, by which ids rise
	print  string // fingerprint, when it has an idempotency key
}

// meta is mark and number in one.
func (j *newJob) meta() string { return j.mark + strconv.Itoa(j.number) }

// plain says that a job is ready at once and leaves nothing but its record and its place in a line.
func (j *newJob) plain() bool {
	s := j.spec
	return s.IdempotencyKey == "" && s.Unique.Key == "" && s.Delay == 0 && s.ExpiresIn == 0 && len(s.Payload) <= inlineMax
}

// Enqueue implements queue.Queue. Calls of many goroutines are merged. A call of more than enqueueBatch jobs is sent in parts; when
// a later part fails, its outcomes are unknown and those before are as they are.
func (s *Store) Enqueue(ctx context.Context, specs []queue.JobSpec) ([]queue.EnqueueOutcome, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	outcomes := make([]queue.EnqueueOutcome, len(specs))
	sent := 0
	for from := 0; from < len(specs); {
		c := &enqueueCall{done: make(chan struct{})}
		places := make([]int, 0, min(len(specs)-from, enqueueBatch))
		for ; from < len(specs) && len(places) < enqueueBatch && c.bytes < enqueueBytes; from++ {
			spec := &specs[from]
			if err := spec.Validate(s.limits); err != nil {
				outcomes[from] = queue.EnqueueOutcome{Status: queue.EnqueueRejected, Err: err}
				continue
			}
			j := newJob{spec: spec, record: encodeBanded(spec), mark: mark(spec)}
			if spec.IdempotencyKey != "" {
				sum := queue.SpecFingerprint(*spec)
				j.print = string(sum[:])
			}
			c.bytes += len(j.record) + len(spec.Payload)
			c.jobs = append(c.jobs, j)
			places = append(places, from)
		}
		if len(places) == 0 {
			continue
		}
		err := s.commit(ctx, c)
		for k, i := range places {
			if err != nil {
				outcomes[i] = queue.EnqueueOutcome{Status: queue.EnqueueUnknown, Err: err}
			} else {
				outcomes[i] = c.outcomes[k]
			}
		}
		if err != nil {
			if sent == 0 {
				return nil, err
			}
			for i := from; i < len(specs); i++ {
				outcomes[i] = queue.EnqueueOutcome{Status: queue.EnqueueUnknown, Err: err}
			}
			return outcomes, nil
		}
		sent += len(places)
	}
	return outcomes, nil
}

// commit hands a call to a committer and waits.
func (s *Store) commit(ctx context.Context, c *enqueueCall) error {
	select {
	case s.enqueues <- c:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.life.Done():
		return queue.ErrClosed
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.life.Done():
		select {
		case <-c.done: // it was answered just before
			return c.err
		default:
			return queue.ErrClosed
		}
	}
}

// commitEnqueues merges what waits and sends it, until the store closes.
func (s *Store) commitEnqueues() {
	for {
		var calls []*enqueueCall
		select {
		case c := <-s.enqueues:
			calls = append(calls, c)
		case <-s.life.Done():
			return
		}
		jobs, bytes := len(calls[0].jobs), calls[0].bytes
	merge:
		for jobs < enqueueBatch && bytes < enqueueBytes {
			select {
			case c := <-s.enqueues:
				calls = append(calls, c)
				jobs += len(c.jobs)
				bytes += c.bytes
			default:
				break merge
			}
		}
		s.sendEnqueues(calls)
	}
}

// sendEnqueues stores the jobs of some calls in one script call.
func (s *Store) sendEnqueues(calls []*enqueueCall) {
	args, order := enqueueArgs(calls, s.limits.IdempotencyTTL, s.clock == nil)
	l, tail := s.lanes.take(), randomTail()
	all := append([]any{l.name, l.number, rand.IntN(8192), tail}, args...)
	v, err := s.run(s.life, "enqueue", all...)
	s.lanes.give(l)
	if err == nil {
		err = s.readEnqueued(v, tail, order)
	}
	for _, c := range calls {
		c.err = err
		close(c.done)
	}
}

// sentJob is a job at its place in the order in which the script meets it.
type sentJob struct {
	job     *newJob
	outcome *queue.EnqueueOutcome
}

// group is a run of plain jobs for one line.
type group struct {
	args []any
	jobs []sentJob
}

// enqueueArgs gathers the plain jobs of each line in groups, as far as the order within a line allows.
func enqueueArgs(calls []*enqueueCall, ttl time.Duration, realTime bool) (args []any, order []sentJob) {
	type lineKey struct{ tenant, queue string }
	type open struct {
		group          *group
		priority, mark string
	}
	number := 0
	var groups []*group
	current := make(map[lineKey]open)
	for _, c := range calls {
		c.outcomes = make([]queue.EnqueueOutcome, len(c.jobs))
		for i := range c.jobs {
			j := &c.jobs[i]
			j.number = number
			number++
			key, p := lineKey{j.spec.Tenant, j.spec.Queue}, ""
			if j.spec.Priority != nil {
				p = strconv.Itoa(*j.spec.Priority)
			}
			o := current[key]
			if !j.plain() {
				delete(current, key)
				groups = append(groups, &group{args: specialArgs(j, p, ttl, realTime), jobs: []sentJob{{j, &c.outcomes[i]}}})
				continue
			}
			if o.group == nil || o.priority != p || o.mark != j.mark {
				o = open{&group{args: []any{plainInRow, j.spec.Tenant, j.spec.Queue, p, j.mark}}, p, j.mark}
				current[key] = o
				groups = append(groups, o.group)
			}
			o.group.jobs = append(o.group.jobs, sentJob{j, &c.outcomes[i]})
		}
	}
	for _, g := range groups {
		args = append(args, g.args...)
		if g.args[0] == plainInRow {
			args = g.plainArgs(args, len(args)-len(g.args))
		}
		order = append(order, g.jobs...)
	}
	return args, order
}

// The kinds of a group of plain jobs: their numbers follow one another, or not.
const (
	plainInRow     = "p"
	plainScattered = "i"
)

// plainArgs appends what differs from job to job; the group's own arguments begin at args[at].
func (g *group) plainArgs(args []any, at int) []any {
	first, n := g.jobs[0].job.number, len(g.jobs)
	args = append(args, n)
	if g.jobs[n-1].job.number-first == n-1 { // numbers rise within a group
		args = append(args, first)
	} else {
		args[at] = plainScattered
		numbers := make([]byte, 0, 2*n)
		for _, j := range g.jobs {
			numbers = binary.BigEndian.AppendUint16(numbers, uint16(j.job.number))
		}
		args = append(args, numbers)
	}
	for _, j := range g.jobs {
		args = append(args, j.job.record)
	}
	return args
}

func specialArgs(j *newJob, priority string, ttl time.Duration, realTime bool) []any {
	s := j.spec
	optional := func(d time.Duration) any {
		if d <= 0 {
			return ""
		}
		return ceilMillis(d)
	}
	var px, body any = "", ""
	if realTime {
		px = ceilMillis(ttl)
	}
	if len(s.Payload) > inlineMax {
		body = s.Payload
	}
	conflict := "r"
	if s.Unique.OnConflict == queue.UniqueExisting {
		conflict = "e"
	}
	return []any{"s", s.Tenant, s.Queue, priority, j.record, j.meta(), s.IdempotencyKey, j.print, ceilMillis(ttl), px,
		s.Unique.Key, conflict, optional(s.Delay), optional(s.ExpiresIn), body, optional(s.Unique.Window)}
}

// readEnqueued turns the script's answer into outcomes.
func (s *Store) readEnqueued(v any, tail string, order []sentJob) error {
	list, err := asList(v)
	if err != nil || len(list) < 2 || (len(list)-2)%3 != 0 {
		return fmt.Errorf("%w: redis answered an enqueue with %d values", queue.ErrUnavailable, len(list))
	}
	pre, first := idTime(asInt(list[0])), asInt(list[1])
	for _, j := range order {
		*j.outcome = queue.EnqueueOutcome{Status: queue.EnqueueCreated, ID: queue.JobIDPrefix + "_" + pre + idNumber(first+int64(j.job.number)) + tail}
	}
	for k := 2; k < len(list); k += 3 {
		i := asInt(list[k])
		if i < 0 || i >= int64(len(order)) {
			return fmt.Errorf("%w: redis answered for job %d of %d", queue.ErrUnavailable, i, len(order))
		}
		o, spec, found := order[i].outcome, order[i].job.spec, asString(list[k+2])
		switch asString(list[k+1]) {
		case "d":
			*o = queue.EnqueueOutcome{Status: queue.EnqueueDuplicate, ID: queue.JobIDPrefix + "_" + found}
		case "m":
			*o = queue.EnqueueOutcome{Status: queue.EnqueueRejected,
				Err: &queue.IdempotencyMismatchError{Key: spec.IdempotencyKey, JobID: queue.JobIDPrefix + "_" + found}}
		default:
			if found == "" {
				return fmt.Errorf("%w: redis named no holder of a unique key", queue.ErrUnavailable)
			}
			*o = queue.EnqueueOutcome{Status: queue.EnqueueRejected,
				Err: &queue.UniqueHeldError{Key: spec.Unique.Key, JobID: queue.JobIDPrefix + "_" + found[1:], State: stateOfLetter[found[:1]]}}
		}
	}
	return nil
}

// Ids: see lua/lib/ids.lua.

const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

func idTime(ms int64) string {
	var b [10]byte
	for i := range b {
		b[9-i] = idAlphabet[ms>>(5*i)&31]
	}
	return string(b[:])
}

func idNumber(n int64) string {
	a := n >> 2
	return string([]byte{idAlphabet[14+a>>11&1], idAlphabet[a>>6&31], idAlphabet[a>>1&31], idAlphabet[a&1<<4|8|n&3]})
}

// randomTail is 60 random bits, shared by the jobs of one script call: the number before it tells those apart, and ids of other calls
// and other stores differ in it. Ids need not be secret: the tenant is checked wherever one is used.
func randomTail() string {
	var b strings.Builder
	b.Grow(12)
	for n, i := rand.Uint64(), 0; i < 12; i++ {
		b.WriteByte(idAlphabet[n>>(5*i)&31])
	}
	return b.String()
}
