package wasmtest

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
)

// A builder that wrote modules no engine accepts would make every other test here worthless.
func TestBuiltModulesAreValid(t *testing.T) {
	t.Parallel()
	var full Builder
	full.ImportHost("log")
	f := full.Func(Types(I64, F32), Types(I64), []Local{{3, I32}, {1, F64}}, LocalGet(0))
	full.Table(2, 4)
	full.Memory(1, 3)
	g := full.Global(I32, true, I32Const(-129))
	full.Element(1, f)
	full.Data(8, []byte("hello"))
	full.PassiveData(make([]byte, 300))
	full.Start(full.Func(nil, nil, nil, GlobalGet(g), GlobalSet(g)))
	full.Custom("notes", []byte("x"))
	for name, module := range map[string][]byte{
		"echo": EchoReactor(),
		"loop": LoopReactor(),
		"full": full.Reactor([]Local{{1, I32}}, I32Const(1<<30), LocalTee(0)),
	} {
		rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
		if _, err := rt.CompileModule(t.Context(), module); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		rt.Close(context.Background())
	}
}
