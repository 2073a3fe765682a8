// Command taskhost runs queued jobs in sandboxed WebAssembly handlers: the server, its child processes, and the commands that
// talk to it.
package main

import (
	"context"
	"os"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/cli"
)

// commit is set by the linker; see the Makefile.
var commit string

func main() {
	os.Exit(cli.Main(context.Background(), &cli.App{
		Args: os.Args[1:], Environ: os.Environ(), In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Commit: commit,
	}))
}
