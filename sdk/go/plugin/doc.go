// Package plugin is for writing native handlers in Go: programs that an operator installs with taskhost, under "plugins" in its
// configuration. They run outside the WebAssembly sandbox, with the rights of the host's user. A whole plugin:
//
//	package main
//
//	import (
//		"bytes"
//		"context"
//
//		"github.com/taskhost/taskhost/sdk/go/plugin"
//	)
//
//	func main() {
//		plugin.Serve(plugin.Handlers{"text.upper": upper})
//	}
//
//	func upper(_ context.Context, job *plugin.Job) ([]byte, error) {
//		return bytes.ToUpper(job.Payload()), nil
//	}
//
// The host starts the program, several jobs run in it at once, each on a goroutine of its own. A job may run more than once: after a failure,
// a crash, a lost lease. A panic of the handler fails its attempt; a panic on a goroutine that the handler started takes the whole process
// and every job in it down. What the program writes to standard output or standard error goes to the host's log; what belongs
// to a job's own log goes through [Job.Log] or [Job.Logger].
//
// Handlers of untrusted authors are WebAssembly modules; see package guest of the module sdk/go, which has the same names.
package plugin
