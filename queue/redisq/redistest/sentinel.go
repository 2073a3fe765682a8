package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// StartSentinel starts a Sentinel that watches master under the name mymaster and asks clients for a password ("" = none). Addr is its
// address; it ends with Kill.
func StartSentinel(ctx context.Context, dir string, master *Server, password string) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return nil, err
	}
	conf := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor mymaster 127.0.0.1 %d 1\n", port, dir, master.port)
	if password != "" {
		conf += "requirepass " + password + "\n"
	}
	file := filepath.Join(dir, "sentinel-"+strconv.Itoa(port)+".conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	s := &Server{port: port, dir: dir, sentinel: file}
	return s, s.Restart()
}
