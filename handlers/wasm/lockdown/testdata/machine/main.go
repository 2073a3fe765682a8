// Command machine stands in for machines and containers that allow less than this one: it denies itself system calls, and asks then how far
// children can be locked down.
package main

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/taskhost/taskhost/handlers/wasm/child"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
)

func main() {
	switch os.Args[1] {
	case lockdown.ProbeFlag:
		must(lockdown.AnswerProbe(os.Stdout, os.Args[2:]))
	case "ask": // LEAST
		least, err := lockdown.ParseLevel(os.Args[2])
		must(err)
		s := child.NewSpawner()
		defer s.Close()
		plan, report, err := lockdown.Probe(context.Background(), s, []string{"/proc/self/exe"}, least)
		answer := map[string]any{"plan": plan, "report": report}
		if err != nil {
			answer["error"] = err.Error()
		}
		must(json.NewEncoder(os.Stdout).Encode(answer))
	case "deny": // LIST ROLE ARGUMENTS: without what is listed
		runtime.LockOSThread()
		for _, what := range strings.Split(os.Args[2], ",") {
			deny(what)
		}
		must(syscall.Exec("/proc/self/exe", append([]string{"machine"}, os.Args[3:]...), nil))
	default:
		panic("unknown role " + os.Args[1])
	}
}

const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

func deny(what string) {
	switch what {
	case "landlock-off": // as a kernel without it in its list of security modules answers
		load(refuse(unix.SYS_LANDLOCK_CREATE_RULESET, unix.EOPNOTSUPP))
	case "landlock-old": // as a kernel before 5.13 does
		load(refuse(unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS))
	case "namespaces": // as the default profiles of container runtimes do
		load([]unix.SockFilter{
			{Code: unix.BPF_JMP | unix.BPF_JEQ, K: unix.SYS_CLONE, Jf: 3},
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16},
			{Code: unix.BPF_JMP | unix.BPF_JSET, K: namespaces, Jf: 1},
			{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		})
	case "seccomp":
		load(refuse(unix.SYS_SECCOMP, unix.ENOSYS))
	case "user": // nobody, without capabilities, and no way to gain any: what a restricted pod runs as
		must(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		if os.Getuid() == 0 {
			must(syscall.Setgroups(nil))
			must(syscall.Setgid(65534))
			must(syscall.Setuid(65534))
		}
	default:
		panic("cannot deny " + what)
	}
}

func refuse(number uint32, with syscall.Errno) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_JMP | unix.BPF_JEQ, K: number, Jf: 1},
		{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ERRNO | uint32(with)},
	}
}

// load puts a filter on this thread, which is the one that executes the next program.
func load(rules []unix.SockFilter) {
	must(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	program := append([]unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}}, rules...)
	program = append(program, unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ALLOW})
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		panic(errno)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
