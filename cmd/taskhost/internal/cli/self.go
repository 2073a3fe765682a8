package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// self is how to start this program again from the same shell.
func self() string {
	exe, err := os.Executable()
	if err != nil {
		return "taskhost"
	}
	found, err := exec.LookPath("taskhost")
	onPath := err == nil && sameFile(found, exe)
	return startedAs(exe, os.Args[0], onPath)
}

// startedAs is "go run ./cmd/taskhost" for a program that go run built, "taskhost" for one that the path finds, else what was typed.
func startedAs(exe, typed string, onPath bool) string {
	switch {
	case filepath.Base(exe) != "taskhost": // a test binary that plays the program
		return "taskhost"
	case strings.Contains(filepath.ToSlash(exe), "/go-build"):
		return "go run ./cmd/taskhost"
	case onPath:
		return "taskhost"
	case strings.Contains(typed, "/"):
		return typed
	}
	return exe
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
