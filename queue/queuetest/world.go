package queuetest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// world is what the generator of a history knows: enough to ask mostly sensible, sometimes senseless things.
type world struct {
	clock        *FakeClock
	tenants      []string // of the jobs, by number
	reservations []reservation
	batches      int
	logged       map[int]bool
}

type reservation struct{ job, batch int }

// operation is one step: before runs once, run on both sides, after once with the model's side.
type operation struct {
	text   string
	before func()
	run    func(*side) string
	after  func(model *side)
}

var errNothingToDo = errors.New("nothing to do")

func (w *world) operation(rng *rand.Rand) operation {
	kinds := []struct {
		share int
		make  func(*rand.Rand) (operation, error)
	}{
		{20, w.enqueue}, {22, w.reserve}, {24, w.settle}, {4, w.extend}, {12, w.passTime}, {2, w.onlyTime}, {3, w.maintain},
		{4, w.cancel}, {5, w.remove}, {4, w.bulk}, {5, w.setQueue}, {2, w.configure}, {4, w.replay}, {1, w.purge}, {2, w.countDead},
		{2, w.progress}, {3, w.log}, {2, w.checkpoint}, {3, w.list}, {1, w.getQueue}, {2, w.lease}, {2, w.record}, {1, w.foreign}, {1, w.explain},
	}
	total := 0
	for _, k := range kinds {
		total += k.share
	}
	for {
		n := rng.IntN(total)
		for _, k := range kinds {
			if n -= k.share; n < 0 {
				if o, err := k.make(rng); err == nil {
					return o
				}
				break
			}
		}
	}
}

