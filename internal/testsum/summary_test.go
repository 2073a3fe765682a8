package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// run runs go test over a module made of files and returns the report.
func run(t *testing.T, files map[string]string) (ok bool, report string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module m\n\ngo 1.26\n"
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	s := newSummary(&out, false)
	if err := runModule(t.Context(), s, dir, []string{"-count=1"}); err != nil {
		s.broken("m", err)
	}
	ok = s.finish(time.Second)
	return ok, out.String()
}

const head = "package a\n\nimport \"testing\"\n\n"

func TestTotals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]string
		ok    bool
		want  []string
		not   string
	}{
		{"all pass", map[string]string{
			"a/a_test.go": head + "func TestA(t *testing.T) { t.Log(\"quiet\"); t.Run(\"sub\", func(t *testing.T) {}) }\nfunc TestB(t *testing.T) { t.Skip(\"no redis\") }",
			"b/b.go":      "package b",
		}, true, []string{"ok   m/a", "m/a.TestB: a_test.go:6: no redis", "PASS: 1 packages, 2 tests passed, 0 failed, 1 skipped, in 1s"}, "quiet"},
		{"one fails", map[string]string{
			"a/a_test.go": head + "func TestA(t *testing.T) { t.Error(\"boom\") }\nfunc TestB(t *testing.T) {}",
		}, false, []string{"boom", "FAIL m/a", "failed:\n  m/a.TestA\n", "FAIL: 1 packages, 1 tests passed, 1 failed, 0 skipped"}, ""},
		{"a panic", map[string]string{
			"a/a_test.go": head + "func TestA(t *testing.T) { panic(\"boom\") }",
		}, false, []string{"boom", "m/a.TestA", "FAIL: 1 packages"}, ""},
		{"a package dies", map[string]string{
			"a/a_test.go": "package a\n\nimport (\n\"os\"\n\"testing\"\n)\n\nfunc TestMain(m *testing.M) { m.Run(); println(\"leak\"); os.Exit(1) }\nfunc TestA(t *testing.T) {}",
		}, false, []string{"leak", "failed:\n  m/a\n", "1 tests passed"}, ""},
		{"it does not build", map[string]string{
			"a/a_test.go": head + "func TestA(t *testing.T) { undefined() }",
			"b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) {}",
		}, false, []string{"undefined: undefined", "m/a", "1 tests passed"}, ""},
		{"it cannot be listed", map[string]string{"a/a.go": "pakage a"}, false, []string{"FAIL"}, ""},
		{"no tests", map[string]string{"a/a.go": "package a"}, false, []string{"no test ran", "FAIL: 0 packages"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ok, report := run(t, c.files)
			if ok != c.ok {
				t.Errorf("ok %v, want %v", ok, c.ok)
			}
			for _, want := range c.want {
				if !strings.Contains(report, want) {
					t.Errorf("%q is missing", want)
				}
			}
			if c.not != "" && strings.Contains(report, c.not) {
				t.Errorf("%q should not be shown", c.not)
			}
			if t.Failed() {
				t.Log("report:\n" + report)
			}
		})
	}
}
