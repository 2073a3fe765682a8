package pool

import (
	"errors"
	"net"
	"os"
	"os/exec"

	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// connect gives cmd two pipes as its stdin and stdout. theirs are to be closed once it has started.
func connect(cmd *exec.Cmd) (ours net.Conn, theirs []*os.File, err error) {
	stdin, toRunner, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	fromRunner, stdout, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, stdin.Close(), toRunner.Close())
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	return link.PipeConn(fromRunner, toRunner), []*os.File{stdin, stdout}, nil
}
