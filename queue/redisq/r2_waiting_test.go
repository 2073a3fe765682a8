package redisq_test

import (
	"slices"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// blocked lists the workers of the crew that Redis has blocked, by name.
func (k *crew) blocked() []string {
	k.t.Helper()
	text, err := k.admin.ClientList(k.t.Context()).Result()
	if err != nil {
		k.t.Fatal(err)
	}
	var found []string
	for line := range strings.SplitSeq(text, "\n") {
		var name, flags string
		for f := range strings.FieldsSeq(line) {
			if v, ok := strings.CutPrefix(f, "name="+k.id); ok {
				name = v
			}
			if v, ok := strings.CutPrefix(f, "flags="); ok {
				flags = v
			}
		}
		if name != "" && strings.Contains(flags, "b") {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// until looks until the blocked workers are as wanted.
func (k *crew) until(what string, good func(blocked []string) bool) {
	k.t.Helper()
	look, end := time.NewTicker(time.Millisecond), time.After(patience)
	defer look.Stop()
	for {
		b := k.blocked()
		if good(b) {
			return
		}
		select {
		case <-look.C:
		case <-end:
			k.t.Fatalf("%v wait; want %s", b, what)
		}
	}
}

func (k *crew) waits(name string) {
	k.t.Helper()
	k.until(name+" among them", func(b []string) bool { return slices.Contains(b, name) })
}

// waiting checks that exactly these workers wait, that so many wakes were in vain so far, and that so many jobs are ready.
// A worker that woke either took a job, which the test has seen, or is counted here.
func (k *crew) waiting(workers []string, vain, ready int64) {
	k.t.Helper()
	if b, want := k.blocked(), slices.Sorted(slices.Values(workers)); !slices.Equal(b, want) {
		k.t.Fatalf("%v wait, want %v", b, want)
	}
	if n := k.vain(); n != vain {
		k.t.Fatalf("%d wakes in vain, want %d", n, vain)
	}
	if r := books(k.t, k.producer); r.Counts[queue.StateReady] != ready {
		k.t.Fatalf("%d jobs are ready, want %d", r.Counts[queue.StateReady], ready)
	}
	select {
	case e := <-k.events:
		k.t.Fatalf("%s: %s; want nothing more to happen", e.worker, e.what)
	default:
	}
}

func (k *crew) vain() int64 {
	var n int64
	for _, w := range k.workers {
		n += w.vain.Load()
	}
	return n
}

// order checks that exactly these workers wait, in this order, by giving each a job; none of them wakes in vain.
func (k *crew) order(q string, workers ...string) {
	k.t.Helper()
	vain := k.vain()
	k.waiting(workers, vain, 0)
	for i, w := range workers {
		k.push(q, 9000+i)
		k.takes(w, 9000+i)
	}
	k.waiting(nil, vain, 0)
}