func choose[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

func (w *world) tenant(rng *rand.Rand) string { return choose(rng, "t0", "t0", "t1", "t2") }

func (w *world) queueName(rng *rand.Rand) string { return choose(rng, "q0", "q1", "q2", "q3") }

func (w *world) weight(rng *rand.Rand) float64 { return choose(rng, 1.0, 2, 3, 0.5, 0.1, 7, 1.0/3) }

// anyJob is mostly the number of a job, and its tenant; sometimes one that does not exist.
func (w *world) anyJob(rng *rand.Rand) (int, string) {
	if len(w.tenants) == 0 || rng.IntN(20) == 0 {
		return -1, w.tenant(rng)
	}
	n := rng.IntN(len(w.tenants))
	if recent := 12; len(w.tenants) > recent && rng.IntN(2) == 0 {
		n = len(w.tenants) - 1 - rng.IntN(recent)
	}
	return n, w.tenants[n]
}

// anyReservation is mostly a recent one.
func (w *world) anyReservation(rng *rand.Rand) (reservation, error) {
	if len(w.reservations) == 0 {
		return reservation{}, errNothingToDo
	}
	n := rng.IntN(len(w.reservations))
	if recent := 10; len(w.reservations) > recent && rng.IntN(8) != 0 {
		n = len(w.reservations) - 1 - rng.IntN(recent)
	}
	r := w.reservations[n]
	switch rng.IntN(25) {
	case 0:
		r.batch = rng.IntN(w.batches)
	case 1:
		r.batch = -1
	}
	return r, nil
}

func (w *world) enqueue(rng *rand.Rand) (operation, error) {
	specs := make([]queue.JobSpec, 1+rng.IntN(6)*rng.IntN(2))
	for i := range specs {
		specs[i] = w.spec(rng)
	}
	if rng.IntN(4) == 0 { // a batch for one line, due in another order
		for i := range specs {
			specs[i].Tenant, specs[i].Queue, specs[i].Priority = specs[0].Tenant, specs[0].Queue, specs[0].Priority
			specs[i].Delay = choose(rng, 0, time.Millisecond, 2*time.Second, 3*time.Second, 4*time.Second)
		}
	}
	if rng.IntN(6) == 0 { // a batch of one concurrency key
		for i := range specs {
			specs[i].Tenant, specs[i].Queue, specs[i].ConcurrencyKey = specs[0].Tenant, specs[0].Queue, "k0"
		}
	}
	var text []string
	for _, s := range specs {
		text = append(text, specText(s))
	}
	return operation{
		text: "enqueue " + strings.Join(text, ", "),
		run: func(s *side) string {
			outcomes, err := s.Queue.Enqueue(s.ctx, specs)
			if err != nil {
				return s.outcome(err)
			}
			var b strings.Builder
			for _, o := range outcomes {
				if o.Status == queue.EnqueueCreated {
					s.born(o.ID)
				}
				fmt.Fprintf(&b, "%s %s %s; ", o.Status, s.number(o.ID), s.outcome(o.Err))
			}
			return b.String()
		},
		after: func(model *side) {
			for n := len(w.tenants); n < len(model.ids); n++ {
				w.tenants = append(w.tenants, "")
			}
			for n, id := range model.ids {
				if w.tenants[n] == "" {
					for _, t := range []string{"t0", "t1", "t2"} {
						if _, err := model.jobs.GetJob(model.ctx, t, id); err == nil {
							w.tenants[n] = t
						}
					}
				}
			}
		},
	}, nil
}

func (w *world) spec(rng *rand.Rand) queue.JobSpec {
	s := queue.JobSpec{
		Tenant:      w.tenant(rng),
		Queue:       w.queueName(rng),
		Type:        choose(rng, "a", "b"),
		Payload:     []byte(strings.Repeat("p", 10*rng.IntN(4))),
		MaxAttempts: rng.IntN(4),
		PayloadJSON: rng.IntN(2) == 0,
	}
	sometimes := func(do func()) {
		if rng.IntN(5) == 0 {
			do()
		}
	}
	sometimes(func() { s.Priority = ptr(choose(rng, -1, 0, 1, 2)) })
	sometimes(func() { s.Priority = ptr(choose(rng, 0, 1)) })
	sometimes(func() { s.Delay = choose(rng, 1500*time.Microsecond, time.Second, 5*time.Second, time.Minute) })
	sometimes(func() { s.ExpiresIn = choose(rng, time.Millisecond, 3*time.Second, time.Minute) })
	sometimes(func() { s.Labels = map[string]string{"l": choose(rng, "x", "y")} })
	sometimes(func() { s.Headers = map[string]string{"h": "v"} })
	sometimes(func() { s.Timeout = time.Minute })
	sometimes(func() { s.Backoff = queue.Backoff{Base: time.Second, Max: time.Minute, Jitter: queue.JitterNone} })
	sometimes(func() { s.ConcurrencyKey = choose(rng, "k0", "k0", "k1") })
	sometimes(func() {
		s.Unique = queue.Unique{
			Key:        choose(rng, "u0", "u1", "u2"),
			Until:      choose(rng, "", queue.UniqueUntilFinished, queue.UniqueUntilStarted),
			OnConflict: choose(rng, "", queue.UniqueReject, queue.UniqueExisting),
		}
		if rng.IntN(3) == 0 {
			s.Unique.Until, s.Unique.Window = queue.UniqueUntilWindow, choose(rng, time.Millisecond, 3*time.Second+1, time.Minute, time.Hour)
		}
	})
	sometimes(func() { // an idempotency key
		// Few fields may vary, so that a key is met again by the same request.
		s = queue.JobSpec{Tenant: s.Tenant, Queue: choose(rng, "q0", "q0", "q1"), Type: "idem", IdempotencyKey: choose(rng, "i0", "i1", "i2"), MaxAttempts: 2}
	})
	switch rng.IntN(60) {
	case 0:
		s.Queue = ""
	case 1:
		s.Payload = make([]byte, 65)
	case 2:
		s.Priority = ptr(queue.PriorityMax + 1)
	case 3:
		s.Labels = map[string]string{"long": strings.Repeat("x", 64)}
	}
	return s
}

func specText(s queue.JobSpec) string {
	j := queue.Job{ID: "spec", Tenant: s.Tenant, Queue: s.Queue, Type: s.Type, Payload: s.Payload, PayloadJSON: s.PayloadJSON, Headers: s.Headers,
		Labels: s.Labels, Timeout: s.Timeout, MaxAttempts: s.MaxAttempts, Backoff: s.Backoff, IdempotencyKey: s.IdempotencyKey, Unique: s.Unique,
		ConcurrencyKey: s.ConcurrencyKey}
	text := describe(&j)
	if s.Priority != nil {
		text += fmt.Sprintf(" p=%d", *s.Priority)
	}
	if s.Delay > 0 {
		text += fmt.Sprintf(" delay=%s", s.Delay)
	}
	if s.ExpiresIn > 0 {
		text += fmt.Sprintf(" expires=%s", s.ExpiresIn)
	}
	return strings.TrimPrefix(text, "spec ")
}

func (w *world) reserve(rng *rand.Rand) (operation, error) {
	p := queue.ReserveParams{Worker: choose(rng, "w0", "w1"), Max: 1 + rng.IntN(6), Lease: choose(rng, 5*time.Second, 30*time.Second, time.Minute)}
	p.View.Queues = choose(rng, nil, nil, nil, []string{"q0"}, []string{"q1", "q2"}, []string{"q2", "q1", "q1"}, []string{"q3", "none"})
	if rng.IntN(4) == 0 {
		p.MaxBytes = 10 * rng.IntN(8)
	}
	return operation{
		text: fmt.Sprintf("reserve %d of %v bytes %d lease %s by %s", p.Max, p.View.Queues, p.MaxBytes, p.Lease, p.Worker),
		run: func(s *side) string {
			jobs, err := s.Queue.Reserve(s.ctx, p)
			s.taken = nil
			if err != nil {
				return s.outcome(err)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%d jobs", len(jobs))
			for _, j := range jobs {
				s.taken = append(s.taken, s.numbers[j.ID])
				fmt.Fprintf(&b, "\n%s same token %t", s.describe(j), j.Token == jobs[0].Token)
			}
			if len(jobs) > 0 {
				s.tokens = append(s.tokens, jobs[0].Token)
			}
			return b.String()
		},
		after: func(model *side) {
			for _, n := range model.taken {
				w.reservations = append(w.reservations, reservation{job: n, batch: w.batches})
			}
			if len(model.taken) > 0 {
				w.batches++
			}
		},
	}, nil
}

func (w *world) settle(rng *rand.Rand) (operation, error) {
	type item struct {
		reservation
		queue.Settlement
	}
	var items []item
	var text []string
	for range 1 + rng.IntN(4) {
		r, err := w.anyReservation(rng)
		if err != nil {
			return operation{}, err
		}
		st := queue.Settlement{
			Verb: choose(rng, queue.VerbAck, queue.VerbAck, queue.VerbNack, queue.VerbNack, queue.VerbDead, queue.VerbDefer, queue.VerbYield, queue.VerbRelease,
				queue.VerbRelease, queue.VerbCrash, queue.VerbCrash),
			Duration: time.Duration(rng.IntN(5000)) * choose(rng, time.Microsecond, time.Microsecond, time.Millisecond),
			Fuel:     int64(rng.IntN(3)),
		}
		switch st.Verb {
		case queue.VerbAck:
			st.Result = []byte(strings.Repeat("r", rng.IntN(34)))
		case queue.VerbNack, queue.VerbDead, queue.VerbCrash:
			if rng.IntN(10) != 0 {
				st.Error = failure(fmt.Sprintf("%s %d", choose(rng, "oops", "bad width"), rng.IntN(3)))
			}
		case queue.VerbDefer, queue.VerbYield, queue.VerbRelease:
		}
		if st.Verb == queue.VerbNack || st.Verb == queue.VerbDefer {
			st.Delay = choose(rng, 0, time.Millisecond, 5*time.Second, time.Minute)
		}
		if rng.IntN(3) == 0 {
			st.Handler = queue.Handler{Runtime: "wasm", Version: 1 + rng.IntN(3)}
		}
		if rng.IntN(60) == 0 {
			st.Verb = "explode"
		}
		items = append(items, item{r, st})
		text = append(text, fmt.Sprintf("%s #%d by token %d after %s delay %s error %s", st.Verb, r.job, r.batch, st.Duration, st.Delay, fault(st.Error)))
	}
	return operation{
		text: "settle " + strings.Join(text, ", "),
		run: func(s *side) string {
			var all []queue.Settlement
			for _, it := range items {
				st := it.Settlement
				st.Ref = queue.Ref{ID: s.id(it.job), Token: s.token(it.batch)}
				all = append(all, st)
			}
			outcomes, err := s.Queue.Settle(s.ctx, all)
			if err != nil {
				return s.outcome(err)
			}
			var b strings.Builder
			for _, o := range outcomes {
				fmt.Fprintf(&b, "%s %s %s; ", o.Status, o.State, s.outcome(o.Err))
			}
			return b.String()
		},
	}, nil
}

func (w *world) extend(rng *rand.Rand) (operation, error) {
	var refs []reservation
	for range 1 + rng.IntN(4) {
		r, err := w.anyReservation(rng)
		if err != nil {
			return operation{}, err
		}
		refs = append(refs, r)
	}
	d := choose(rng, 5*time.Second, 30*time.Second, time.Minute, time.Millisecond)
	return operation{
		text: fmt.Sprintf("extend %v by %s", refs, d),
		run: func(s *side) string {
			var all []queue.Ref
			for _, r := range refs {
				all = append(all, queue.Ref{ID: s.id(r.job), Token: s.token(r.batch)})
			}
			outcomes, err := s.Queue.Extend(s.ctx, all, d)
			if err != nil {
				return s.outcome(err)
			}
			var b strings.Builder
			for _, o := range outcomes {
				fmt.Fprintf(&b, "%s %s; ", o.Status, stamp(o.Until))
			}
			return b.String()
		},
	}, nil
}

func (w *world) someTime(rng *rand.Rand) time.Duration {
	return choose(rng, 300*time.Microsecond, time.Millisecond, time.Second, time.Second, 5*time.Second, 20*time.Second, time.Minute, 25*time.Hour)
}

func (w *world) onlyTime(rng *rand.Rand) (operation, error) {
	d := w.someTime(rng)
	return operation{
		text:   fmt.Sprintf("time passes: %s", d),
		before: func() { w.clock.Advance(d) },
		run: func(s *side) string {
			now, err := s.Queue.Now(s.ctx)
			return stamp(now) + " " + s.outcome(err)
		},
	}, nil
}

func (w *world) maintain(*rand.Rand) (operation, error) {
	return operation{text: "maintain", run: maintainText}, nil
}

func (w *world) passTime(rng *rand.Rand) (operation, error) {
	d := w.someTime(rng)
	return operation{text: fmt.Sprintf("after %s maintain", d), before: func() { w.clock.Advance(d) }, run: maintainText}, nil
}

func maintainText(s *side) string {
	var parts []string
	r := s.fixture.maintain()
	for _, p := range [...]struct {
		what string
		n    int
	}{{"promoted", r.Promoted}, {"reaped", r.Reaped}, {"expired", r.Expired}, {"retained", r.Retained}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.what, p.n))
		}
	}
	return strings.Join(parts, " ")
}

