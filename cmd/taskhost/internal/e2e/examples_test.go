package e2e

import (
	"os"
	"os/exec"
	"testing"

	"github.com/taskhost/taskhost/internal/demo"
)

// The example handlers give the right results on real files, through the real binary: what `make demo` shows.
func TestExamplesThroughTheBinary(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("clang"); err != nil && os.Getenv("CI") == "" {
		t.Skip("clang is not installed (scripts/setup.sh installs it)")
	}
	if err := demo.Run(t.Context(), demo.Options{Root: "../../../..", Out: t.Output()}); err != nil {
		t.Fatal(err)
	}
}
