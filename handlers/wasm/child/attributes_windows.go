package child

import "syscall"

func attributes(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// CloseInherited has nothing to close: on Windows a process inherits the handles it is given and no others.
func CloseInherited() error { return nil }
