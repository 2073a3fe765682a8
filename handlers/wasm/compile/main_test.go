package compile

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/taskhost/taskhost/handlers/wasm/artifact"
	"github.com/taskhost/taskhost/handlers/wasm/child"
)

// childPath is the program of testdata/child, built as taskhost is shipped: without cgo and without the race detector, whose
// shadow memory would count against RLIMIT_DATA.
var childPath string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "print-limits" {
		printLimits()
		return
	}
	dir, err := os.MkdirTemp("", "taskhost-compile-")
	if err != nil {
		panic(err)
	}
	childPath = filepath.Join(dir, "child")
	build := exec.Command("go", "build", "-o", childPath, "./testdata/child")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the child: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

func printLimits() {
	if err := lowerLimits(header{CPUSeconds: 7, DataBytes: math.MaxInt64 / 2}); err != nil {
		fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	for _, r := range []int{unix.RLIMIT_CORE, unix.RLIMIT_CPU, unix.RLIMIT_DATA, unix.RLIMIT_FSIZE} {
		var l unix.Rlimit
		if err := unix.Getrlimit(r, &l); err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, l.Cur, l.Max)
	}
	prio, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	fmt.Fprintln(os.Stdout, "priority", prio, err) // Linux's system call answers 20 minus the priority
	inherited := func() bool {
		for fd := 3; fd <= 4; fd++ {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
				return true
			}
		}
		return false
	}
	before := inherited()
	if err := child.CloseInherited(); err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stdout, "inherited before: %v, after: %v\n", before, inherited())
}

// bench is a service, its store, and how often it started a child.
type bench struct {
	*Service
	store    *artifact.Store
	dir      string
	children atomic.Int32
	logs     *logSink
}

// newBench makes a running service whose children run the mode of testdata/child, with its arguments.
func newBench(t *testing.T, opts Options, mode ...string) *bench {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "artifacts")
	store, err := artifact.NewStore(dir, artifact.HostKey{1})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{store: store, dir: dir, logs: &logSink{}}
	opts.Store, opts.Logger = store, slog.New(slog.NewTextHandler(b.logs, nil))
	opts.Command = func() (string, []string) {
		b.children.Add(1)
		return childPath, mode
	}
	if b.Service, err = NewService(opts); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Close()
		if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) > 0 {
			t.Errorf("drafts are left: %v, %v", left, err)
		}
	})
	return b
}
