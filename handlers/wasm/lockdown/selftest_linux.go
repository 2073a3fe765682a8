//go:build amd64 || arm64

package lockdown

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// attempt is something a locked-down process must not be able to do, in a form that does no harm if it can.
type attempt struct {
	what  string
	layer string
	do    func() error
	// means are the errors with which the layer refuses. Another one comes from what lies behind it, so the layer is not there.
	means []error
}

func raw(trap uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.RawSyscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// attempts are the self-test. Where no layer refuses, the arguments make the kernel refuse with another error.
func attempts(rules Rules) []attempt {
	const nobody = 1 << 30 // no process has this number
	eperm := []error{unix.EPERM}
	seccomp := func(what string, do func() error) attempt { return attempt{what, LayerSeccomp, do, eperm} }
	call := func(what string, trap uintptr, args ...uintptr) attempt {
		return seccomp(what, func() error { return raw(trap, args...) })
	}
	socket := func(family int) func() error {
		return func() error {
			fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				err = errors.Join(unix.Close(fd))
			}
			return err
		}
	}
	open := func(path string, flags int) func() error {
		return func() error {
			fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
			if err == nil {
				err = errors.Join(unix.Close(fd))
			}
			return err
		}
	}
	list := []attempt{
		seccomp("make a TCP socket", socket(unix.AF_INET)),
		seccomp("make a unix socket", socket(unix.AF_UNIX)),
		call("execute a program", unix.SYS_EXECVE, 0, 0, 0),
		call("fork", unix.SYS_CLONE, unix.CLONE_THREAD), // a thread without its memory: not valid
		call("make namespaces", unix.SYS_UNSHARE, unix.CLONE_NEWUSER|1),
		call("trace a process", unix.SYS_PTRACE, unix.PTRACE_ATTACH, nobody),
		call("read another process's memory", unix.SYS_PROCESS_VM_READV, nobody, 0, 0, 0, 0, 0),
		call("signal another process", unix.SYS_KILL, nobody, 0),
		call("load a BPF program", unix.SYS_BPF, 0xffff, 0, 0),
		call("use io_uring", unix.SYS_IO_URING_SETUP, 0, 0),
		call("open performance counters", unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0),
		call("use kernel keys", unix.SYS_KEYCTL, 0xffff, 0, 0, 0, 0),
		call("mount", unix.SYS_MOUNT, 0, 0, 0, 0, 0),
		call("handle page faults", unix.SYS_USERFAULTFD, 0xffff),
	}
	if len(rules.Write) == 0 {
		list = append(list, seccomp("make a file", open("/taskhost-self-test", unix.O_WRONLY|unix.O_CREAT)))
	}
	landlocked := []error{unix.EACCES}
	return append(list,
		attempt{"list the root folder", LayerLandlock, open("/", unix.O_RDONLY|unix.O_DIRECTORY), landlocked},
		attempt{"read a file of the system", LayerLandlock, open("/proc/self/status", unix.O_RDONLY), landlocked},
		attempt{"read a device", LayerLandlock, open("/dev/zero", unix.O_RDONLY), landlocked})
}

// selfTest tries what must not work. A layer that lets something through does not hold.
func selfTest(r *Report, rules Rules) {
	for i := range r.Layers {
		l := &r.Layers[i]
		if !l.Holds {
			continue
		}
		var through []string
		for _, a := range attempts(rules) {
			if a.layer != l.Name {
				continue
			}
			if err := a.do(); err == nil || !isOneOf(err, a.means) {
				through = append(through, fmt.Sprintf("%s: %v", a.what, err))
			}
		}
		if len(through) > 0 {
			l.Holds, l.Detail = false, "the self-test was not refused as it must be: "+strings.Join(through, ", ")
		}
	}
}

func isOneOf(err error, list []error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
