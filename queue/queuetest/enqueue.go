package queuetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func enqueueCases() []testCase {
	return []testCase{
		{name: "every field is kept", run: enqueueKeepsFields},
		{name: "cases 017, 018: payloads are opaque bytes", run: enqueueKeepsBytes},
		{name: "outcomes of one batch are independent", run: enqueueIndependent},
		{name: "an empty batch", run: func(f *fixture) { f.tryAll(nil) }},
		{name: "cases 013, 014, 015: bad specs are refused with field and range", run: enqueueRefuses},
		{name: "limits are inclusive", run: enqueueLimits},
		{name: "ids are well formed and rise", run: enqueueIDs},
		{name: "the caller's maps are not shared", run: enqueueOwnsMaps},
		{name: "the queue's priority is the default", run: enqueueDefaultPriority},
	}
}

func enqueueKeepsFields(f *fixture) {
	s := queue.JobSpec{
		Tenant: "acme", Queue: "mail", Type: "mail.send",
		Payload: []byte(`{"id":9007199254740993,"b":1e400,  "k":1,"k":2}`), PayloadJSON: true,
		Headers:  map[string]string{"traceparent": "00-1"},
		Labels:   map[string]string{"order": "42", "": "empty name"},
		Priority: ptr(7), ExpiresIn: time.Hour, Timeout: 90 * time.Second, MaxAttempts: 4,
		Backoff:        queue.Backoff{Base: 2 * time.Second, Max: time.Minute, Jitter: queue.JitterNone},
		IdempotencyKey: "key-1",
		Unique:         queue.Unique{Key: "u-1", Until: queue.UniqueUntilStarted, OnConflict: queue.UniqueExisting},
		RetriedFrom:    "job_01kb0000000000000000000000",
	}
	before := f.now()
	id := f.created(f.try(s))
	check := func(what string, j *queue.Job) {
		if j.ID != id || j.Tenant != s.Tenant || j.Queue != s.Queue || j.Type != s.Type || j.Priority != 7 || j.Timeout != s.Timeout ||
			j.MaxAttempts != 4 || j.Backoff != s.Backoff || j.IdempotencyKey != s.IdempotencyKey || j.Unique != s.Unique ||
			!j.PayloadJSON || j.PayloadBytes != len(s.Payload) || j.RetriedFrom != s.RetriedFrom {
			f.Errorf("%s = %+v, want what was enqueued: %+v", what, j, s)
		}
		if !bytes.Equal(j.Payload, s.Payload) {
			f.Errorf("%s: payload %q, want %q", what, j.Payload, s.Payload)
		}
		if !maps.Equal(j.Headers, s.Headers) || !maps.Equal(j.Labels, s.Labels) {
			f.Errorf("%s: headers %v labels %v, want %v and %v", what, j.Headers, j.Labels, s.Headers, s.Labels)
		}
		if j.CreatedAt.Before(before) || j.CreatedAt.After(f.now()) || !j.CreatedAt.Equal(queue.Millis(j.CreatedAt)) || j.CreatedAt.Location() != time.UTC {
			f.Errorf("%s: created at %s, want store time in UTC and milliseconds near %s", what, j.CreatedAt, before)
		}
		if want := j.CreatedAt.Add(time.Hour); !j.ExpiresAt.Equal(want) {
			f.Errorf("%s: expires at %s, want %s", what, j.ExpiresAt, want)
		}
	}
	j := f.wantState(id, queue.StateReady)
	check("GetJob", j)
	if j.Run != 1 || j.Attempt != 0 || !j.StartedAt.IsZero() || !j.FinishedAt.IsZero() || !j.NextRunAt.IsZero() || j.Token != "" || j.Worker != "" {
		f.Errorf("a new job = %+v, want run 1, no attempt, no start, no lease", j)
	}
	check("Reserve", f.takeOne())
}

func enqueueKeepsBytes(f *fixture) {
	payloads := [][]byte{
		nil, {0xff, 0xfe, 0x00}, []byte(`{"a":`), []byte("\x00"), bytes.Repeat([]byte{0, 1, 2, 0xff}, 40_000), []byte(`{"b":1e400}`),
	}
	for _, p := range payloads {
		s := spec("q", "")
		s.Payload = p
		id := f.created(f.try(s))
		if j := f.takeOne(); j.ID != id || !bytes.Equal(j.Payload, p) || j.PayloadBytes != len(p) {
			f.Errorf("payload of %d bytes came back as %d (PayloadBytes %d)", len(p), len(j.Payload), j.PayloadBytes)
		}
	}
}

func enqueueIndependent(f *fixture) {
	outcomes := f.tryAll([]queue.JobSpec{
		spec("q", "a"), spec("", "b"), spec("q", "c", idempotent("k")), spec("q", "c", idempotent("k")), spec("q", "e"),
	})
	a, c, e := f.created(outcomes[0]), f.created(outcomes[2]), f.created(outcomes[4])
	f.wantInvalid("an empty queue name", outcomes[1].Err)
	if outcomes[1].Status != queue.EnqueueRejected || outcomes[1].ID != "" {
		f.Errorf("outcome of the bad spec = %+v, want rejected without id", outcomes[1])
	}
	if o := outcomes[3]; o.Status != queue.EnqueueDuplicate || o.ID != c {
		f.Errorf("outcome of the repeated spec = %+v, want duplicate of %s", o, c)
	}
	if a == c || c == e {
		f.Errorf("two jobs share an id: %s %s %s", a, c, e)
	}
	f.wantOrder("a c e")
}

