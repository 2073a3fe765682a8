package queuetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/taskhost/taskhost/queue"
)

func concurrencyCases() []testCase {
	return []testCase{
		{name: "each job is delivered exactly once", run: concurrencyOnce},
		{name: "one settle wins", run: concurrencySettle},
		{name: "one enqueue per key wins", run: concurrencyKeys},
	}
}

// group runs functions side by side and waits for all of them.
func group(n int, run func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { run(i) })
	}
	wg.Wait()
}

func concurrencyOnce(f *fixture) {
	const producers, perProducer, workers = 6, 50, 6
	const total = producers * perProducer
	var mu sync.Mutex
	created, taken := map[string]int{}, map[string]int{}
	var acked atomic.Int64
	ctx, stop := context.WithCancel(f.ctx)
	defer stop()
	produce := func(p int) {
		for i := range perProducer {
			outcomes, err := f.Queue.Enqueue(f.ctx, []queue.JobSpec{spec(fmt.Sprintf("q%d", i%3), "", tenant(fmt.Sprintf("t%d", p%2)))})
			if err != nil || outcomes[0].Status != queue.EnqueueCreated {
				f.Errorf("Enqueue = %+v, %v", outcomes, err)
				return
			}
			mu.Lock()
			created[outcomes[0].ID]++
			mu.Unlock()
		}
	}
	work := func(w int) {
		for acked.Load() < total {
			if f.Queue.Wait(ctx, queue.View{}) != nil {
				return
			}
			jobs, err := f.Queue.Reserve(ctx, queue.ReserveParams{Worker: fmt.Sprint(w), Max: 1 + w, Lease: lease})
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				f.Errorf("Reserve: %v", err)
				return
			}
			var all []queue.Settlement
			mu.Lock()
			for _, j := range jobs {
				taken[j.ID]++
				all = append(all, settlement(j, queue.VerbAck))
			}
			mu.Unlock()
			outcomes, err := f.Queue.Settle(f.ctx, all)
			if err != nil {
				f.Errorf("Settle: %v", err)
				return
			}
			for _, o := range outcomes {
				if o.Status != queue.SettleOK {
					f.Errorf("settle outcome %+v", o)
				}
			}
			if acked.Add(int64(len(all))) == total {
				stop()
			}
		}
	}
	group(producers+workers, func(i int) {
		if i < producers {
			produce(i)
		} else {
			work(i - producers)
		}
	})
	if len(created) != total || len(taken) != total {
		f.Fatalf("%d created, %d delivered, want %d", len(created), len(taken), total)
	}
	for id, n := range taken {
		if n != 1 || created[id] != 1 {
			f.Errorf("%s was created %d and delivered %d times", id, created[id], n)
		}
	}
}

func concurrencySettle(f *fixture) {
	for range 20 {
		f.put("q", "a")
		j := f.takeOne()
		verbs := []queue.Verb{queue.VerbAck, queue.VerbDead, queue.VerbAck, queue.VerbDead}
		var won atomic.Int64
		group(len(verbs), func(i int) {
			outcomes, err := f.Queue.Settle(f.ctx, []queue.Settlement{settlement(j, verbs[i])})
			switch {
			case err != nil:
				f.Errorf("Settle: %v", err)
			case outcomes[0].Status == queue.SettleOK:
				won.Add(1)
			case outcomes[0].Status != queue.SettleLeaseLost:
				f.Errorf("settle outcome %+v", outcomes[0])
			}
		})
		if won.Load() != 1 {
			f.Fatalf("%d of %d concurrent settles won, want 1", won.Load(), len(verbs))
		}
		if got := f.get(j.ID); len(got.Attempts) != 1 {
			f.Fatalf("%d attempt records, want 1", len(got.Attempts))
		}
	}
}

func concurrencyKeys(f *fixture) {
	for i := range 20 {
		idem := spec("q", "a", idempotent(fmt.Sprintf("i%d", i)))
		uniq := spec("q", "a", unique(queue.Unique{Key: fmt.Sprintf("u%d", i), OnConflict: queue.UniqueExisting}))
		for _, s := range []queue.JobSpec{idem, uniq} {
			var created atomic.Int64
			ids := make([]string, 6)
			group(len(ids), func(k int) {
				outcomes, err := f.Queue.Enqueue(f.ctx, []queue.JobSpec{s})
				if err != nil {
					f.Errorf("Enqueue: %v", err)
					return
				}
				ids[k] = outcomes[0].ID
				if outcomes[0].Status == queue.EnqueueCreated {
					created.Add(1)
				}
			})
			for _, id := range ids {
				if id != ids[0] || id == "" || created.Load() != 1 {
					f.Fatalf("%d created with ids %v, want one", created.Load(), ids)
				}
			}
		}
	}
}
