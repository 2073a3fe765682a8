package meter_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/taskhost/taskhost/handlers/wasm/meter"
)

// BenchmarkInstrument is the rewriting of a Go guest of 4 MB.
func BenchmarkInstrument(b *testing.B) {
	module := goGuest(b)
	b.SetBytes(int64(len(module)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := meter.Instrument(module); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOverhead runs the workloads of the guests original, metered, and with the engine's own check (CloseOnContextDone), in turns, and
// reports the ratio of the medians of their processor times. One iteration is one turn: use -benchtime=21x.
func BenchmarkOverhead(b *testing.B) {
	for language, build := range map[string]func(testing.TB) []byte{"go": goGuest, "c": cGuest} {
		b.Run(language, func(b *testing.B) {
			module := build(b)
			cache := wazero.NewCompilationCache()
			b.Cleanup(func() { _ = cache.Close(context.Background()) })
			plain := wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache)
			checking := plain.WithCloseOnContextDone(true)
			start := func(config wazero.RuntimeConfig, metered bool) (api.Module, *host) {
				h := newHost(b, config, metered, 1_000_000).wasi()
				m, err := h.start(b, "", module)
				if err != nil {
					b.Fatal(err)
				}
				initialize(b, m)
				return m, h
			}
			ratios := map[string][2]float64{}
			original, _ := start(plain, false)
			names := workloads(original)
			slices.Sort(names)
			for _, name := range names {
				b.Run(name, func(b *testing.B) {
					original, _ := start(plain, false)
					metered, h := start(plain, true)
					checked, _ := start(checking, false)
					took := turns(b, name, original, metered, checked)
					b.ReportMetric(took[0].Seconds()*1e3, "ms-original")
					ratio := [2]float64{float64(took[1]) / float64(took[0]), float64(took[2]) / float64(took[0])}
					b.ReportMetric(ratio[0], "metered/original")
					b.ReportMetric(ratio[1], "CloseOnContextDone/original")
					b.ReportMetric(float64(h.used())/float64(b.N+1)/float64(took[1].Nanoseconds()), "fuel/ns")
					b.ReportMetric(0, "ns/op")
					ratios[name] = ratio
				})
			}
			delete(ratios, "b_tight") // it is for the worst case
			var logs [2]float64
			for _, ratio := range ratios {
				for i := range logs {
					logs[i] += math.Log(ratio[i]) / float64(len(ratios))
				}
			}
			if len(ratios) > 1 {
				fmt.Printf("# %s: geometric mean without b_tight: metered %.3f, CloseOnContextDone %.2f\n", language, math.Exp(logs[0]), math.Exp(logs[1]))
			}
		})
	}
}

// turns calls a function in each module in turn and returns the medians.
func turns(b *testing.B, name string, modules ...api.Module) []time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took := make([][]time.Duration, len(modules))
	ctx, cancel := context.WithCancel(context.Background()) // without one the engine's check has nothing to look at
	defer cancel()
	b.ResetTimer()
	for range b.N + 1 { // the first one warms up
		for i, m := range modules {
			at := cpuTime()
			if _, err := m.ExportedFunction(name).Call(ctx); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], cpuTime()-at)
		}
	}
	medians := make([]time.Duration, len(modules))
	for i := range took {
		slices.Sort(took[i][1:])
		medians[i] = took[i][1:][len(took[i][1:])/2]
	}
	return medians
}
