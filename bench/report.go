package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/taskhost/taskhost/bench/metering"
)

// report collects rows and writes them as Markdown.
type report struct{ b strings.Builder }

func newReport() *report {
	r := &report{}
	fmt.Fprintf(&r.b, "# Results\n\nWritten by `make bench`. Absolute figures are this machine's; ratios are the result. Every job was counted: none lost, none doubled.\n\n")
	fmt.Fprintf(&r.b, "- date: %s\n- machine: %s, %d processors, %s/%s\n- Go: %s\n", time.Now().UTC().Format(time.DateOnly), processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			switch d.Path {
			case "github.com/hibiken/asynq", "github.com/tetratelabs/wazero", "modernc.org/sqlite", "github.com/redis/go-redis/v9":
				fmt.Fprintf(&r.b, "- %s %s\n", d.Path, d.Version)
			}
		}
	}
	return r
}

func (r *report) String() string { return r.b.String() }

func (r *report) add(row row, rates, cpu [][]float64, jobs int) {
	peer := rates[len(rates)-1]
	fmt.Fprintf(&r.b, "\n## %s\n\n%s. %d rounds, in turns.\n\n", row.name, row.title, len(peer))
	fmt.Fprintf(&r.b, "| | jobs | jobs/s, median (range) | times the peer, median (range) | goal | store's processor, µs per job | goal |\n|---|---|---|---|---|---|---|\n")
	for i, c := range row.sides {
		ratios := make([]float64, len(peer))
		for k := range peer {
			ratios[k] = rates[i][k] / peer[k]
		}
		goal := "-"
		if c.goal > 0 {
			goal = fmt.Sprintf("≥ %g", c.goal)
		}
		store, most := "in the process", "-"
		if cpu[i][0] > 0 {
			store = spread(cpu[i], "%.1f")
		}
		if c.cpu > 0 {
			most = fmt.Sprintf("≤ %g", c.cpu)
		}
		fmt.Fprintf(&r.b, "| %s | %d | %s | %s | %s | %s | %s |\n", c.name, max(int(float64(jobs)*c.share), 1000), spread(rates[i], "%.0f"), spread(ratios, "%.1f"), goal, store, most)
	}
}

// table adds a row of any shape; its text says what was measured.
func (r *report) table(name, text string, head []string, lines [][]string) {
	fmt.Fprintf(&r.b, "\n## %s\n\n%s\n\n| %s |\n|%s\n", name, text, strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, l := range lines {
		fmt.Fprintf(&r.b, "| %s |\n", strings.Join(l, " | "))
	}
}

// addMetering adds what metering costs, a line for each workload.
func (r *report) addMetering(all []metering.Workload, rounds int) {
	fmt.Fprintf(&r.b, "\n## metering\n\nPrograms as built, metered as taskhost runs them, and with wazero's WithCloseOnContextDone; %d rounds, in turns, medians of processor time; results equal. "+
		"The means leave out %s, which is nothing but a short loop.\n\n", rounds, metering.Tight)
	fmt.Fprintf(&r.b, "| | as built, ms | metered | goal | CloseOnContextDone |\n|---|---|---|---|---|\n")
	times := func(d, original time.Duration) float64 { return float64(d) / float64(original) }
	for _, w := range all {
		goal := "-"
		if w.Name == metering.Tight {
			goal = "≤ 1.30×"
		}
		fmt.Fprintf(&r.b, "| %s %s | %.2f | %.2f× | %s | %.2f× |\n", w.Language, strings.TrimPrefix(w.Name, "b_"), w.Original.Seconds()*1e3, times(w.Metered, w.Original), goal, times(w.Checked, w.Original))
	}
	metered, checked := metering.Mean(all)
	fmt.Fprintf(&r.b, "| geometric mean | | %.3f× | ≤ 1.10× | %.2f× |\n", metered, checked)
}

func spread(v []float64, format string) string {
	s := slices.Sorted(slices.Values(v))
	median := s[len(s)/2]
	if len(s)%2 == 0 {
		median = (s[len(s)/2-1] + s[len(s)/2]) / 2
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", median, s[0], s[len(s)-1])
}

// processor is the name the kernel gives the processor; "unknown" where it gives none.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for scanner := bufio.NewScanner(f); scanner.Scan(); {
		if k, v, ok := strings.Cut(scanner.Text(), ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}
