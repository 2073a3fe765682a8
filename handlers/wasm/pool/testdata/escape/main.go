// Command escape takes the place of a runner that was taken over: it is started and locked down as one, and then tries everything that a locked
// down process must not be able to do. It writes what came of it to stderr, a line each.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
	"github.com/taskhost/taskhost/handlers/wasm/runner"
)

// world is what the test has put there: things of others.
type world struct {
	victim    int    // a process of the same user
	secret    string // a file outside the artifacts
	dir       string // its folder
	artifacts string
}

func main() {
	if os.Args[1] == lockdown.ProbeFlag {
		if err := lockdown.AnswerProbe(os.Stdout, os.Args[2:]); err != nil {
			panic(err)
		}
		return
	}
	victim, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	w := world{victim: victim, secret: os.Args[2], dir: os.Args[3], artifacts: os.Args[4]}
	environment := os.Environ()
	_, conn, report, _, err := runner.Confine(os.Args[5:])
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stderr, "level", report.Level)
	fmt.Fprintf(os.Stderr, "environment %q, descriptors %v\n", environment, inherited())
	for _, a := range w.attempts() {
		fmt.Fprintf(os.Stderr, "%s\t%s\t%s\n", a.class, a.what, outcome(a.do()))
	}
	runtime.KeepAlive(conn)
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	if errno, ok := err.(syscall.Errno); ok {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// inherited lists the descriptors that came through exec and are still open.
func inherited() (list []int) {
	for fd := range 64 {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			list = append(list, fd)
		}
	}
	return list
}

type attempt struct {
	class, what string
	do          func() error
}

// Classes of attempts.
const (
	denied  = "denied"
	allowed = "allowed"
)

func call(trap uintptr, args ...uintptr) func() error {
	return func() error {
		var a [6]uintptr
		copy(a[:], args)
		if _, _, errno := syscall.RawSyscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
			return errno
		}
		return nil
	}
}

// fork makes a process, which ends at once if there is one.
func fork(flags uintptr) func() error {
	return func() error {
		pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		if pid == 0 {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		return nil
	}
}

func text(s string) uintptr {
	p, err := syscall.BytePtrFromString(s)
	if err != nil {
		panic(err)
	}
	pinner.Pin(p)
	return uintptr(unsafe.Pointer(p))
}

var pinner runtime.Pinner

func buffer(n int) uintptr {
	b := make([]byte, n)
	pinner.Pin(&b[0])
	return uintptr(unsafe.Pointer(&b[0]))
}

func open(path string, flags int) func() error {
	return func() error {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}
}

func socket(family, kind int) func() error {
	return func() error {
		_, err := unix.Socket(family, kind, 0)
		return err
	}
}
