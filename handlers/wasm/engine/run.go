package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
	"github.com/taskhost/taskhost/handlers/wasm/meter"
)

// Run runs one attempt in a fresh instance, on the calling goroutine, and returns how it ended. It returns when the guest does, or when a tick of
// its meter ends it: at its deadline, when it was told to stop (attempt.StopGrace later if it can ask for that), or when it has used up its fuel.
func (m *Module) Run(ctx context.Context, s *attempt.State) handlers.Outcome {
	start := time.Now()
	mem := newMemory(s.Limits.Memory)
	ret, err := m.run(ctx, s, mem)
	s.FlushStderr()
	out := m.outcome(s, mem, ret, err)
	out.Duration = time.Since(start)
	out.PeakMemory = int64(mem.size)
	out.Fuel = s.FuelUsed()
	if err := mem.release(); err != nil {
		// An instance's memory that cannot be unmapped would be lost for good, and another such one may follow.
		panic(fmt.Sprintf("engine: release memory: %v", err))
	}
	return out
}

var (
	errMinMemory  = errors.New("the module's initial memory is over the limit")
	errNoMemory   = errors.New("no memory for an instance")
	errNotMetered = errors.New("the module has no gauge of fuel")
)

// run makes an instance and calls it. Nothing of the guest runs within instantiation: metering has made a function of the start section.
func (m *Module) run(ctx context.Context, s *attempt.State, mem *memory) (ret uint32, err error) {
	if m.minBytes > s.Limits.Memory {
		return 0, errMinMemory
	}
	if err := mem.commit(uint64(m.minBytes)); err != nil { // wazero panics when the first allocation fails; fail before
		return 0, errors.Join(errNoMemory, err)
	}
	ctx = experimental.WithMemoryAllocator(attempt.Context(ctx, s), mem)
	inst, err := m.runtime.InstantiateModule(ctx, m.compiled, m.config)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, inst.Close(ctx)) }()
	gauge, ok := inst.ExportedGlobal(meter.ExportFuel).(api.MutableGlobal)
	if !ok {
		return 0, errNotMetered
	}
	s.Asks = m.asks
	s.Fuel(gauge)
	if m.hasStart {
		if _, err := m.call(ctx, inst, meter.ExportStart); err != nil {
			return 0, err
		}
	}
	if m.kind == handlers.KindCommand {
		_, err := m.call(ctx, inst, abi.ExportStart)
		return 0, err
	}
	if m.hasInit {
		if _, err := m.call(ctx, inst, abi.ExportInitialize); err != nil {
			return 0, err
		}
	}
	return m.call(ctx, inst, abi.ExportHandle)
}

func (m *Module) call(ctx context.Context, inst api.Module, name string) (uint32, error) {
	var stack [1]uint64
	if err := inst.ExportedFunction(name).CallWithStack(ctx, stack[:]); err != nil {
		return 0, err
	}
	return uint32(stack[0]), nil
}
