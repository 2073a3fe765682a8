package pool

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// hostCommand makes this test binary a host with a pool, which prints the number of its runner and waits to be killed.
const hostCommand = "test-host"

func hostChild() {
	p, err := New(Options{Command: []string{"/proc/self/exe", childCommand}, Runners: 1, Slots: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for range time.Tick(time.Millisecond) {
		if s := p.Stats(); len(s.Runners) == 1 {
			fmt.Println("runner", s.Runners[0].PID)
			select {}
		}
	}
}

// A host that is killed takes its runners with it.
func TestRunnersDieWithTheirHost(t *testing.T) {
	t.Parallel()
	host := exec.Command("/proc/self/exe", hostCommand)
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var pid int
	if _, e := fmt.Sscanf(line, "runner %d", &pid); err != nil || e != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if !alive(pid) {
		t.Fatal("the runner is gone already")
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := host.Wait(); err == nil {
		t.Error("the host was not killed")
	}
	tick, limit := time.NewTicker(2*time.Millisecond), time.After(5*time.Second)
	defer tick.Stop()
	for alive(pid) {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("process %d outlives its host", pid)
		}
	}
}

// alive tells whether a process runs; one that has ended and was not waited for does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}