// snapshot writes everything that can be seen.
func (w *world) snapshot(s *side) string {
	var b strings.Builder
	for n, tenant := range w.tenants {
		j, err := s.jobs.GetJob(s.ctx, tenant, s.id(n))
		if err != nil {
			fmt.Fprintf(&b, "#%d %s\n", n, s.outcome(err))
			continue
		}
		fmt.Fprintln(&b, s.describe(j))
		if reasons, err := s.explainer.WaitingOn(s.ctx, tenant, s.id(n)); len(reasons) > 0 || err != nil {
			fmt.Fprintf(&b, "#%d %s %s\n", n, waits(reasons), s.outcome(err))
		}
	}
	for _, n := range slices.Sorted(maps.Keys(w.logged)) {
		page, err := s.notes.JobLogs(s.ctx, w.tenants[n], s.id(n), 0, 0)
		fmt.Fprintf(&b, "log #%d %s", n, s.outcome(err))
		for _, l := range page.Lines {
			fmt.Fprintf(&b, " [%d %d.%d %s %s %q]", l.Seq, l.Run, l.Attempt, stamp(l.At), l.Level, l.Message)
		}
		fmt.Fprintf(&b, " %t\n", page.Truncated)
	}
	for _, tenant := range []string{"t0", "t1", "t2"} {
		infos, err := s.queues.ListQueues(s.ctx, tenant)
		fmt.Fprintf(&b, "queues of %s %s\n", tenant, s.outcome(err))
		for _, info := range infos {
			fmt.Fprintln(&b, infoText(info))
		}
	}
	r, err := s.auditor.Audit(s.ctx)
	fmt.Fprintf(&b, "audit %s enqueued %d removed %d faults %q", s.outcome(err), r.Enqueued, r.Removed, r.Faults)
	for _, state := range queue.States() {
		fmt.Fprintf(&b, " %s=%d", state, r.Counts[state])
	}
	return b.String()
}

