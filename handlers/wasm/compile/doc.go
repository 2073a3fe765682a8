// Package compile turns uploaded bytes into artifacts, in child processes.
//
// Service is the supervisor's side. It never looks into the bytes: each module goes to a process of its own, which dies after
// it. Child is that process: it sets its own resource limits before it reads the module, runs the steps of pipeline.go on it
// and answers with a verdict. What it answers, and what it leaves in its directory, is examined as hostile. It holds no key:
// the Service signs and publishes.
//
//	supervisor                                  child (taskhost compile)
//	  draft directory, empty environment  ────►   rlimits, lowest priority
//	  header and module on stdin          ────►   scan, validate, meter ─► compile into ./cache, ./module.wasm
//	  verdict on stdout, capped           ◄────   exit
//	  wait, kill what is left of its group
//	  check the verdict, sign, publish
//
// Which limit stops what: RLIMIT_CPU and RLIMIT_DATA (set by the child) and a deadline (kept by the Service, with SIGKILL). A
// module that meets one is refused with a reason that begins "compile limit:". RLIMIT_AS is not used: the Go runtime reserves
// address space that it never touches.
//
// How the kernel confines the child beyond that is Options.Lockdown (package lockdown): of all files it can reach those of its own
// directory. A child that cannot be locked down as far as it must be answers so before it reads the module (handlers.ErrSandbox).
package compile
