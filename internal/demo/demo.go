// Package demo drives the real binary from outside, as a stranger would: it starts `taskhost serve` on a free loopback port in a
// temporary directory, pushes the example handlers, enqueues real files and compares every result with an independent
// judge: wc for word counts, Go's PNG decoder for thumbnails.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// Options say what to run.
type Options struct {
	Root string    // of the repository
	Out  io.Writer // gets the table
}

// Run builds the binary and the examples, runs all checks and prints a table. It returns an error that names every mismatch.
func Run(ctx context.Context, opts Options) (err error) {
	dir, err := os.MkdirTemp("", "taskhost-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	binary, examples := filepath.Join(dir, "taskhost"), filepath.Join(dir, "examples")
	if err := build(ctx, opts.Root, "go", "build", "-o", binary, "./cmd/taskhost"); err != nil {
		return err
	}
	if err := build(ctx, opts.Root, "make", "-s", "-C", "wasm-examples", "OUT="+examples); err != nil {
		return err
	}
	checks, err := plan(ctx, opts.Root)
	if err != nil {
		return err
	}
	s, err := start(ctx, binary, dir, serverConfig(examples))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for _, h := range pushed() {
		if _, err := s.client(ctx, "handler", "push", h.typ, filepath.Join(examples, h.module)); err != nil {
			return err
		}
	}
	return report(ctx, opts.Out, s, checks)
}

func build(ctx context.Context, dir string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

type handler struct{ typ, module string }

// pushed are the handlers that are uploaded; one more is configured, see serverConfig.
func pushed() []handler {
	return []handler{
		{"wordcount.go", "wordcount-go.wasm"},
		{"wordcount.c", "wordcount-c.wasm"},
		{"thumbnail", "thumbnail-go.wasm"},
	}
}

const smallEdge = 32

// serverConfig adds the thumbnail handler a second time, with another size, from the configuration file.
func serverConfig(examples string) string {
	return fmt.Sprintf("handlers:\n  - type: thumbnail.small\n    wasm: %q\n    config: {THUMB_SIZE: \"%d\"}\n",
		filepath.Join(examples, "thumbnail-go.wasm"), smallEdge)
}

// check is one job: a file for a type, and how to judge the result.
type check struct {
	typ, file string
	judge     func(result []byte) (shown string, err error)
}

func plan(ctx context.Context, root string) ([]check, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	goroot := strings.TrimSpace(string(out))
	texts := []string{
		filepath.Join(goroot, "src", "testdata", "Isaac.Newton-Opticks.txt"),
		filepath.Join(root, "wasm-examples", "wordcount", "payload.txt"),
	}
	if licence := "/usr/share/common-licenses/GPL-3"; isFile(licence) { // Debian's; elsewhere Newton does
		texts = append([]string{licence}, texts...)
	}
	var checks []check
	for _, file := range texts {
		want, err := countWithWC(ctx, file)
		if err != nil {
			return nil, err
		}
		for _, typ := range []string{"wordcount.go", "wordcount.c"} {
			checks = append(checks, check{typ, file, want.judge})
		}
	}
	photos := filepath.Join(goroot, "src", "image", "testdata")
	for _, file := range []string{
		filepath.Join(photos, "video-001.jpeg"),
		filepath.Join(photos, "video-001.progressive.jpeg"),
		filepath.Join(photos, "video-001.cmyk.jpeg"),
		filepath.Join(photos, "video-001.png"),
		filepath.Join(photos, "video-005.gray.jpeg"),
		filepath.Join(root, "wasm-examples", "thumbnail", "payload.jpg"),
	} {
		want, err := sizeOf(file)
		if err != nil {
			return nil, err
		}
		checks = append(checks, check{"thumbnail", file, want.scaled(128).judge}, check{"thumbnail.small", file, want.scaled(smallEdge).judge})
	}
	return checks, nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// report runs the checks one after the other and prints a line for each.
func report(ctx context.Context, out io.Writer, s *server, checks []check) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TYPE\tINPUT\tBYTES\tRESULT\tTOOK\tVERDICT")
	var faults []error
	for _, c := range checks {
		started := time.Now()
		result, err := s.client(ctx, "enqueue", c.typ, "--data", "@"+c.file, "--raw", "--wait", "--wait-timeout", "60s")
		took, shown := time.Since(started), ""
		if err == nil {
			shown, err = c.judge(result)
		}
		verdict := "ok"
		if err != nil {
			verdict = "WRONG"
			faults = append(faults, fmt.Errorf("%s of %s: %w", c.typ, c.file, err))
		}
		var size int64
		if st, err := os.Stat(c.file); err == nil {
			size = st.Size()
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%d ms\t%s\n", c.typ, filepath.Base(c.file), size, shown, took.Milliseconds(), verdict)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d results are right\n", len(checks)-len(faults), len(checks))
	return errors.Join(faults...)
}
