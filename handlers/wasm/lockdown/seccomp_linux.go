//go:build amd64 || arm64

package lockdown

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// condition allows a system call if the lower half of an argument, masked, has a value. The kernel looks at no more than that half
// of the arguments that are named here.
type condition struct {
	arg   uint32
	mask  uint32
	value uint32
}

// call is a system call that is allowed under one of several conditions.
type call struct {
	number uint32
	any    []condition
}

// filter is an allow-list of system calls. What it does not allow fails with EPERM.
type filter struct {
	allow   []uint32 // whatever the arguments; the kernel keeps a bitmap of these and runs no program for them
	when    []call
	unknown []uint32 // fail with ENOSYS, so that a C library falls back to an older call
}

// Bits of clone that make a thread, as Go and the C libraries do, and those that must not be there.
const (
	threadBits    = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD
	namespaceBits = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID |
		unix.CLONE_NEWNET
	forbiddenBits = namespaceBits | unix.CLONE_VFORK | unix.CLONE_PTRACE | unix.CLONE_PARENT | unix.CLONE_PIDFD
	notToRead     = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC | (unix.O_TMPFILE &^ unix.O_DIRECTORY) | unix.O_APPEND
	pagemapScan   = 0xc0606610 // PAGEMAP_SCAN: which pages of its own memory a process wrote to
)

// allowList is what a child needs: the Go runtime, its socket, memory, and files to read; to write as well if it makes files.
func allowList(writes bool) *filter {
	f := &filter{
		allow: []uint32{
			// In the order of how often a busy runner makes them.
			unix.SYS_FUTEX, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_EPOLL_PWAIT, unix.SYS_NANOSLEEP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_MMAP,
			unix.SYS_MUNMAP, unix.SYS_SCHED_YIELD, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGACTION,
			unix.SYS_SIGALTSTACK, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM, unix.SYS_WRITEV, unix.SYS_READV,
			unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_PREAD64, unix.SYS_LSEEK, unix.SYS_GETDENTS64, unix.SYS_GETCWD, unix.SYS_EPOLL_CTL,
			unix.SYS_EPOLL_CREATE1, unix.SYS_EVENTFD2, unix.SYS_SHUTDOWN, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETRUSAGE, unix.SYS_RESTART_SYSCALL,
			unix.SYS_MINCORE, unix.SYS_BRK, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
			unix.SYS_MEMFD_CREATE, unix.SYS_FTRUNCATE, unix.SYS_PWRITE64, // images of memory
		},
		unknown: []uint32{unix.SYS_CLONE3},
	}
	f.allow = append(f.allow, archAllowed...)
	self := uint32(os.Getpid())
	f.when = []call{
		{unix.SYS_TGKILL, []condition{{0, ^uint32(0), self}}}, // the Go runtime interrupts its threads
		{unix.SYS_KILL, []condition{{0, ^uint32(0), self}}},
		{unix.SYS_CLONE, []condition{{0, threadBits | forbiddenBits, threadBits}}},
		{unix.SYS_FCNTL, []condition{ // not F_SETOWN, which sends signals to others
			{1, ^uint32(0), unix.F_GETFD}, {1, ^uint32(0), unix.F_SETFD}, {1, ^uint32(0), unix.F_GETFL}, {1, ^uint32(0), unix.F_SETFL},
			{1, ^uint32(0), unix.F_DUPFD_CLOEXEC}, {1, ^uint32(0), unix.F_ADD_SEALS}, {1, ^uint32(0), unix.F_GET_SEALS},
		}},
		{unix.SYS_PRCTL, []condition{{0, ^uint32(0), unix.PR_SET_VMA}}}, // the Go runtime names its memory
		{unix.SYS_IOCTL, []condition{{1, ^uint32(0), pagemapScan}}},
	}
	if writes {
		f.allow = append(f.allow, unix.SYS_OPENAT, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_FSYNC,
			unix.SYS_FDATASYNC, unix.SYS_FCHMOD, unix.SYS_FCHMODAT)
	} else {
		f.when = append(f.when, call{unix.SYS_OPENAT, []condition{{2, notToRead, unix.O_RDONLY}}})
	}
	return f
}

// Offsets in the seccomp_data that the program sees.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// program is the filter for the kernel's virtual machine.
func (f *filter) program() []unix.SockFilter {
	stmt := func(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }
	load := func(offset uint32) unix.SockFilter { return stmt(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset) }
	ret := func(action uint32) unix.SockFilter { return stmt(unix.BPF_RET|unix.BPF_K, action) }
	equal := func(k uint32, skipIfNot uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: skipIfNot}
	}
	deny := ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	missing := ret(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))
	p := []unix.SockFilter{load(dataArch), equal(auditArch, 1), load(dataNumber)}
	// Calls of another architecture have other numbers. Nothing here makes them but an attacker.
	p = []unix.SockFilter{p[0], p[1], {Code: unix.BPF_JMP | unix.BPF_JA, K: 1}, ret(unix.SECCOMP_RET_KILL_PROCESS), p[2]}
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: foreignNumbers, Jf: 1}, missing)
	for _, n := range f.allow {
		p = append(p, equal(n, 1), ret(unix.SECCOMP_RET_ALLOW))
	}
	for _, c := range f.when {
		p = append(p, equal(c.number, uint8(4*len(c.any)+1)))
		for _, a := range c.any {
			p = append(p, load(dataArgs+8*a.arg), stmt(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, a.mask), equal(a.value, 1), ret(unix.SECCOMP_RET_ALLOW))
		}
		p = append(p, deny)
	}
	for _, n := range f.unknown {
		p = append(p, equal(n, 1), missing)
	}
	return append(p, deny)
}

// install puts the filter on every thread.
func (f *filter) install() error {
	p := f.program()
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	switch {
	case errno == unix.ENOSYS:
		return errors.New("seccomp: the kernel has none, or the container hides it")
	case errno != 0:
		return fmt.Errorf("seccomp: %w", errno)
	case thread != 0: // the call did nothing, though it did not fail
		return fmt.Errorf("seccomp: thread %d has other filters and could not be given this one", thread)
	}
	return nil
}
