// Command bench measures taskhost beside its peers, in one run on one machine, and writes what it saw to RESULTS.md.
//
//	go run . [-rounds 5] [-jobs 300000] [-row redis-process] [-idle 5m] [-backlog 1000000] [-out RESULTS.md]
//
// Every side of a row runs once per round, in turns, so that what else the machine does falls on all of them. A figure is the
// median over the rounds, with the range; a ratio is the median of the ratios within each round. Jobs are counted: a side that loses
// or doubles one has no figure, and the run fails.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/taskhost/taskhost/bench/metering"
)

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 5, "rounds of each row")
	jobs := flag.Int("jobs", 300_000, "jobs per side and round; peers that are slower get fewer (see each row)")
	row := flag.String("row", "", "run only this row: embedded, redis, redis-process, redis-queues, redis-tenants, redis-enqueue, redis-bulk, redis-reserve, redis-idle, redis-latency, redis-light, metering")
	var sizes sizes
	flag.DurationVar(&sizes.idle, "idle", 5*time.Minute, "how long redis-idle watches each host")
	flag.IntVar(&sizes.backlog, "backlog", 1_000_000, "jobs beside which the light tenant of redis-light waits")
	out := flag.String("out", "RESULTS.md", "file to write; - = standard output only")
	dir := flag.String("dir", "", "directory for databases; default the system's temporary one")
	flag.Parse()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200) // as taskhost serve does; the peers of this process have it too
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	report := newReport()
	for _, r := range rows(*dir) {
		if *row != "" && r.name != *row {
			continue
		}
		if err := r.measure(ctx, *rounds, *jobs, report); err != nil {
			log.Fatalf("%s: %v", r.name, err)
		}
	}
	for _, p := range probes() {
		if *row != "" && p.name != *row {
			continue
		}
		if err := p.measure(ctx, *rounds, sizes, report); err != nil {
			log.Fatalf("%s: %v", p.name, err)
		}
	}
	if *row == "" || *row == "metering" {
		all, err := metering.Measure(ctx, filepath.Join("..", "handlers", "wasm", "meter", "testdata", "bench"), 4**rounds+1)
		if err != nil {
			log.Fatalf("metering: %v", err)
		}
		report.addMetering(all, 4**rounds+1)
	}
	text := report.String()
	fmt.Print(text)
	if *out != "-" {
		if err := os.WriteFile(*out, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
