package pool

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers"
)

// Runners that die, whether killed for a deadline or by themselves, leave no goroutine, descriptor, zombie or memory behind. TASKHOST_TEST_LONG makes
// it 1,000 of them.
func TestRunnerDeathsLeakNothing(t *testing.T) {
	deaths := 24
	if os.Getenv("TASKHOST_TEST_LONG") != "" {
		deaths = 1000
	}
	p := newPool(t, func(o *Options) { o.Grace, o.Logger = time.Millisecond, slog.New(slog.DiscardHandler) })
	loop, echo := compile(t, unstoppable()), compile(t, echo())
	die := func(i int) {
		if i%2 == 0 {
			out := p.Invoke(t.Context(), invocation(nil, 5*time.Millisecond), loop)
			if out.Kind != handlers.OutcomeRetry && out.Kind != handlers.OutcomeUnavailable {
				t.Fatalf("death %d: %s %v", i, out.Kind, out.Error)
			}
			return
		}
		inv := invocation(nil, time.Minute)
		runs := reported(inv)
		out := make(chan handlers.Outcome, 1)
		go func() { out <- p.Invoke(t.Context(), inv, loop) }()
		<-runs
		for _, r := range p.Stats().Runners {
			if r.Busy > 0 {
				if err := syscall.Kill(r.PID, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		}
		if o := <-out; o.Kind != handlers.OutcomeCrashed {
			t.Fatalf("death %d: %s %v", i, o.Kind, o.Error)
		}
	}
	settle := func() (goroutines, files, zombies int) {
		if out := p.Invoke(t.Context(), invocation([]byte("x"), time.Minute), echo); out.Kind != handlers.OutcomeSucceeded {
			t.Fatalf("%s %v", out.Kind, out.Error)
		}
		return runtime.NumGoroutine(), countFiles(t), countZombies(t)
	}
	for i := range 4 { // what grows once has grown
		die(i)
	}
	g0, f0, _ := settle()
	rss0 := residentMiB(t)
	for i := range deaths {
		die(i)
	}
	// Goroutines of a dead connection end soon after it, not at once.
	var g, f, z int
	for range 100 {
		if g, f, z = settle(); g <= g0+2 && f <= f0+2 && z == 0 {
			rss := residentMiB(t)
			t.Logf("%d deaths: the supervisor has %d MiB resident, %d MiB before", deaths, rss, rss0)
			if rss > rss0+64 {
				t.Errorf("the supervisor grew from %d MiB to %d MiB by %d deaths", rss0, rss, deaths)
			}
			return
		}
		runtime.Gosched()
	}
	t.Errorf("after %d deaths: goroutines %d → %d, descriptors %d → %d, %d zombies", deaths, g0, g, f0, f, z)
}

// residentMiB is the memory of this process, the supervisor, without garbage.
func residentMiB(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

func countFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// countZombies counts children of this process that have ended and were not waited for.
func countZombies(t *testing.T) (n int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	mine := fmt.Sprint(os.Getpid())
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[0] == "Z" && f[1] == mine {
			n++
		}
	}
	return n
}
