// Package wasi is WASI preview 1 for handlers: every function has its name and signature, so that any program can be instantiated, and there
// is nothing to reach: no file system, no sockets, no process. Standard input is the payload, standard output the result, standard error
// the log; clocks and random numbers are real.
//
// State is per attempt, found in the context of the call, so a guest that closes a descriptor harms nobody but itself. Source of names,
// signatures and layouts: the witx files of WASI snapshot 1.
package wasi

import (
	"context"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
)

// errno is a WASI error number.
type errno uint32

// The errnos in use.
const (
	ok          errno = 0
	eBADF       errno = 8
	eFAULT      errno = 21
	eINVAL      errno = 28
	eIO         errno = 29
	eNOTDIR     errno = 54
	eNOTSUP     errno = 58
	eSPIPE      errno = 70
	eNOTCAPABLE errno = 76
)

// call is one call of a WASI function: the attempt, the guest's memory and the arguments.
type call struct {
	*attempt.State
	mem  memory
	args []uint64
}

func (c *call) u32(i int) uint32 { return uint32(c.args[i]) }

// function is one function of the interface. All return an errno but proc_exit, which does not return.
type function struct {
	name   string
	params []api.ValueType
	fn     func(*call) errno
}

// Export adds the functions to a host module builder, which must be for abi.ModuleWASI.
func Export(b wazero.HostModuleBuilder) wazero.HostModuleBuilder {
	calls := &sync.Pool{New: func() any { return new(call) }} // a guest that calls in a loop must not make garbage for its neighbours to collect
	for _, f := range functions() {
		results := []api.ValueType{api.ValueTypeI32}
		if f.name == "proc_exit" {
			results = nil
		}
		fn := f.fn
		b = b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, mod api.Module, stack []uint64) {
			c := calls.Get().(*call)
			*c = call{State: attempt.From(ctx), mem: memory{mod.Memory()}, args: stack}
			c.ChargeCall()
			e := fn(c)
			*c = call{}
			calls.Put(c)
			if len(stack) > 0 {
				stack[0] = uint64(e)
			}
		}), f.params, results).Export(f.name)
	}
	return b
}

// Module is the name of the module Export makes.
const Module = abi.ModuleWASI

// functions is the whole interface, in the order of the specification.
func functions() []function {
	const i, l = api.ValueTypeI32, api.ValueTypeI64
	sig := func(t ...api.ValueType) []api.ValueType { return t }
	return []function{
		{"args_get", sig(i, i), argsGet},
		{"args_sizes_get", sig(i, i), argsSizesGet},
		{"environ_get", sig(i, i), environGet},
		{"environ_sizes_get", sig(i, i), environSizesGet},
		{"clock_res_get", sig(i, i), clockResGet},
		{"clock_time_get", sig(i, l, i), clockTimeGet},
		{"fd_advise", sig(i, l, l, i), onDescriptor(eSPIPE)},
		{"fd_allocate", sig(i, l, l), onDescriptor(eNOTSUP)},
		{"fd_close", sig(i), fdClose},
		{"fd_datasync", sig(i), onDescriptor(eINVAL)},
		{"fd_fdstat_get", sig(i, i), fdFdstatGet},
		{"fd_fdstat_set_flags", sig(i, i), onDescriptor(ok)},
		{"fd_fdstat_set_rights", sig(i, l, l), onDescriptor(eNOTSUP)},
		{"fd_filestat_get", sig(i, i), fdFilestatGet},
		{"fd_filestat_set_size", sig(i, l), onDescriptor(eINVAL)},
		{"fd_filestat_set_times", sig(i, l, l, i), onDescriptor(eNOTSUP)},
		{"fd_pread", sig(i, i, i, l, i), onDescriptor(eSPIPE)},
		{"fd_prestat_get", sig(i, i), noPreopen},
		{"fd_prestat_dir_name", sig(i, i, i), noPreopen},
		{"fd_pwrite", sig(i, i, i, l, i), onDescriptor(eSPIPE)},
		{"fd_read", sig(i, i, i, i), fdRead},
		{"fd_readdir", sig(i, i, i, l, i), onDescriptor(eNOTDIR)},
		{"fd_renumber", sig(i, i), fdRenumber},
		{"fd_seek", sig(i, l, i, i), onDescriptor(eSPIPE)},
		{"fd_sync", sig(i), onDescriptor(eINVAL)},
		{"fd_tell", sig(i, i), onDescriptor(eSPIPE)},
		{"fd_write", sig(i, i, i, i), fdWrite},
		{"path_create_directory", sig(i, i, i), onDirectory},
		{"path_filestat_get", sig(i, i, i, i, i), onDirectory},
		{"path_filestat_set_times", sig(i, i, i, i, l, l, i), onDirectory},
		{"path_link", sig(i, i, i, i, i, i, i), onDirectory},
		{"path_open", sig(i, i, i, i, i, l, l, i, i), onDirectory},
		{"path_readlink", sig(i, i, i, i, i, i), onDirectory},
		{"path_remove_directory", sig(i, i, i), onDirectory},
		{"path_rename", sig(i, i, i, i, i, i), onDirectory},
		{"path_symlink", sig(i, i, i, i, i), symlink},
		{"path_unlink_file", sig(i, i, i), onDirectory},
		{"poll_oneoff", sig(i, i, i, i), pollOneoff},
		{"proc_exit", sig(i), procExit},
		{"proc_raise", sig(i), func(*call) errno { return eNOTSUP }},
		{"random_get", sig(i, i), randomGet},
		{"sched_yield", nil, schedYield},
		{"sock_accept", sig(i, i, i), onDescriptor(eNOTSUP)},
		{"sock_recv", sig(i, i, i, i, i, i), onDescriptor(eNOTSUP)},
		{"sock_send", sig(i, i, i, i, i), onDescriptor(eNOTSUP)},
		{"sock_shutdown", sig(i, i), onDescriptor(eNOTSUP)},
	}
}

// Names returns the names of the functions, in the order of the specification.
func Names() []string {
	var names []string
	for _, f := range functions() {
		names = append(names, f.name)
	}
	return names
}
