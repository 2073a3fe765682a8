package plugin

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/taskhost/taskhost/handlers"
)

// Plugins that die leave no goroutine, descriptor, folder or zombie behind. TASKHOST_TEST_LONG makes it 5,000 deaths.
func TestCase115DeathsLeakNothing(t *testing.T) {
	deaths := 20
	if os.Getenv("TASKHOST_TEST_LONG") != "" {
		deaths = 5000
	}
	spec := script()
	spec.Instances = 1
	r := newRuntime(t, spec)
	die := func() {
		// While the breaker is open, attempts are refused.
		await(t, "a process dies", func() bool { return run(t, r, "exit 1\n").Kind == handlers.OutcomeCrashed })
	}
	// settled is what is in use when one process serves and nothing else goes on.
	settled := func() string {
		await(t, "a process serves", func() bool { return run(t, r, "echo\n").Kind == handlers.OutcomeSucceeded })
		s := r.State()[0]
		return fmt.Sprintf("%d processes, %d descriptors, %d sockets", len(s.Processes), entries(t, "/proc/self/fd"), entries(t, r.sockets.root))
	}
	for range 3 { // what grows once has grown
		die()
	}
	before := settled()
	goroutines := runtime.NumGoroutine()
	for range deaths {
		die()
	}
	await(t, "as before: "+before, func() bool { return settled() == before && runtime.NumGoroutine() <= goroutines+2 })
	if n := r.State()[0].Counts.Crashed; n < uint64(deaths) {
		t.Errorf("only %d processes died", n)
	}
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
