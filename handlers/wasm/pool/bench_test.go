package pool

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers"
	w "github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// BenchmarkRoundTrip is a whole attempt in another process: an empty reactor of one page, one at a time and several in flight.
func BenchmarkRoundTrip(b *testing.B) {
	var empty w.Builder
	module := empty.Reactor(nil, w.I32Const(0))
	for _, flights := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("flights=%d", flights), func(b *testing.B) {
			p := newPool(b, func(o *Options) {
				o.Slots, o.RecycleAfter, o.Logger = 32, 1<<30, slog.New(slog.DiscardHandler)
			})
			dir := compile(b, module)
			invoke := func() {
				if out := p.Invoke(b.Context(), invocation([]byte("payload"), time.Minute), dir); out.Kind != handlers.OutcomeSucceeded {
					b.Errorf("%s %v", out.Kind, out.Error)
				}
			}
			invoke()
			b.ReportAllocs()
			b.ResetTimer()
			work := make(chan struct{}, flights)
			var wg sync.WaitGroup
			for range flights {
				wg.Go(func() {
					for range work {
						invoke()
					}
				})
			}
			for range b.N {
				work <- struct{}{}
			}
			close(work)
			wg.Wait()
		})
	}
}
