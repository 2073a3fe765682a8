package archtest

import (
	"regexp"
	"strings"
	"testing"
)

// Each rule is shown to catch a planted violation, and to leave its neighbour alone.

func TestPlantedImports(t *testing.T) {
	t.Parallel()
	const m = Module + "/"
	for _, c := range []struct {
		name, path, imp string
		test            bool
		fault           string // "" = allowed
	}{
		{"queue imports the standard library", "queue", "context", false, ""},
		{"queue meets handlers", "queue", m + "handlers", false, "queue must not import handlers"},
		{"handlers meets queue", "handlers", m + "queue", false, "handlers must not import queue"},
		{"queue imports a module", "queue", "github.com/google/uuid", false, "queue must not import github.com/google/uuid"},
		{"a test of queue may use rapid", "queue", "pgregory.net/rapid", true, ""},
		{"queue itself may not", "queue", "pgregory.net/rapid", false, "queue must not import pgregory.net/rapid"},
		{"an engine imports the seam", "queue/sqliteq", m + "queue", false, ""},
		{"an engine imports another engine", "queue/sqliteq", m + "queue/memq", false, "queue/sqliteq must not import queue/memq"},
		{"its test may", "queue/sqliteq", m + "queue/memq", true, ""},
		{"the model judges fair, so it must not use it", "queue/memq", m + "queue/fair", false, "queue/memq must not import queue/fair"},
		{"host imports an engine", "host", m + "queue/sqliteq", false, "host must not import queue/sqliteq"},
		{"host imports a runtime", "host", m + "handlers/wasm", false, "host must not import handlers/wasm"},
		{"host imports config", "host/httpapi", m + "config", false, "host/httpapi must not import config"},
		{"a part of host imports host", "host/httpapi", m + "host", false, ""},
		{"config imports ours", "config", m + "queue", false, "config must not import queue"},
		{"a runtime imports queue", "handlers/wasm/pool", m + "queue", false, "handlers/wasm/pool must not import queue"},
		{"wazero outside the engine", "handlers/wasm/pool", "github.com/tetratelabs/wazero", false, "handlers/wasm/pool must not import github.com/tetratelabs/wazero"},
		{"wazero inside the engine", "handlers/wasm/engine", "github.com/tetratelabs/wazero/api", false, ""},
		{"cli imports an engine", "cmd/taskhost/internal/cli", m + "queue/sqliteq", false, "cmd/taskhost/internal/cli must not import queue/sqliteq"},
		{"wire imports an engine", "cmd/taskhost/internal/wire", m + "queue/sqliteq", false, ""},
		{"main imports wire", "cmd/taskhost", m + "cmd/taskhost/internal/wire", false, "cmd/taskhost must not import cmd/taskhost/internal/wire"},
		{"the SDK imports the host", "sdk/go/guest", m + "abi", false, "sdk/go/guest must not import abi"},
		{"a package nobody planned", "pkg", "fmt", false, "pkg has no room in internal/archtest/rules.go"},
	} {
		p := Package{ImportPath: m + c.path}
		want := c.fault
		if c.test {
			p.XTestImports = []string{c.imp}
		} else {
			p.Imports = []string{c.imp}
		}
		if got := strings.Join(CheckImports([]Package{p}, Rooms()), "; "); got != want {
			t.Errorf("%s: got %q, want %q", c.name, got, want)
		}
	}
}

func TestPlantedSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lines int
		fault string
	}{
		{"a.go", 600, ""},
		{"a.go", 601, "a.go has 601 lines, limit 600"},
		{"a_test.go", 900, ""},
		{"a_test.go", 901, "a_test.go has 901 lines, limit 900"},
		{"a.lua", 151, "a.lua has 151 lines, limit 150"},
		{"a.pb.go", 5000, ""},
		{"a.md", 5000, ""},
	} {
		got := strings.Join(CheckSize(c.name, []byte(strings.Repeat("x\n", c.lines)), FileLimits()), "; ")
		if got != c.fault {
			t.Errorf("%s with %d lines: got %q, want %q", c.name, c.lines, got, c.fault)
		}
	}
}

