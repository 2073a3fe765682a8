package cli

import (
	"strings"
	"testing"
)

// inspect runs no job, so it offers no flag that only a run would use.
func TestInspectOffersOnlyWhatItUses(t *testing.T) {
	t.Parallel()
	inspect, _, _ := run(t, "", "handler", "inspect", "--help")
	if !strings.Contains(inspect, "--memory") {
		t.Errorf("--memory is missing:\n%s", inspect)
	}
	runs, _, _ := run(t, "", "handler", "run", "--help")
	for _, flag := range []string{"--timeout", "--fuel", "--handler-config"} {
		if strings.Contains(inspect, flag) {
			t.Errorf("inspect offers %s", flag)
		}
		if !strings.Contains(runs, flag) {
			t.Errorf("run does not offer %s", flag)
		}
	}
	if _, errs, code := run(t, "", "handler", "inspect", "--fuel", "1", "x.wasm"); code != ExitUsage || !strings.Contains(errs, "--fuel") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
}
