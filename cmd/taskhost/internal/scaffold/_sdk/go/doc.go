// Package guest is for writing taskhost handlers in Go: a function from a job to a result or an error.
//
//	package main
//
//	import (
//		"context"
//
//		"github.com/taskhost/taskhost/sdk/go/guest"
//	)
//
//	type in struct{ Name string `json:"name"` }
//	type out struct{ Greeting string `json:"greeting"` }
//
//	func init() {
//		guest.HandleJSON(func(ctx context.Context, job *guest.Job, in in) (out, error) {
//			return out{"Hello, " + in.Name}, nil
//		})
//	}
//
//	func main() {}
//
// Build it as a reactor, a module whose functions the host calls:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o handler.wasm .
//
// The handler is registered in an init function because main does not run in a reactor: the host initialises the module,
// which runs the init functions, and then calls the handler once. Every job gets a fresh instance, so package variables
// never carry anything from one job to the next; what must survive goes into a checkpoint ([Job.SaveCheckpoint]).
//
// A handler may run more than once for one job (after a failure, a crash, a lost lease). What it returns takes effect once;
// guard effects outside taskhost with [Job.ID], which is the same over all attempts.
//
// Handler code is ordinary Go: it builds for every platform, and package guesttest runs it in a plain `go test` against an
// in-memory host.
//
// The package uses the standard library only. The contract behind it is abi/SPEC.md of the taskhost repository.
package guest
