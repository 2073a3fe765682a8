// Package queuetest is the contract of package queue as tests. Exercise asserts it subject by subject on any store;
// Histories compares a store with the model, memq, over random histories. What a store cannot promise it lists in its
// Capabilities; exactly those cases are left out, and printed.
package queuetest

import (
	"slices"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Backend is one freshly opened, empty store under test. The suite closes it.
type Backend struct {
	Queue queue.Queue
	// Limits the store was opened with; the zero value means queue.DefaultLimits.
	Limits queue.Limits
	// Advance moves store time: a fake clock jumps, a store with a clock of its own waits.
	Advance func(d time.Duration)
	// Reopen closes the store cleanly and opens it again; nil for a store that forgets.
	Reopen func(t *testing.T) queue.Queue
	// Crash opens the store again as after kill -9: nothing was closed. nil for a store that forgets.
	Crash func(t *testing.T) queue.Queue
}

// testCase is one case of the contract.
type testCase struct {
	name string
	run  func(f *fixture)
	// needs is the promise that the case tests, when a store may decline it.
	needs queue.Limitation
}

// Exercise runs the contract; open is called once per case.
func Exercise(t *testing.T, open func(t *testing.T) Backend) {
	t.Helper()
	for _, subject := range subjects() {
		t.Run(subject.name, func(t *testing.T) {
			for _, c := range subject.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					runCase(t, open(t), c)
				})
			}
		})
	}
}

type subject struct {
	name  string
	cases []testCase
}

func subjects() []subject {
	return []subject{
		{name: "enqueue", cases: enqueueCases()},
		{name: "order", cases: orderCases()},
		{name: "fairness", cases: fairnessCases()},
		{name: "cost", cases: costCases()},
		{name: "delay", cases: delayCases()},
		{name: "lease", cases: leaseCases()},
		{name: "settle", cases: settleCases()},
		{name: "reap", cases: reapCases()},
		{name: "dead letters", cases: deadCases()},
		{name: "idempotency", cases: idempotencyCases()},
		{name: "unique", cases: uniqueCases()},
		{name: "expiry", cases: expiryCases()},
		{name: "queues", cases: queuesCases()},
		{name: "limits", cases: limitsCases()},
		{name: "concurrency keys", cases: concurrencyKeyCases()},
		{name: "jobs", cases: jobsCases()},
		{name: "cancel", cases: cancelCases()},
		{name: "bulk", cases: bulkCases()},
		{name: "notes", cases: notesCases()},
		{name: "records", cases: recordsCases()},
		{name: "retention", cases: retentionCases()},
		{name: "conservation", cases: conservationCases()},
		{name: "concurrency", cases: concurrencyCases()},
		{name: "waiting", cases: waitingCases()},
		{name: "durability", cases: durabilityCases()},
	}
}

func runCase(t *testing.T, b Backend, c testCase) {
	t.Helper()
	caps := b.Queue.Capabilities()
	if caps.Name == "" || caps.Durability == "" {
		t.Errorf("Capabilities() = %+v: a store has a name and says what it survives", caps)
	}
	f := newFixture(t, b)
	if c.needs != "" && slices.Contains(caps.Limitations, c.needs) {
		t.Skipf("%s declares the limitation %q", caps.Name, c.needs)
	}
	c.run(f)
	if !t.Failed() {
		f.checkBooks()
	}
}
