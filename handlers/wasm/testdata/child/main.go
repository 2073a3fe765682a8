// Command child is the child processes of tests: it is built as taskhost is shipped, without cgo and the race detector.
package main

import (
	"context"
	"os"

	"github.com/taskhost/taskhost/handlers/wasm/compile"
	"github.com/taskhost/taskhost/handlers/wasm/runner"
)

func main() {
	switch os.Args[1] {
	case "compile":
		os.Exit(compile.Child(context.Background(), os.Stdin, os.Stdout, os.Stderr))
	case "runner":
		os.Exit(runner.Child(context.Background(), os.Args[2:]))
	}
	panic("unknown role " + os.Args[1])
}
