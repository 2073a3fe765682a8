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
			case "github.com/hibiken/asynq", "modernc.org/sqlite", "github.com/redis/go-redis/v9":
				fmt.Fprintf(&r.b, "- %s %s\n", d.Path, d.Version)
			}
		}
	}
	return r
}

func (r *report) String() string { return r.b.String() }

func (r *report) add(row row, rates [][]float64, jobs int) {
	peer := rates[len(rates)-1]
	fmt.Fprintf(&r.b, "\n## %s\n\n%s. %d rounds, in turns.\n\n", row.name, row.title, len(peer))
	fmt.Fprintf(&r.b, "| | jobs | jobs/s, median (range) | times the peer, median (range) | goal |\n|---|---|---|---|---|\n")
	for i, c := range row.sides {
		ratios := make([]float64, len(peer))
		for k := range peer {
			ratios[k] = rates[i][k] / peer[k]
		}
		goal := "-"
		if c.goal > 0 {
			goal = fmt.Sprintf("≥ %g", c.goal)
		}
		fmt.Fprintf(&r.b, "| %s | %d | %s | %s | %s |\n", c.name, max(int(float64(jobs)*c.share), 1000), spread(rates[i], "%.0f"), spread(ratios, "%.1f"), goal)
	}
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
