//go:build unix

package runner

import (
	"fmt"
	"net"
	"os"

	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// FD is the descriptor of the connection to the supervisor.
const FD = 3

// supervisor is the connection that this process was started with.
func supervisor() (net.Conn, error) {
	conn, err := link.FileConn(os.NewFile(FD, "supervisor"))
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is not a socket: %w", FD, err)
	}
	return conn, nil
}
