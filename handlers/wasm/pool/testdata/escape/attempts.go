package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const atCwd = ^uintptr(99) // AT_FDCWD

func (w world) attempts() []attempt {
	victim := uintptr(w.victim)
	proc := fmt.Sprintf("/proc/%d/", w.victim)
	list := []attempt{
		{"files", "read a file of another folder", open(w.secret, unix.O_RDONLY)},
		{"files", "read /etc/passwd", open("/etc/passwd", unix.O_RDONLY)},
		{"files", "list the root folder", open("/", unix.O_RDONLY|unix.O_DIRECTORY)},
		{"files", "read its own environment", open("/proc/self/environ", unix.O_RDONLY)},
		{"files", "write a file of another folder", open(w.secret, unix.O_WRONLY)},
		{"files", "truncate while opening for reading", open(w.secret, unix.O_RDONLY|unix.O_TRUNC)},
		{"files", "make a file in another folder", open(filepath.Join(w.dir, "made"), unix.O_WRONLY|unix.O_CREAT)},
		{"files", "make a file among the artifacts", open(filepath.Join(w.artifacts, "made"), unix.O_RDWR|unix.O_CREAT)},
		{"files", "make a file without a name", open(w.dir, unix.O_TMPFILE|unix.O_RDWR)},
		{"files", "change an artifact", open(filepath.Join(w.artifacts, "file"), unix.O_RDWR)},
		{"files", "remove a file", call(unix.SYS_UNLINKAT, atCwd, text(w.secret), 0)},
		{"files", "rename a file", call(unix.SYS_RENAMEAT2, atCwd, text(w.secret), atCwd, text(w.secret+"2"), 0)},
		{"files", "link a file", call(unix.SYS_LINKAT, atCwd, text(w.secret), atCwd, text(w.secret+"3"), 0)},
		{"files", "make a symbolic link", call(unix.SYS_SYMLINKAT, text("/etc"), atCwd, text(w.dir+"/link"))},
		{"files", "make a folder", call(unix.SYS_MKDIRAT, atCwd, text(w.dir+"/folder"), 0o700)},
		{"files", "make a device", call(unix.SYS_MKNODAT, atCwd, text(w.dir+"/null"), unix.S_IFCHR|0o600, 0x103)},
		{"files", "change permissions", call(unix.SYS_FCHMODAT, atCwd, text(w.secret), 0o666)},
		{"files", "change the owner", call(unix.SYS_FCHOWNAT, atCwd, text(w.secret), 1, 1, 0)},
		{"files", "truncate a file", call(unix.SYS_TRUNCATE, text(w.secret), 0)},
		{"files", "open by handle", call(unix.SYS_OPEN_BY_HANDLE_AT, 0, buffer(128), 0)},
		{"files", "open with openat2", call(unix.SYS_OPENAT2, atCwd, text("/etc/passwd"), buffer(24), 24)},
		{"files", "watch files", call(unix.SYS_INOTIFY_INIT1, 0)},
		{"files", "watch a file system", call(unix.SYS_FANOTIFY_INIT, 0, 0)},
		{"files", "change the folder", call(unix.SYS_CHDIR, text("/"))},
		{"sockets", "TCP", socket(unix.AF_INET, unix.SOCK_STREAM)},
		{"sockets", "UDP over IPv6", socket(unix.AF_INET6, unix.SOCK_DGRAM)},
		{"sockets", "unix", socket(unix.AF_UNIX, unix.SOCK_STREAM)},
		{"sockets", "netlink", socket(unix.AF_NETLINK, unix.SOCK_RAW)},
		{"sockets", "raw packets", socket(unix.AF_PACKET, unix.SOCK_RAW)},
		{"sockets", "virtual machine sockets", socket(unix.AF_VSOCK, unix.SOCK_STREAM)},
		{"sockets", "kernel crypto", socket(unix.AF_ALG, unix.SOCK_SEQPACKET)},
		{"sockets", "pair", call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0, buffer(8))},
		{"sockets", "pass descriptors", call(unix.SYS_SENDMSG, 2, buffer(56), 0)},
		{"exec", "execve", call(unix.SYS_EXECVE, text("/bin/true"), 0, 0)},
		{"exec", "execveat a descriptor", call(unix.SYS_EXECVEAT, 3, text(""), 0, 0, unix.AT_EMPTY_PATH)},
		{"fork", "clone", fork(uintptr(unix.SIGCHLD))},
		{"fork", "clone sharing memory", call(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|uintptr(unix.SIGCHLD))},
		{"fork", "clone3", call(unix.SYS_CLONE3, buffer(88), 88)},
		{"trace", "attach to a process", call(unix.SYS_PTRACE, unix.PTRACE_ATTACH, victim, 0, 0)},
		{"trace", "be traced by the parent", call(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0, 0)},
		{"trace", "compare processes", call(unix.SYS_KCMP, victim, victim, 0, 0, 0)},
		{"memory of others", "process_vm_readv", call(unix.SYS_PROCESS_VM_READV, victim, buffer(16), 1, buffer(16), 1, 0)},
		{"memory of others", "process_vm_writev", call(unix.SYS_PROCESS_VM_WRITEV, victim, buffer(16), 1, buffer(16), 1, 0)},
		{"memory of others", "its file of memory", open(proc+"mem", unix.O_RDONLY)},
		{"memory of others", "its environment", open(proc+"environ", unix.O_RDONLY)},
		{"files", "read a device", open("/dev/zero", unix.O_RDONLY)},
		{"memory of others", "shared memory", call(unix.SYS_SHMGET, 0, 4096, 0o1600)},
		{"processes", "signal a process", call(unix.SYS_KILL, victim, 0)},
		{"processes", "signal everybody", call(unix.SYS_KILL, ^uintptr(0), 0)},
		{"processes", "signal a thread of another", call(unix.SYS_TGKILL, victim, victim, 0)},
		{"processes", "signal a thread", call(unix.SYS_TKILL, victim, 0)},
		{"processes", "queue a signal", call(unix.SYS_RT_SIGQUEUEINFO, victim, 0, buffer(128))},
		{"processes", "signals by descriptor", call(unix.SYS_FCNTL, 0, unix.F_SETOWN, victim)},
		{"processes", "open a process", call(unix.SYS_PIDFD_OPEN, victim, 0)},
		{"processes", "take a descriptor of a process", call(unix.SYS_PIDFD_GETFD, 3, 0, 0)},
		{"processes", "its limits", call(unix.SYS_PRLIMIT64, victim, unix.RLIMIT_NOFILE, 0, buffer(16))},
		{"processes", "its processors", call(unix.SYS_SCHED_SETAFFINITY, victim, 8, buffer(8))},
		{"processes", "its priority", call(unix.SYS_SETPRIORITY, 0, victim, 10)},
		{"processes", "join another session", call(unix.SYS_SETSID)},
		{"kernel", "bpf", call(unix.SYS_BPF, 0, buffer(128), 128)},
		{"kernel", "io_uring", call(unix.SYS_IO_URING_SETUP, 8, buffer(120))},
		{"kernel", "performance counters", call(unix.SYS_PERF_EVENT_OPEN, buffer(128), 0, ^uintptr(0), ^uintptr(0), 0)},
		{"kernel", "keys: keyctl", call(unix.SYS_KEYCTL, 0, ^uintptr(2), 1)},
		{"kernel", "keys: add_key", call(unix.SYS_ADD_KEY, text("user"), text("k"), text("v"), 1, ^uintptr(2))},
		{"kernel", "keys: request_key", call(unix.SYS_REQUEST_KEY, text("user"), text("k"), 0, 0)},
		{"kernel", "page faults", call(unix.SYS_USERFAULTFD, 0)},
		{"kernel", "load a module", call(unix.SYS_INIT_MODULE, buffer(8), 8, text(""))},
		{"kernel", "load a module from a file", call(unix.SYS_FINIT_MODULE, 0, text(""), 0)},
		{"kernel", "another kernel", call(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0)},
		{"kernel", "message queues", call(unix.SYS_MQ_OPEN, text("q"), unix.O_CREAT, 0o600, 0)},
		{"kernel", "semaphores", call(unix.SYS_SEMGET, 0, 1, 0o1600)},
		{"kernel", "log", call(unix.SYS_SYSLOG, 3, buffer(64), 64)},
		{"kernel", "accounting", call(unix.SYS_ACCT, 0)},
		{"kernel", "swap", call(unix.SYS_SWAPOFF, text(w.secret))},
		{"kernel", "host name", call(unix.SYS_SETHOSTNAME, text("x"), 1)},
		{"kernel", "clock", call(unix.SYS_CLOCK_SETTIME, 0, buffer(16))},
		{"kernel", "personality", call(unix.SYS_PERSONALITY, 0x0040000)},
		{"namespaces", "user", call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)},
		{"namespaces", "network", call(unix.SYS_UNSHARE, unix.CLONE_NEWNET)},
		{"namespaces", "by clone", fork(unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD))},
		{"namespaces", "enter one", call(unix.SYS_SETNS, 3, 0)},
		{"mounts", "mount", call(unix.SYS_MOUNT, text("none"), text(w.dir), text("tmpfs"), 0, 0)},
		{"mounts", "unmount", call(unix.SYS_UMOUNT2, text("/proc"), 0)},
		{"mounts", "new mounts", call(unix.SYS_FSOPEN, text("tmpfs"), 0)},
		{"mounts", "move the root", call(unix.SYS_PIVOT_ROOT, text(w.dir), text(w.dir))},
		{"mounts", "chroot", call(unix.SYS_CHROOT, text(w.dir))},
		{"rights", "capabilities", call(unix.SYS_CAPSET, header(), buffer(24))},
		{"rights", "become root", call(unix.SYS_SETUID, 0)},
		{"rights", "more filters", call(unix.SYS_SECCOMP, 1, 0, buffer(16))},
		{"rights", "dumpable", call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1)},
		{"rights", "outlive the parent", call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, 0)},
		{"rights", "raise a limit", call(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, buffer(16), 0)},
	}
	for i := range list {
		list[i].class = denied + "\t" + list[i].class
	}
	return append(list,
		attempt{allowed + "\tfiles", "read an artifact", open(filepath.Join(w.artifacts, "file"), unix.O_RDONLY)},
		attempt{allowed + "\tfiles", "list the artifacts", open(w.artifacts, unix.O_RDONLY|unix.O_DIRECTORY)},
		attempt{allowed + "\tmemory", "executable memory", executable},
		attempt{allowed + "\tmemory", "an image in memory", image},
		attempt{allowed + "\tthreads", "a thread", thread},
	)
}

func header() uintptr {
	h := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	pinner.Pin(h)
	return uintptr(unsafe.Pointer(h))
}

func executable() error {
	b, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	return errors.Join(unix.Mprotect(b, unix.PROT_READ|unix.PROT_EXEC), unix.Munmap(b))
}

func image() error {
	fd, err := unix.MemfdCreate("image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
	return errors.Join(unix.Ftruncate(fd, 1<<16), err, unix.Close(fd))
}

// thread blocks threads until the runtime has to make a new one.
func thread() error {
	const n = 16
	done := make(chan error, n)
	for range n {
		go func() {
			t := syscall.Timespec{Nsec: 5e6}
			done <- syscall.Nanosleep(&t, nil)
		}()
	}
	var err error
	for range n {
		err = errors.Join(err, <-done)
	}
	return err
}
