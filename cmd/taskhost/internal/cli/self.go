package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// self is how to start this program again from the same shell: "go run ./cmd/taskhost", "taskhost" when that is found on the
// path, else the path that was typed.
func self() string {
	exe, err := os.Executable()
	if err != nil {
		return "taskhost"
	}
	if filepath.Base(exe) != "taskhost" {
		return "taskhost" // a test binary that plays the program
	}
	if strings.Contains(filepath.ToSlash(exe), "/go-build") {
		return "go run ./cmd/taskhost"
	}
	if found, err := exec.LookPath("taskhost"); err == nil {
		if a, err := os.Stat(found); err == nil {
			if b, err := os.Stat(exe); err == nil && os.SameFile(a, b) {
				return "taskhost"
			}
		}
	}
	if len(os.Args) > 0 && strings.Contains(os.Args[0], "/") {
		return os.Args[0]
	}
	return exe
}
