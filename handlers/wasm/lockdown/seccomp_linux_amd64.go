package lockdown

import "golang.org/x/sys/unix"

const (
	auditArch      = unix.AUDIT_ARCH_X86_64
	foreignNumbers = 0x40000000 // system calls of the x32 ABI
)

// archAllowed are calls that only this architecture has, or names so.
var archAllowed = []uint32{unix.SYS_NEWFSTATAT, unix.SYS_EPOLL_WAIT, unix.SYS_TIME, unix.SYS_ARCH_PRCTL}
