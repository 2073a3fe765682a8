// Package cli is the command line of taskhost, one command per file. What is shared:
//
//   - cli.go      the root command, and how an error ends the process
//   - exit.go     exit codes
//   - output.go   -o table|json|yaml|id
//   - session.go  what client commands need: the server, the key, interrupts
//   - self.go     how this program was started, so that printed commands can be pasted
//
// stdout carries the answer and nothing else; everything said to people goes to stderr. With -o json an error is JSON too, on
// stderr.
package cli
