package runner

import (
	"net"
	"os"

	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// supervisor is the connection that this process was started with, its stdin and stdout.
func supervisor() (net.Conn, error) {
	if _, err := os.Stdin.Stat(); err != nil {
		return nil, err
	}
	return link.PipeConn(os.Stdin, os.Stdout), nil
}
