package queuetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// lease is long enough that no case that does not mean to outlives it.
const lease = 30 * time.Second

// fixture is a store under test with short words for what the cases do. Its methods end the case on an unexpected answer.
type fixture struct {
	*testing.T
	Backend
	ctx context.Context

	jobs       queue.Jobs
	explainer  queue.Explainer
	notes      queue.Notes
	queues     queue.Queues
	configured queue.Configurable
	dead       queue.DeadLetters
	bulk       queue.Bulk
	leaser     queue.Leaser
	records    queue.Records
	auditor    queue.Auditor
}

func newFixture(t *testing.T, b Backend) *fixture {
	t.Helper()
	if b.Limits == (queue.Limits{}) {
		b.Limits = queue.DefaultLimits()
	}
	f := &fixture{T: t, Backend: b, ctx: t.Context()}
	f.use(b.Queue)
	t.Cleanup(func() {
		if err := f.Queue.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return f
}

// use looks at a (re)opened store; every part of the contract must be there.
func (f *fixture) use(q queue.Queue) {
	f.Helper()
	f.Queue = q
	f.jobs = part[queue.Jobs](f, "Jobs")
	f.explainer = part[queue.Explainer](f, "Explainer")
	f.notes = part[queue.Notes](f, "Notes")
	f.queues = part[queue.Queues](f, "Queues")
	f.configured = part[queue.Configurable](f, "Configurable")
	f.dead = part[queue.DeadLetters](f, "DeadLetters")
	f.bulk = part[queue.Bulk](f, "Bulk")
	f.leaser = part[queue.Leaser](f, "Leaser")
	f.records = part[queue.Records](f, "Records")
	f.auditor = part[queue.Auditor](f, "Auditor")
}

func part[T any](f *fixture, name string) T {
	f.Helper()
	p, ok := f.Queue.(T)
	if !ok {
		f.Fatalf("%T does not implement queue.%s and does not list it as a limitation", f.Queue, name)
	}
	return p
}

// edit changes a spec.
type edit func(*queue.JobSpec)

func priority(p int) edit { return func(s *queue.JobSpec) { s.Priority = &p } }

func tenant(name string) edit { return func(s *queue.JobSpec) { s.Tenant = name } }

func delay(d time.Duration) edit { return func(s *queue.JobSpec) { s.Delay = d } }

func expires(d time.Duration) edit { return func(s *queue.JobSpec) { s.ExpiresIn = d } }

func maxAttempts(n int) edit { return func(s *queue.JobSpec) { s.MaxAttempts = n } }

func idempotent(key string) edit { return func(s *queue.JobSpec) { s.IdempotencyKey = key } }

func keyed(key string) edit { return func(s *queue.JobSpec) { s.ConcurrencyKey = key } }

func unique(u queue.Unique) edit { return func(s *queue.JobSpec) { s.Unique = u } }

// spec is a job of tenant "acme" whose payload is label, by which the cases name it.
func spec(q, label string, edits ...edit) queue.JobSpec {
	s := queue.JobSpec{Tenant: "acme", Queue: q, Type: "work", Payload: []byte(label), MaxAttempts: 3}
	for _, e := range edits {
		e(&s)
	}
	return s
}

// put enqueues one job and returns its id.
func (f *fixture) put(q, label string, edits ...edit) string {
	f.Helper()
	return f.created(f.try(spec(q, label, edits...)))
}

// putN enqueues n jobs with empty labels.
func (f *fixture) putN(n int, q string, edits ...edit) {
	f.Helper()
	specs := make([]queue.JobSpec, n)
	for i := range specs {
		specs[i] = spec(q, "", edits...)
	}
	for _, o := range f.tryAll(specs) {
		f.created(o)
	}
}

// putAll enqueues jobs of one queue in one call.
func (f *fixture) putAll(q, labels string, edits ...edit) []string {
	f.Helper()
	var specs []queue.JobSpec
	for label := range strings.FieldsSeq(labels) {
		specs = append(specs, spec(q, label, edits...))
	}
	var ids []string
	for _, o := range f.tryAll(specs) {
		ids = append(ids, f.created(o))
	}
	return ids
}

func (f *fixture) try(s queue.JobSpec) queue.EnqueueOutcome {
	f.Helper()
	return f.tryAll([]queue.JobSpec{s})[0]
}

func (f *fixture) tryAll(specs []queue.JobSpec) []queue.EnqueueOutcome {
	f.Helper()
	outcomes, err := f.Queue.Enqueue(f.ctx, specs)
	if err != nil {
		f.Fatalf("Enqueue: %v", err)
	}
	if len(outcomes) != len(specs) {
		f.Fatalf("Enqueue of %d specs returned %d outcomes", len(specs), len(outcomes))
	}
	return outcomes
}

func (f *fixture) created(o queue.EnqueueOutcome) string {
	f.Helper()
	if o.Status != queue.EnqueueCreated || o.ID == "" || o.Err != nil {
		f.Fatalf("enqueue outcome = %+v, want created", o)
	}
	return o.ID
}

// take reserves up to n jobs of all queues.
func (f *fixture) take(n int) []*queue.Job {
	f.Helper()
	return f.takeFrom(queue.View{}, n)
}

func (f *fixture) takeFrom(v queue.View, n int) []*queue.Job {
	f.Helper()
	jobs, err := f.Queue.Reserve(f.ctx, queue.ReserveParams{Worker: "w1", View: v, Max: n, Lease: lease})
	if err != nil {
		f.Fatalf("Reserve: %v", err)
	}
	if len(jobs) > n {
		f.Fatalf("Reserve of at most %d jobs returned %d", n, len(jobs))
	}
	return jobs
}

// takeOne reserves the job that must be there.
func (f *fixture) takeOne() *queue.Job {
	f.Helper()
	jobs := f.take(1)
	if len(jobs) != 1 {
		f.Fatalf("Reserve found nothing, want a job")
	}
	return jobs[0]
}

func labels(jobs []*queue.Job) string {
	var l []string
	for _, j := range jobs {
		l = append(l, string(j.Payload))
	}
	return strings.Join(l, " ")
}

// order takes all that is ready, one job at a time, and returns the labels.
func (f *fixture) order() string {
	f.Helper()
	var all []*queue.Job
	for range 10_000 {
		jobs := f.take(1)
		if len(jobs) == 0 {
			return labels(all)
		}
		all = append(all, jobs...)
	}
	f.Fatalf("the store never runs dry; it began with %q", labels(all[:50]))
	return ""
}

// wantOrder takes all that is ready and compares.
func (f *fixture) wantOrder(want string) {
	f.Helper()
	if got := f.order(); got != want {
		f.Fatalf("reserved in the order %q, want %q", got, want)
	}
}

func ref(j *queue.Job) queue.Ref { return queue.Ref{ID: j.ID, Token: j.Token} }

func failure(message string) *queue.JobError {
	return &queue.JobError{Kind: "retryable", Message: message, Retryable: true}
}

// settlement of a job, with the error that the verb needs.
func settlement(j *queue.Job, v queue.Verb) queue.Settlement {
	s := queue.Settlement{Ref: ref(j), Verb: v}
	switch v {
	case queue.VerbNack, queue.VerbDead, queue.VerbCrash:
		s.Error = failure(string(v))
	case queue.VerbAck, queue.VerbDefer, queue.VerbYield, queue.VerbRelease:
	}
	return s
}

func (f *fixture) settleAll(all ...queue.Settlement) []queue.SettleOutcome {
	f.Helper()
	outcomes, err := f.Queue.Settle(f.ctx, all)
	if err != nil {
		f.Fatalf("Settle: %v", err)
	}
	if len(outcomes) != len(all) {
		f.Fatalf("Settle of %d returned %d outcomes", len(all), len(outcomes))
	}
	return outcomes
}

// settle ends one reservation, which must be current, and compares the state after it.
func (f *fixture) settle(s queue.Settlement, want queue.State) {
	f.Helper()
	if o := f.settleAll(s)[0]; o.Status != queue.SettleOK || o.State != want || o.Err != nil {
		f.Fatalf("Settle %s = %+v, want ok and %s", s.Verb, o, want)
	}
}

func (f *fixture) ack(jobs ...*queue.Job) {
	f.Helper()
	for _, j := range jobs {
		f.settle(settlement(j, queue.VerbAck), queue.StateSucceeded)
	}
}

// bury makes a ready job dead and returns it as it is then. It must be the next one.
func (f *fixture) bury(id string) *queue.Job {
	f.Helper()
	j := f.takeOne()
	if j.ID != id {
		f.Fatalf("reserved %s, want %s", j.ID, id)
	}
	f.settle(settlement(j, queue.VerbDead), queue.StateDead)
	return f.get(id)
}

// wantLost settles with a token that is not current.
func (f *fixture) wantLost(s queue.Settlement) {
	f.Helper()
	if o := f.settleAll(s)[0]; o.Status != queue.SettleLeaseLost {
		f.Fatalf("Settle %s with a stale token = %+v, want lease_lost", s.Verb, o)
	}
}

func (f *fixture) extend(j *queue.Job, d time.Duration) queue.ExtendOutcome {
	f.Helper()
	outcomes, err := f.Queue.Extend(f.ctx, []queue.Ref{ref(j)}, d)
	if err != nil || len(outcomes) != 1 {
		f.Fatalf("Extend = %v, %v", outcomes, err)
	}
	return outcomes[0]
}

// maintain runs Maintain until there is no more to do and returns the sum.
func (f *fixture) maintain() queue.MaintainReport {
	f.Helper()
	var sum queue.MaintainReport
	for {
		r, err := f.Queue.Maintain(f.ctx)
		if err != nil {
			f.Fatalf("Maintain: %v", err)
		}
		sum.Promoted += r.Promoted
		sum.Reaped += r.Reaped
		sum.Expired += r.Expired
		sum.Retained += r.Retained
		sum.Evicted += r.Evicted
		if !r.More {
			return sum
		}
	}
}

// pass moves time and lets Maintain do what became due.
func (f *fixture) pass(d time.Duration) queue.MaintainReport {
	f.Helper()
	f.Advance(d)
	return f.maintain()
}

func (f *fixture) now() time.Time {
	f.Helper()
	now, err := f.Queue.Now(f.ctx)
	if err != nil {
		f.Fatalf("Now: %v", err)
	}
	return now
}

func (f *fixture) get(id string) *queue.Job {
	f.Helper()
	j, err := f.jobs.GetJob(f.ctx, "acme", id)
	if err != nil {
		f.Fatalf("GetJob(%s): %v", id, err)
	}
	return j
}

func (f *fixture) wantGone(id string) {
	f.Helper()
	if j, err := f.jobs.GetJob(f.ctx, "acme", id); !errors.Is(err, queue.ErrNotFound) {
		f.Fatalf("GetJob(%s) = %+v, %v, want ErrNotFound", id, j, err)
	}
}

func (f *fixture) wantState(id string, want queue.State) *queue.Job {
	f.Helper()
	j := f.get(id)
	if j.State != want {
		f.Fatalf("%s is %s, want %s", id, j.State, want)
	}
	return j
}

func (f *fixture) configure(s queue.Scheduling) {
	f.Helper()
	if err := f.configured.Configure(f.ctx, s); err != nil {
		f.Fatalf("Configure: %v", err)
	}
}

func (f *fixture) setQueue(tenant, name string, c queue.QueueChange) queue.QueueInfo {
	f.Helper()
	info, err := f.queues.SetQueue(f.ctx, tenant, name, c)
	if err != nil {
		f.Fatalf("SetQueue(%s, %s): %v", tenant, name, err)
	}
	return info
}

func (f *fixture) info(name string) queue.QueueInfo {
	f.Helper()
	info, err := f.queues.GetQueue(f.ctx, "acme", name)
	if err != nil {
		f.Fatalf("GetQueue(%s): %v", name, err)
	}
	return info
}

// books returns a clean audit.
func (f *fixture) books() queue.AuditReport {
	f.Helper()
	r, err := f.auditor.Audit(f.ctx)
	if err != nil {
		f.Fatalf("Audit: %v", err)
	}
	if len(r.Faults) > 0 {
		f.Fatalf("Audit found %d faults:\n%s", len(r.Faults), strings.Join(r.Faults, "\n"))
	}
	return r
}

// checkBooks asserts that no job was lost or doubled: those in a state and those removed are those enqueued.
func (f *fixture) checkBooks() {
	f.Helper()
	r, err := f.auditor.Audit(context.WithoutCancel(f.ctx))
	if errors.Is(err, queue.ErrClosed) {
		return // the case was about closing
	}
	if err != nil || len(r.Faults) > 0 {
		f.Errorf("Audit = %v, faults %v", err, r.Faults)
	}
	sum := r.Removed
	for _, n := range r.Counts {
		sum += n
	}
	if sum != r.Enqueued {
		f.Errorf("Audit: %v and %d removed do not add up to %d enqueued", r.Counts, r.Removed, r.Enqueued)
	}
}

func (f *fixture) wantInvalid(what string, err error) {
	f.Helper()
	if !errors.Is(err, queue.ErrInvalid) {
		f.Errorf("%s: error %v, want one that is ErrInvalid", what, err)
	}
}

func ptr[T any](v T) *T { return &v }

func weight(w float64) queue.QueueChange {
	return queue.QueueChange{Set: queue.QueueSettings{Weight: &w}}
}

func paused(p bool) queue.QueueChange {
	return queue.QueueChange{Set: queue.QueueSettings{Paused: &p}}
}
