package meter_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// The WebAssembly core test suite, as the module cache has it: in the engine's own tests. Every command has the same outcome with
// the original and with the rewritten modules, and the rewritten ones take the same fuel compiled and interpreted.
func TestCoreTestSuite(t *testing.T) {
	t.Parallel()
	dir := engineDir(t)
	for _, version := range []string{"v1", "v2"} {
		scripts, err := filepath.Glob(filepath.Join(dir, "internal/integration_test/spectest", version, "testdata/*.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(scripts) == 0 {
			t.Skip("the engine's module comes without the core test suite")
		}
		for i, script := range scripts {
			if reduced() && i%16 != 0 {
				continue
			}
			t.Run(version+"/"+strings.TrimSuffix(filepath.Base(script), ".json"), func(t *testing.T) {
				t.Parallel()
				runScript(t, dir, script)
			})
		}
	}
}

// engineDir is where the engine's module is in the module cache.
func engineDir(t *testing.T) string {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil || len(out) == 0 {
		t.Skipf("the engine's module is not in a module cache: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// scriptCommand is one command of a script, in the form of wast2json.
type scriptCommand struct {
	Type       string `json:"type"`
	Line       int    `json:"line"`
	Name       string `json:"name"`
	Filename   string `json:"filename"`
	As         string `json:"as"`
	ModuleType string `json:"module_type"`
	Action     struct {
		Type   string        `json:"type"`
		Module string        `json:"module"`
		Field  string        `json:"field"`
		Args   []scriptValue `json:"args"`
	} `json:"action"`
}

type scriptValue struct {
	Type  string `json:"type"`
	Lane  string `json:"lane_type"`
	Value any    `json:"value"`
}

// scriptRun is the state of one script in one host.
type scriptRun struct {
	*host
	last   api.Module
	named  map[string]api.Module
	failed bool // the last module was not instantiated
}

func runScript(t *testing.T, engine, path string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var script struct {
		Commands []scriptCommand `json:"commands"`
	}
	if err := json.Unmarshal(raw, &script); err != nil {
		t.Fatal(err)
	}
	compiler := wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2)
	interpreter := wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2)
	runs := []*scriptRun{
		{host: newHost(t, compiler, false, 0)},
		{host: newHost(t, compiler, true, 1000)},
		{host: newHost(t, interpreter, true, 37)},
	}
	library, err := os.ReadFile(filepath.Join(engine, "internal/integration_test/spectest/testdata/spectest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		r.named = map[string]api.Module{}
		if _, err := r.start(t, "spectest", library); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range script.Commands {
		as := ""
		if i+1 < len(script.Commands) && script.Commands[i+1].Type == "register" {
			as = script.Commands[i+1].As
		}
		runCommand(t, runs, filepath.Dir(path), &c, as)
	}
}

func runCommand(t *testing.T, runs []*scriptRun, dir string, c *scriptCommand, as string) {
	where := fmt.Sprintf("line %d, %s %s %s", c.Line, c.Type, c.Action.Field, c.Filename)
	switch c.Type {
	case "module", "assert_uninstantiable", "assert_unlinkable", "assert_invalid", "assert_malformed":
		if c.ModuleType == "text" {
			return
		}
		code, err := os.ReadFile(filepath.Join(dir, c.Filename))
		if err != nil {
			t.Fatal(err)
		}
		var failed [3]bool
		for i, r := range runs {
			if i > 0 && failed[0] && (c.Type == "assert_invalid" || c.Type == "assert_malformed") {
				return // only what the engine accepts is rewritten
			}
			m, err := r.start(t, as, code)
			failed[i] = err != nil
			if c.Type == "module" {
				r.last, r.failed = m, err != nil
				if c.Name != "" {
					r.named[c.Name] = m
				}
			}
		}
		if failed[1] != failed[0] || failed[2] != failed[0] {
			t.Errorf("%s: failed %v", where, failed)
		}
	case "assert_return", "action", "assert_trap", "assert_exhaustion":
		compareAction(t, runs, c, where)
	case "register":
	default:
		t.Errorf("%s: unknown command", where)
	}
}

func compareAction(t *testing.T, runs []*scriptRun, c *scriptCommand, where string) {
	if runs[0].failed {
		return
	}
	var got []outcome
	var fuel []int64
	for i, r := range runs {
		m := r.last
		if c.Action.Module != "" {
			m = r.named[c.Action.Module]
		}
		if c.Action.Type == "get" {
			got = append(got, outcome{results: []uint64{m.ExportedGlobal(c.Action.Field).Get()}})
			continue
		}
		if c.Type == "assert_exhaustion" && i == 2 {
			return // how deep the stack is depends on the engine
		}
		var args []uint64
		for _, a := range c.Action.Args {
			args = append(args, a.bits(t)...)
		}
		before := r.used()
		got = append(got, call(m, c.Action.Field, args...))
		if r.metered {
			fuel = append(fuel, r.used()-before)
		}
	}
	if !got[1].equal(got[0]) {
		t.Errorf("%s: original %v, rewritten %v", where, got[0], got[1])
	}
	if len(fuel) == 2 && fuel[0] != fuel[1] {
		t.Errorf("%s: compiled code takes %d units of fuel, interpreted %d", where, fuel[0], fuel[1])
	}
}

// bits is the value as the engine takes it: one number, two for a vector.
func (v scriptValue) bits(t *testing.T) []uint64 {
	lanes, ok := v.Value.([]any)
	if !ok {
		lanes = []any{v.Value}
	}
	kind := v.Type
	if kind == "v128" {
		kind = v.Lane
	}
	width, err := strconv.Atoi(strings.TrimLeft(kind, "if"))
	if err != nil {
		width = 64 // a reference
	}
	words := make([]uint64, (width*len(lanes)+63)/64)
	for i, lane := range lanes {
		x := laneBits(t, fmt.Sprint(lane), width)
		if v.Type == "externref" && lane != "null" {
			x++ // 0 is null
		}
		words[i*width/64] |= x << (i * width % 64)
	}
	return words
}

func laneBits(t *testing.T, s string, width int) uint64 {
	switch s {
	case "null", "<nil>":
		return 0
	case "nan:canonical", "nan:arithmetic":
		if width == 32 {
			return uint64(math.Float32bits(float32(math.NaN())))
		}
		return math.Float64bits(math.NaN())
	}
	if strings.HasPrefix(s, "-") {
		x, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return uint64(x) & (1<<(width-1)<<1 - 1)
	}
	x, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
