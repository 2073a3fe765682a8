package queuetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

// HistoryLimits are the limits under which Histories opens stores: small, so that they are met often.
func HistoryLimits() queue.Limits {
	return queue.Limits{PayloadBytes: 64, ResultBytes: 32, HeaderBytes: 64, LogBytes: 40, CheckpointBytes: 16, IdempotencyTTL: 30 * time.Second}
}

// Environment of Histories.
const (
	LongEnv = "TASKHOST_TEST_LONG" // "1": many more and longer histories
	SeedEnv = "TASKHOST_TEST_SEED" // runs one history, as a failure prints it
)

// Histories runs random histories against the model memq and against a subject, both on one fake clock, and compares
// every answer and, every few steps, everything that can be seen. open returns an empty store on that clock with
// HistoryLimits. A failing history is made shorter and printed with its seed. Without seeds it runs its own, and then
// also fails when the histories met too little of the contract to prove anything.
func Histories(t *testing.T, open func(t *testing.T, clock queue.Clock, limits queue.Limits) queue.Queue, seeds ...uint64) {
	t.Helper()
	steps, own := 250, len(seeds) == 0
	if own {
		steps, seeds = historySeeds(t, steps)
	}
	met := map[string]int{}
	for _, seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 0))
		h := history{open: open, t: t}
		for range steps {
			h.steps = append(h.steps, rng.Uint64())
		}
		if d := h.run(h.steps, met); d != nil {
			h.steps = h.steps[:d.step+1]
			d = h.shorten(d)
			t.Fatalf("the subject differs from the model; %s=%d repeats it\n%s", SeedEnv, seed, d)
		}
	}
	if own && len(seeds) > 1 {
		for _, what := range append(mustMeet(), mustMeetOfLimits()...) {
			if met[what] == 0 {
				t.Errorf("%d histories never met %q: they prove too little", len(seeds), what)
			}
		}
	}
}

func historySeeds(t *testing.T, steps int) (int, []uint64) {
	t.Helper()
	if s := os.Getenv(SeedEnv); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", SeedEnv, err)
		}
		return steps, []uint64{seed}
	}
	fixed, fresh := 16, 4
	if os.Getenv(LongEnv) == "1" {
		fixed, fresh, steps = 200, 200, 250
	}
	var seeds []uint64
	for i := range fixed {
		seeds = append(seeds, uint64(i+1))
	}
	for range fresh {
		seeds = append(seeds, rand.Uint64())
	}
	return steps, seeds
}

// history is one random history. A step is a number that, with the world as it then is, gives one operation; so any
// subset of the steps is a history too.
type history struct {
	t     *testing.T
	open  func(t *testing.T, clock queue.Clock, limits queue.Limits) queue.Queue
	steps []uint64
}

// difference is where the subject left the model.
type difference struct {
	step           int
	trace          []string
	model, subject string
}

func (d *difference) String() string {
	var b strings.Builder
	for i, line := range d.trace {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, line)
	}
	model, subject := strings.Split(d.model, "\n"), strings.Split(d.subject, "\n")
	for i := range max(len(model), len(subject)) {
		m, s := "(nothing)", "(nothing)"
		if i < len(model) {
			m = model[i]
		}
		if i < len(subject) {
			s = subject[i]
		}
		if m != s {
			fmt.Fprintf(&b, "model    %s\nsubject  %s\n", m, s)
		}
	}
	return b.String()
}

// snapshotEvery is how many steps pass between two comparisons of everything.
const snapshotEvery = 8

// run executes steps on fresh stores and returns the first difference.
func (h *history) run(steps []uint64, met map[string]int) *difference {
	h.t.Helper()
	w := &world{clock: NewFakeClock()}
	model := newSide(h.t, memq.New(memq.Options{Clock: w.clock, Limits: HistoryLimits()}))
	subject := newSide(h.t, h.open(h.t, w.clock, HistoryLimits()))
	defer model.close()
	defer subject.close()
	d := &difference{}
	for i, step := range steps {
		o := w.operation(rand.New(rand.NewPCG(step, 1)))
		if o.before != nil {
			o.before()
		}
		d.step = i
		d.model, d.subject = o.run(model), o.run(subject)
		d.trace = append(d.trace, o.text+"  →  "+strings.ReplaceAll(d.model, "\n", "; "))
		if d.model != d.subject {
			return d
		}
		meet(met, d.model)
		if o.after != nil {
			o.after(model)
		}
		if i%snapshotEvery == 0 || i == len(steps)-1 {
			d.model, d.subject = w.snapshot(model), w.snapshot(subject)
			if d.model != d.subject {
				return d
			}
			meet(met, d.model)
		}
	}
	return nil
}

func meet(met map[string]int, answer string) {
	for _, what := range append(mustMeet(), mustMeetOfLimits()...) {
		if strings.Contains(answer, what) {
			met[what]++
		}
	}
}

// shorten drops steps as long as a difference remains, in ever smaller pieces (Zeller and Hildebrandt, "Simplifying and
// Isolating Failure-Inducing Input", IEEE TSE 2002, without its complements), for at most 15 s.
func (h *history) shorten(found *difference) *difference {
	h.t.Helper()
	stop := time.Now().Add(15 * time.Second)
	for size := len(h.steps) / 2; size >= 1; size /= 2 {
		for from := 0; from+size <= len(h.steps) && time.Now().Before(stop); {
			shorter := slices.Delete(slices.Clone(h.steps), from, from+size)
			if d := h.run(shorter, map[string]int{}); d != nil {
				found, h.steps = d, shorter[:d.step+1]
			} else {
				from += size
			}
		}
	}
	return found
}

// mustMeet are answers that the histories must have got at least once.
func mustMeet() []string {
	return []string{
		"created", "duplicate", "rejected", "mismatch", "held", "over the limit", "lease_lost", "not found",
		"waits paused", "waits ahead", "waits retry_backoff",
		"succeeded", "dead", "cancelled", "scheduled", "promoted", "reaped", "expired", "retained", "changed", "skipped", "truncated", "crashed worker",
	}
}

// mustMeetOfLimits is what they must have got besides from a store that keeps limits.
func mustMeetOfLimits() []string {
	return []string{
		`held by "max_running"`, `held by "tenant_max_running"`, `held by "rate"`, "waits max_running", "waits tenant_max_running", "waits rate",
		"waits concurrency_key",
		"cancel_requested", // rare; without limits, which spread the jobs, the fixed histories do not meet it
	}
}
