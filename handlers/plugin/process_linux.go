package plugin

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// awaitExit returns when the process has ended, and leaves it to be reaped: until then its number, and that of its group, belong to nobody else.
func awaitExit(cmd *exec.Cmd) bool {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// killGroup kills a process that was not reaped, and its group.
func killGroup(p *os.Process) { _ = unix.Kill(-p.Pid, unix.SIGKILL) } // ESRCH: all of them have ended

// killLeftovers has nothing to do: the group was killed before.
func killLeftovers(*os.Process) {}

// startHint says more about an error of exec.
func startHint(err error) string {
	if errors.Is(err, syscall.ENOEXEC) {
		return fmt.Sprintf("%v; it is no program for %s/%s, or a script without an interpreter line", err, runtime.GOOS, runtime.GOARCH)
	}
	return err.Error()
}
