package meter_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Random modules do the same before and after the rewriting, in the compiler and the interpreter, with large and small refills,
// and take the same fuel.
func TestRandomModules(t *testing.T) {
	t.Parallel()
	n := uint64(400)
	if reduced() {
		n = 30
	}
	for seed := range n {
		compareRandom(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzRandomModules(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { compareRandom(t, seed) })
}

// An executed instruction costs at least a 16th of a unit.
const undercharge = 16

func compareRandom(t *testing.T, seed uint64) {
	module := generate(seed, false)
	compiler, interpreter := wazero.NewRuntimeConfigCompiler(), wazero.NewRuntimeConfigInterpreter()
	hosts := []*host{
		newHost(t, compiler, false, 0),
		newHost(t, compiler, true, 1+int64(seed%50)),
		newHost(t, compiler, true, 1<<40),
		newHost(t, interpreter, true, 1+int64(seed%7000)),
	}
	var mods []api.Module
	for i, h := range hosts {
		m, err := h.start(t, "", module)
		if err != nil {
			t.Fatalf("seed %d, host %d: %v", seed, i, err)
		}
		mods = append(mods, m)
	}
	counter := newHost(t, interpreter, false, 0)
	exact, err := counter.start(t, "", generate(seed, true))
	if err != nil {
		t.Fatalf("seed %d, counting: %v", seed, err)
	}
	for f := 0; mods[0].ExportedFunction(fmt.Sprint("f", f)) != nil; f++ {
		name := fmt.Sprint("f", f)
		var want outcome
		for i, m := range mods {
			got := callGenerated(m, name)
			if i == 0 {
				want = got
			} else if !got.equal(want) {
				t.Errorf("seed %d: %s gives %v, in host %d %v", seed, name, want, i, got)
			}
		}
		if got := callGenerated(exact, name); !got.equal(want) {
			t.Errorf("seed %d: %s gives %v, when counting %v", seed, name, want, got)
		}
		compareState(t, fmt.Sprintf("seed %d after %s", seed, name), mods)
		fuel := hosts[1].used()
		if hosts[2].used() != fuel || hosts[3].used() != fuel {
			t.Errorf("seed %d: after %s fuel %d, with large refills %d, interpreted %d", seed, name, fuel, hosts[2].used(), hosts[3].used())
		}
		if executed := int64(exact.ExportedGlobal("count").Get()); executed > undercharge*fuel {
			t.Errorf("seed %d: after %s %d units of fuel for %d instructions", seed, name, fuel, executed)
		}
	}
	for _, h := range append(hosts, counter) {
		_ = h.rt.Close(t.Context())
	}
}

func callGenerated(m api.Module, name string) outcome {
	m.ExportedGlobal("budget").(api.MutableGlobal).Set(budget)
	return call(m, name, 3, 5)
}

// compareState compares memories and exported globals.
func compareState(t *testing.T, where string, mods []api.Module) {
	t.Helper()
	memory := func(m api.Module) []byte {
		b, _ := m.Memory().Read(0, m.Memory().Size())
		return b
	}
	for i, m := range mods[1:] {
		if !bytes.Equal(memory(m), memory(mods[0])) {
			t.Errorf("%s: the memory in host %d differs", where, i+1)
		}
		for g := 0; mods[0].ExportedGlobal(fmt.Sprint("g", g)) != nil; g++ {
			name := fmt.Sprint("g", g)
			if got, want := m.ExportedGlobal(name).Get(), mods[0].ExportedGlobal(name).Get(); got != want {
				t.Errorf("%s: %s is %x, in host %d %x", where, name, want, i+1, got)
			}
		}
	}
}
