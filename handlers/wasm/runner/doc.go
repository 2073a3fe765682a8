// Package runner is the child process that runs Wasm handlers: the hidden command "taskhost runner". It speaks the handler protocol
// (abi/pluginpb) on descriptor 3, one end of a socket pair whose other end the supervisor (package pool) holds. It loads artifacts that the
// supervisor has verified, runs every attempt in a fresh instance, and ends when the connection ends.
//
//	reader of Work ──job──► worker (one per slot) ──Done──► outbox of Work ──► host
//	                          │ log lines  ──► ring, lossy ───────────────► host
//	                          └ host calls ──► outbox of Calls ◄─reply───── host
//
// A guest that computes without end keeps its worker; the Go runtime cannot take the processor away from it, so a garbage collection
// stops the whole runner until the guest returns or the supervisor kills the process. That is what the process is for.
package runner
