package e2e

import (
	"slices"
	"testing"
)

// Weights 3:1 with 100 jobs each in one slot: the first 40 starts are 30 and 10.
func TestWeightsThreeToOneOverHTTP(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, samplesConfig(t, dir)+
		"worker: {concurrency: 1}\nqueues: {a: {weight: 3, paused: true}, b: {weight: 1, paused: true}}\n")
	var ids []string
	for _, queue := range []string{"a", "b"} {
		ids = append(ids, s.enqueue(100, `{"type":"hello","payload":{},"queue":"`+queue+`"}`)...)
	}
	// The one slot is held while both queues are opened.
	s.enqueue(1, `{"type":"sleep","queue":"gate","payload":{"ms":1500}}`)
	s.running("gate", 1)
	for _, queue := range []string{"a", "b"} {
		if _, errs, code := s.client("queue", "resume", queue); code != 0 {
			t.Fatalf("queue resume %s: exit code %d: %s", queue, code, errs)
		}
	}
	jobs := make([]job, len(ids))
	for i, id := range ids {
		jobs[i] = s.wait(id)
	}
	slices.SortStableFunc(jobs, func(x, y job) int { return x.StartedAt.Compare(y.StartedAt) })
	count := map[string]int{}
	for _, j := range jobs[:40] {
		count[j.Queue]++
	}
	t.Logf("weights 3:1, first 40 starts: %v", count)
	if count["a"] < 28 || count["a"] > 32 {
		t.Errorf("the first 40 starts are %v, want a:30 b:10 (±2)", count)
	}
}
