//go:build amd64 || arm64

package lockdown

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of files, by the version of Landlock that brought them.
const (
	readFiles = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeV1   = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR
	allV1 = readFiles | writeV1 | unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	// threadSignals is the erratum whose absence makes the scope of signals tell the threads of one process apart.
	threadSignals = 1 << 1
)

// landlockVersion asks the kernel.
func landlockVersion() (version int, errata uintptr, err error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, 0, errno
	}
	errata, _, errno = unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA)
	if errno != 0 { // older than the question: none is mended
		errata = 0
	}
	return int(v), errata, nil
}

// handled are the rights that the rules decide, and those a writable folder has, in a version.
func handled(version int, errata uintptr) (attr unix.LandlockRulesetAttr, size uintptr, write uint64) {
	attr.Handled_access_fs, write = allV1, readFiles|writeV1
	size = unsafe.Sizeof(attr.Handled_access_fs)
	if version >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
		write |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
		write |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size += unsafe.Sizeof(attr.Handled_access_net)
	}
	if version >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		if errata&threadSignals != 0 { // else the Go runtime could not signal its own threads
			attr.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		}
		size += unsafe.Sizeof(attr.Scoped)
	}
	return attr, size, write
}

// restrictFiles puts on Landlock in every thread: of all files, only those of the rules remain.
func restrictFiles(rules Rules) (string, error) {
	version, errata, err := landlockVersion()
	if err != nil {
		return "", fmt.Errorf("landlock_create_ruleset: %w", err)
	}
	attr, size, write := handled(version, errata)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return "", fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	defer unix.Close(int(fd))
	for _, dir := range rules.Read {
		if err := allowBelow(int(fd), dir, readFiles); err != nil {
			return "", err
		}
	}
	for _, dir := range rules.Write {
		if err := allowBelow(int(fd), dir, write); err != nil {
			return "", err
		}
	}
	if err := allThreads("landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0, 0, 0); err != nil {
		return "", err
	}
	return fmt.Sprintf("version %d; %d folders to read, %d to write", version, len(rules.Read), len(rules.Write)), nil
}

func allowBelow(ruleset int, dir string, access uint64) error {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open folder %s: %w", dir, err)
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("landlock_add_rule for %s: %w", dir, errno)
	}
	return nil
}

func landlockRemedy(err error) string {
	switch {
	case errors.Is(err, unix.ENOSYS):
		return "use Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK; in a container, a seccomp profile that permits landlock_create_ruleset"
	case errors.Is(err, unix.EOPNOTSUPP):
		return "add landlock to the kernel's boot parameter lsm="
	case errors.Is(err, unix.EPERM):
		return "in a container, use a seccomp profile that permits landlock_create_ruleset"
	}
	return threadsRemedy
}
