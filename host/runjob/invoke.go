package runjob

import (
	"fmt"
	"runtime/debug"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
)

// invoke runs the attempt. A runtime promises not to panic; when one does, the attempt has crashed and the host lives.
func (a *Attempt) invoke(rt handlers.Runtime) (out handlers.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			a.r.counts.panics.Add(1)
			a.r.o.Log.Error("a runtime panicked", "runtime", rt.Name(), "job", a.job.ID, "tenant", a.job.Tenant, "type", a.job.Type,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			out = handlers.Outcome{Kind: handlers.OutcomeCrashed, Error: &handlers.Error{Kind: abi.KindCrash,
				Message: fmt.Sprintf("the %s runtime panicked: %v", rt.Name(), p)}}
		}
	}()
	return rt.Invoke(a.Context(), &a.inv)
}
