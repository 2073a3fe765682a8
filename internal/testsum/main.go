// Command testsum runs `go test` in several modules, shows what failed and ends with the totals.
//
//	testsum [flags] module-folder... [-- go test arguments]
//
// It reads the test runner's own event stream (go test -json), so the totals are counts of tests that really ran. It exits 1 if a
// test failed, a package did not build, go test itself failed, or no test ran.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	verbose := flag.Bool("v", false, "show the output of every test, not only of failed ones")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: testsum [flags] module-folder... [-- go test arguments]")
		flag.PrintDefaults()
	}
	flag.Parse()
	modules, arguments := flag.Args(), []string(nil)
	if i := slices.Index(modules, "--"); i >= 0 {
		modules, arguments = modules[:i], modules[i+1:]
	}
	if len(modules) == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	started := time.Now()
	s := newSummary(os.Stdout, *verbose)
	for _, dir := range modules {
		if err := runModule(ctx, s, dir, arguments); err != nil {
			s.broken(dir, err)
		}
	}
	if !s.finish(time.Since(started)) {
		os.Exit(1)
	}
}

// runModule runs go test in dir and feeds its events to s. Its error is what no event told: go test could not run.
func runModule(ctx context.Context, s *summary, dir string, arguments []string) error {
	args := append([]string{"test", "-json"}, arguments...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./...")...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failures := s.failures()
	readErr := s.read(events)
	if readErr != nil {
		_, _ = io.Copy(io.Discard, events) // let go test end
	}
	if err := cmd.Wait(); err != nil && s.failures() == failures {
		return fmt.Errorf("go test: %w", err)
	}
	return readErr
}