// infoText leaves OldestAge out: it is an age for people, not a promise to the millisecond.
func infoText(q queue.QueueInfo) string {
	value := func(s queue.QueueSettings) string {
		text := ""
		if s.Weight != nil {
			text += fmt.Sprintf("weight %v ", *s.Weight)
		}
		if s.Priority != nil {
			text += fmt.Sprintf("priority %d ", *s.Priority)
		}
		if s.Paused != nil {
			text += fmt.Sprintf("paused %t ", *s.Paused)
		}
		if s.MaxRunning != nil {
			text += fmt.Sprintf("max_running %d ", *s.MaxRunning)
		}
		if s.MaxPerKey != nil {
			text += fmt.Sprintf("max_per_key %d ", *s.MaxPerKey)
		}
		if s.Rate != nil {
			text += fmt.Sprintf("rate %s", *s.Rate)
		}
		return text
	}
	return fmt.Sprintf("%s/%s weight %v priority %d paused %t max_running %d max_per_key %d rate %s override (%s) held by %q scheduled %d ready %d running %d dead %d served %d",
		q.Tenant, q.Name, q.Weight, q.Priority, q.Paused, q.MaxRunning, q.MaxPerKey, q.Rate, value(q.Override), q.Waiting, q.Scheduled, q.Ready, q.Running, q.Dead, q.Served)
}