func TestPlantedLines(t *testing.T) {
	t.Parallel()
	unfinished, home := regexp.MustCompile(Unfinished), regexp.MustCompile(HomePath)
	mark := "TO" + "DO"
	for _, c := range []struct {
		line    string
		pattern *regexp.Regexp
		fault   string
	}{
		{"// " + mark + ": later", unfinished, `f:1: "` + mark + `"`},
		{"// " + mark + "S are not words we use", unfinished, ""},
		{`dir := "/ho` + `me/ada/src"`, home, `f:1: "\"/ho` + `me/a"`},
		{"see https://example.com/home/page", home, ""},
	} {
		if got := strings.Join(CheckLines("f", []byte(c.line+"\n"), c.pattern), "; "); got != c.fault {
			t.Errorf("%s: got %q, want %q", c.line, got, c.fault)
		}
	}
}

func TestPlantedPackages(t *testing.T) {
	t.Parallel()
	p := Package{ImportPath: Module + "/queue", Name: "queue", GoFiles: []string{"queue.go"}}
	if got := CheckPackage(p); len(got) != 1 || got[0] != "queue has no package documentation" {
		t.Errorf("no documentation: got %q", got)
	}
	p = Package{ImportPath: Module + "/host/util", Name: "util", Doc: "Package util is useful."}
	if got := CheckPackage(p); len(got) != 1 || got[0] != `host/util: "util" is no name for a package` {
		t.Errorf("bad name: got %q", got)
	}
}

func TestPlantedGlobals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, a, b string
		fault      string
	}{
		{"init", "func init() {}", "", "a.go:2: init function"},
		{"a method named init", "type t int\nfunc (t) init() {}", "", ""},
		{"a table", "var table = map[string]int{\"a\": 1}\nfunc f() int { return table[\"a\"] }", "", ""},
		{"an empty map", "var m = map[string]int{}", "", "a.go:2: package variable m exists to be changed"},
		{"a channel", "var c = make(chan int)", "", "a.go:2: package variable c exists to be changed"},
		{"a lock", "import \"sync\"\nvar mu sync.Mutex", "", "a.go:3: package variable mu exists to be changed"},
		{"an atomic", "import \"sync/atomic\"\nvar n atomic.Pointer[int]", "", "a.go:3: package variable n exists to be changed"},
		{"assigned", "var n int\nfunc f() { n = 1 }", "", "a.go:3: package variable n is changed"},
		{"assigned in another file", "var n int", "func f() { n++ }", "b.go:2: package variable n is changed"},
		{"an element assigned", "var s = [2]int{}\nfunc f() { s[0] = 1 }", "", "a.go:3: package variable s is changed"},
		{"its address taken", "var n int\nfunc f() *int { return &n }", "", "a.go:3: package variable n is changed"},
		{"deleted from", "var m = map[int]int{1: 1}\nfunc f() { delete(m, 1) }", "", "a.go:3: package variable m is changed"},
		{"a local of the same name", "var n int\nfunc f() { n := 1; n++ }", "func g(n int) { n++ }", ""},
		{"an interface kept", "type t int\nvar _ any = t(0)\nfunc f() { _ = t(1) }", "", ""},
		{"a sentinel", "import \"errors\"\nvar ErrX = errors.New(\"x\")", "", ""},
	} {
		got, err := CheckGlobals(map[string][]byte{"a.go": []byte("package p\n" + c.a), "b.go": []byte("package p\n" + c.b)})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, "; ") != c.fault {
			t.Errorf("%s: got %q, want %q", c.name, got, c.fault)
		}
	}
}

func TestPlantedComments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ source, fault string }{
		{"func F() {}", "a.go:2: F has no doc comment"},
		{"// F does.\nfunc F() {}", ""},
		{"type T int", "a.go:2: T has no doc comment"},
		{"const (\n\tA = 1 // the first\n\tB = 2\n)", "a.go:4: B has no doc comment"},
		{"// The letters.\nconst (\n\tA = 1\n\tB = 2\n)", ""},
		{"func f() {}", ""},
	} {
		got, err := CheckComments("a.go", []byte("package p\n"+c.source))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, "; ") != c.fault {
			t.Errorf("%s: got %q, want %q", c.source, got, c.fault)
		}
	}
}

func TestLoadSeesThisPackage(t *testing.T) {
	t.Parallel()
	packages, err := Load(t.Context(), ".", ".")
	if err != nil || len(packages) != 1 || packages[0].ImportPath != Module+"/internal/archtest" || packages[0].Doc == "" {
		t.Errorf("got %+v, %v", packages, err)
	}
}
