// Package plugin runs native handlers: programs that the operator installed by configuration, supervised through go-plugin, which speak the
// handler protocol (abi/pluginpb). They are trusted code with the rights of the host's user; what is isolated here is their failure.
//
//	                              ┌─ instance ─ process      one plugin has a fixed number of instances,
//	Invoke ─ by type ─► group ────┤                          each a process that runs several attempts at once
//	                              └─ instance ─ process
//
//	          ┌──────────┐ handshake, Describe  ┌─────────┐ deadline, silence, lost socket, breach, crash ┌──────┐
//	start ───►│ starting ├─────────────────────►│ serving ├──────────────────────────────────────────────►│ dead │──► start
//	          └────┬─────┘                      └─────────┘                                               └──┬───┘
//	               └── printed before the handshake, ended, took too long ──► backoff ◄── had done nothing ──┘
//
// An attempt that does not end in time takes its process with it; the others in it are interrupted, which counts nothing. When a process
// dies by itself, or stops answering, every attempt in it counts a crash and runs alone the next time, so that the guilty one is found
// and ends in the dead-letter queue by its crash budget.
//
// Every process has a process group of its own, dies with the host (on Linux), and is always reaped; a start uses a new client object.
package plugin
