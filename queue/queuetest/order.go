package queuetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func orderCases() []testCase {
	return []testCase{
		{name: "first in first out", run: orderFIFO},
		{name: "a batch enters in its order", run: orderBatch},
		{name: "higher priority first, equal ones in order", run: orderPriority},
		{name: "priority holds across queues", run: orderGlobalPriority, needs: queue.LimitationGlobalPriority},
		{name: "a view takes only its queues", run: orderView},
		{name: "reserve never takes more than asked", run: orderMax},
		{name: "max bytes ends a batch before it is exceeded", run: orderMaxBytes},
		{name: "bad arguments are refused", run: orderBadArguments},
	}
}

func orderFIFO(f *fixture) {
	var want []string
	for i := range 30 {
		label := fmt.Sprint(i)
		f.put("q", label)
		want = append(want, label)
	}
	f.wantOrder(strings.Join(want, " "))
}

func orderBatch(f *fixture) {
	f.putAll("q", "a b c")
	f.putAll("q", "d e")
	if got := labels(f.take(10)); got != "a b c d e" {
		f.Errorf("one batch = %q, want a b c d e", got)
	}
}

func orderPriority(f *fixture) {
	f.put("q", "n1")
	f.put("q", "low", priority(queue.PriorityMin))
	f.put("q", "h1", priority(5))
	f.put("q", "n2", priority(0))
	f.put("q", "h2", priority(5))
	f.put("q", "top", priority(queue.PriorityMax))
	f.put("q", "minus", priority(-1))
	f.wantOrder("top h1 h2 n1 n2 minus low")
}

func orderGlobalPriority(f *fixture) {
	f.setQueue("acme", "heavy", weight(queue.WeightMax))
	f.setQueue("acme", "light", weight(queue.WeightMin))
	f.putAll("heavy", "a b c")
	f.put("light", "urgent", priority(1))
	f.wantOrder("urgent a b c")
}

func orderView(f *fixture) {
	f.put("a", "a1")
	f.put("b", "b1")
	f.put("c", "c1")
	f.put("b", "other-tenant", tenant("other"))
	if got := labels(f.takeFrom(queue.View{Queues: []string{"c"}}, 10)); got != "c1" {
		f.Errorf("view of c gave %q", got)
	}
	if got := labels(f.takeFrom(queue.View{Queues: []string{"nothing-here"}}, 10)); got != "" {
		f.Errorf("view of an unused queue gave %q", got)
	}
	// The same set under another order and with a repetition is the same view, for every tenant.
	if got := labels(f.takeFrom(queue.View{Queues: []string{"c", "b", "b"}}, 10)); got != "b1 other-tenant" {
		f.Errorf("view of b and c gave %q", got)
	}
	f.wantOrder("a1")
}

func orderMax(f *fixture) {
	f.putN(10, "q")
	for _, n := range []int{1, 4, 10, 3} {
		want := min(n, int(f.info("q").Ready))
		if got := len(f.take(n)); got != want {
			f.Fatalf("Reserve of %d gave %d jobs, want %d", n, got, want)
		}
	}
}

func orderMaxBytes(f *fixture) {
	for _, label := range []string{"aaaaaaaaaa", "bbbb", "cccc", "dd"} {
		f.put("q", label)
	}
	take := func(maxBytes int) string {
		jobs, err := f.Queue.Reserve(f.ctx, queue.ReserveParams{Worker: "w", Max: 10, MaxBytes: maxBytes, Lease: lease})
		if err != nil {
			f.Fatalf("Reserve: %v", err)
		}
		return labels(jobs)
	}
	if got := take(5); got != "aaaaaaaaaa" {
		f.Errorf("5 bytes at most gave %q, want the one job that is always given", got)
	}
	if got := take(8); got != "bbbb cccc" {
		f.Errorf("8 bytes at most gave %q, want bbbb cccc: the limit is inclusive", got)
	}
	if got := take(0); got != "dd" {
		f.Errorf("no limit gave %q, want dd", got)
	}
}

func orderBadArguments(f *fixture) {
	good := queue.ReserveParams{Worker: "w", Max: 1, Lease: lease}
	for what, change := range map[string]func(*queue.ReserveParams){
		"max 0":               func(p *queue.ReserveParams) { p.Max = 0 },
		"max -1":              func(p *queue.ReserveParams) { p.Max = -1 },
		"max bytes -1":        func(p *queue.ReserveParams) { p.MaxBytes = -1 },
		"lease 0":             func(p *queue.ReserveParams) { p.Lease = 0 },
		"lease 9 ms":          func(p *queue.ReserveParams) { p.Lease = 9 * time.Millisecond },
		"an empty name":       func(p *queue.ReserveParams) { p.View.Queues = []string{""} },
		"a name with a comma": func(p *queue.ReserveParams) { p.View.Queues = []string{"a,b"} },
	} {
		p := good
		change(&p)
		_, err := f.Queue.Reserve(f.ctx, p)
		f.wantInvalid("Reserve with "+what, err)
	}
	f.wantInvalid("Wait with an empty name", f.Queue.Wait(f.ctx, queue.View{Queues: []string{""}}))
}
