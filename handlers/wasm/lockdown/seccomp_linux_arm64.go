package lockdown

import "golang.org/x/sys/unix"

const (
	auditArch      = unix.AUDIT_ARCH_AARCH64
	foreignNumbers = 0x40000000 // none: no call has such a number
)

// archAllowed are calls that only this architecture has, or names so.
var archAllowed = []uint32{unix.SYS_FSTATAT}
