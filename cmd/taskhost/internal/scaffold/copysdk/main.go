// Command copysdk refreshes the copies of the SDK under _sdk. Run it with go generate in the folder scaffold.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "copysdk:", err)
		os.Exit(1)
	}
}

func run() error {
	const root = "../../../.."
	for from, to := range map[string]string{
		root + "/sdk/go/guest":           "_sdk/go",
		root + "/sdk/go/guest/guesttest": "_sdk/go/guesttest",
		root + "/sdk/c":                  "_sdk/c",
	} {
		if err := copyFolder(from, to); err != nil {
			return err
		}
	}
	return nil
}

// copyFolder makes the files of one folder the same as another's, without tests and folders below.
func copyFolder(from, to string) error {
	old, err := filepath.Glob(to + "/*.*")
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if e.IsDir() || strings.HasSuffix(e.Name(), "_test.go") || ext != ".go" && ext != ".h" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
