package compile

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// reap waits for the child, and kills whatever it has left behind in its group: nothing of it may touch the draft afterwards. The
// group is killed while the child is dead and not yet reaped, as its number cannot be another process's until then.
func reap(cmd *exec.Cmd) error {
	for {
		if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	return cmd.Wait()
}

// rssBytes is the largest resident size; Linux counts in KiB.
func rssBytes(u *syscall.Rusage) int64 { return u.Maxrss << 10 }
