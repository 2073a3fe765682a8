// Package lockdown takes rights away from a child process, for good, before it sees a byte of a tenant: what breaks out of the WebAssembly
// sandbox meets the kernel with nothing in its hands.
//
//	supervisor                                   child
//	  Probe: what does this machine allow? ───►    (a child that locks itself down, says how far it came, and ends)
//	  Plan: namespaces or not, the least level
//	  start: empty environment, three
//	  descriptors and the socket,
//	  namespaces at clone                  ───►    Apply, in this order:
//	                                                 rlimits, capabilities, no_new_privs   every thread
//	                                                 Landlock: the named folders only      every thread
//	                                                 seccomp: an allow-list                every thread (TSYNC)
//	                                               self-test: denied things are tried, and must fail
//	                                               below the least level: refuse to go on
//
// A layer counts only if its self-test passed. Nothing is done by halves in silence: Report says of every layer whether it holds, and if
// not, why and what would change that. Only Linux has the layers; elsewhere the level is Off.
package lockdown