func enqueueRefuses(f *fixture) {
	cases := []struct {
		field string
		edit  edit
	}{
		{"tenant", tenant("")},
		{"tenant", tenant(strings.Repeat("t", queue.NameMax+1))},
		{"queue", func(s *queue.JobSpec) { s.Queue = "a b" }},
		{"queue", func(s *queue.JobSpec) { s.Queue = "a{b}c" }},
		{"queue", func(s *queue.JobSpec) { s.Queue = "a:b" }},
		{"queue", func(s *queue.JobSpec) { s.Queue = ".a" }},
		{"type", func(s *queue.JobSpec) { s.Type = "<img>" }},
		{"payload", func(s *queue.JobSpec) { s.Payload = make([]byte, f.Limits.PayloadBytes+1) }},
		{"headers", func(s *queue.JobSpec) { s.Headers = map[string]string{"h": strings.Repeat("x", f.Limits.HeaderBytes)} }},
		{"priority", priority(queue.PriorityMax + 1)},
		{"priority", priority(queue.PriorityMin - 1)},
		{"delay", delay(-1)},
		{"delay", delay(queue.DelayMax + 1)},
		{"expires_in", expires(-time.Second)},
		{"timeout", func(s *queue.JobSpec) { s.Timeout = queue.TimeoutMax + 1 }},
		{"max_attempts", maxAttempts(-1)},
		{"max_attempts", maxAttempts(queue.MaxAttemptsMax + 1)},
		{"idempotency_key", idempotent(strings.Repeat("k", queue.KeyMax+1))},
		{"unique.key", unique(queue.Unique{Key: strings.Repeat("k", queue.KeyMax+1)})},
		{"unique.until", unique(queue.Unique{Key: "k", Until: "tomorrow"})},
		{"unique.on_conflict", unique(queue.Unique{Key: "k", OnConflict: "shrug"})},
	}
	for i, c := range cases {
		what := fmt.Sprintf("case %d (%s)", i, c.field)
		o := f.try(spec("q", "bad", c.edit))
		if o.Status != queue.EnqueueRejected || o.ID != "" {
			f.Errorf("%s: outcome %+v, want rejected", what, o)
			continue
		}
		f.wantInvalid(what, o.Err)
		field := ""
		if e := (*queue.InvalidError)(nil); errors.As(o.Err, &e) {
			field = e.Field
		}
		if e := (*queue.LimitError)(nil); errors.As(o.Err, &e) {
			field = e.Field
		}
		if field != c.field {
			f.Errorf("%s: error %v names the field %q", what, o.Err, field)
		}
	}
	f.wantOrder("")
	if r := f.books(); r.Enqueued != 0 {
		f.Errorf("%d refused jobs were stored", r.Enqueued)
	}
}

func enqueueLimits(f *fixture) {
	s := spec("q", "")
	s.Payload = make([]byte, f.Limits.PayloadBytes)
	s.Queue = strings.Repeat("q", queue.NameMax)
	s.Headers = map[string]string{"h": strings.Repeat("x", f.Limits.HeaderBytes-1)}
	s.IdempotencyKey = strings.Repeat("k", queue.KeyMax)
	s.Priority = ptr(queue.PriorityMin)
	s.MaxAttempts = queue.MaxAttemptsMax
	id := f.created(f.try(s))
	if j := f.takeOne(); j.ID != id || len(j.Payload) != f.Limits.PayloadBytes {
		f.Errorf("the largest job came back as %s with %d bytes", j.ID, len(j.Payload))
	}
}

func enqueueIDs(f *fixture) {
	last := ""
	for i := range 50 {
		id := f.put("q", fmt.Sprint(i))
		if _, ok := queue.ParseID(queue.JobIDPrefix, id); !ok {
			f.Fatalf("id %q is not %s_ and %d characters", id, queue.JobIDPrefix, queue.IDLen)
		}
		if id <= last {
			f.Fatalf("id %s came after %s: ids must rise", id, last)
		}
		last = id
		if i%10 == 0 {
			f.Advance(time.Millisecond)
		}
	}
}

func enqueueOwnsMaps(f *fixture) {
	s := spec("q", "a")
	s.Labels = map[string]string{"k": "v"}
	id := f.created(f.try(s))
	s.Labels["k"] = "changed by the producer"
	f.get(id).Labels["k"] = "changed by a reader"
	if got := f.get(id).Labels["k"]; got != "v" {
		f.Errorf("label = %q, want v: a Job handed out is the caller's own", got)
	}
}

func enqueueDefaultPriority(f *fixture) {
	f.configure(queue.Scheduling{Queues: map[string]queue.QueueSettings{"vip": {Priority: ptr(10)}}})
	before := f.put("vip", "before")
	f.setQueue("acme", "vip", queue.QueueChange{Set: queue.QueueSettings{Priority: ptr(20)}})
	after := f.put("vip", "after")
	explicit := f.put("vip", "explicit", priority(0))
	plain := f.put("plain", "plain")
	for id, want := range map[string]int{before: 10, after: 20, explicit: 0, plain: 0} {
		if got := f.get(id).Priority; got != want {
			f.Errorf("priority of %s = %d, want %d: it is resolved at enqueue", f.get(id).Payload, got, want)
		}
	}
	f.wantOrder("after before plain explicit")
}
