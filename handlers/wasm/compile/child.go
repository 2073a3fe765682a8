package compile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/admission"
	"github.com/taskhost/taskhost/handlers/wasm/child"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
)

// openFiles is how many descriptors a child may have.
const openFiles = 64

// Exit codes of the child.
const (
	exitDone     = 0
	exitProtocol = 2 // no sound request, or nobody to answer; also what the Go runtime ends with when it crashes
	exitCPU      = 3 // the limit of processor time
)

// Child is the compile child: the hidden command "taskhost compile", started by a Service with the request on stdin and an empty
// directory of its own as the current directory. It returns the exit code. It lowers the process's limits for good and keeps
// signal handlers: call it from main only.
func Child(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) int {
	h, err := readHeader(stdin)
	if err != nil {
		fmt.Fprintf(stderr, "taskhost compile is started by taskhost itself: %v\n", err)
		return exitProtocol
	}
	v := answer(ctx, h, stdin, stderr)
	if err := json.NewEncoder(stdout).Encode(v); err != nil {
		fmt.Fprintf(stderr, "answer: %v\n", err)
		return exitProtocol
	}
	return exitDone
}

func answer(ctx context.Context, h header, stdin io.Reader, stderr io.Writer) verdict {
	if err := errors.Join(child.CloseInherited(), lowerLimits(h)); err != nil {
		return verdict{Fault: "confine the process: " + err.Error()}
	}
	if _, err := lockdown.Apply(lockdown.Rules{Plan: h.Lockdown, Write: []string{"."}, OpenFiles: openFiles}); err != nil {
		return verdict{Fault: err.Error(), Unsafe: true}
	}
	stop := watchCPU(func() {
		fmt.Fprintf(stderr, "%d s of processor time are used up\n", h.CPUSeconds)
		os.Exit(exitCPU)
	})
	defer stop()
	module := make([]byte, h.ModuleBytes)
	if _, err := io.ReadFull(stdin, module); err != nil {
		return verdict{Fault: "read the module: " + err.Error()}
	}
	w := &work{uploaded: module, limits: admission.Limits{MemoryBytes: h.MemoryBytes}}
	err := runSteps(ctx, w)
	var r *handlers.Refusal
	switch {
	case errors.As(err, &r):
		return verdict{Refusal: &refusal{Reason: r.Reason, Details: r.Details}}
	case err != nil:
		return verdict{Fault: err.Error()}
	}
	return verdict{Report: w.report}
}
