// Command child is the child processes of tests: it is built as taskhost is shipped, without cgo and the race detector.
package main

import (
	"context"
	"os"

	"github.com/taskhost/taskhost/handlers/wasm/compile"
	"github.com/taskhost/taskhost/handlers/wasm/runner"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	switch args[0] {
	case "compile":
		return compile.Child(context.Background(), os.Stdin, os.Stdout, os.Stderr)
	case "runner":
		return runner.Child(context.Background(), args[1:])
	case "without-landlock": // ROLE …
		hideLandlock()
		return run(args[1:])
	case "landlock-unless": // FILE ROLE …: without, if the file exists
		if _, err := os.Stat(args[1]); err == nil {
			hideLandlock()
		}
		return run(args[2:])
	}
	panic("unknown role " + args[0])
}
