package scaffold

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The copies must be the SDK's own files. When this fails: go generate ./cmd/taskhost/internal/scaffold
func TestCopiesAreFresh(t *testing.T) {
	t.Parallel()
	const root = "../../../.."
	for from, to := range map[string]string{"sdk/go/guest": "_sdk/go", "sdk/go/guest/guesttest": "_sdk/go/guesttest", "sdk/c": "_sdk/c"} {
		var want []string
		entries, err := os.ReadDir(filepath.Join(root, from))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if ext := filepath.Ext(e.Name()); e.IsDir() || strings.HasSuffix(e.Name(), "_test.go") || ext != ".go" && ext != ".h" {
				continue
			}
			want = append(want, e.Name())
			original, err := os.ReadFile(filepath.Join(root, from, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			copied, err := fs.ReadFile(sdk, to+"/"+e.Name())
			if err != nil || string(copied) != string(original) {
				t.Errorf("%s/%s is not the same as %s/%s (%v): run go generate", to, e.Name(), from, e.Name(), err)
			}
		}
		var got []string
		copies, err := fs.ReadDir(sdk, to)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range copies {
			if !e.IsDir() {
				got = append(got, e.Name())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v: run go generate", to, got, want)
		}
	}
}

// A new project builds for WebAssembly and passes its own go test, without network and whatever GOFLAGS says.
func TestGoProjectBuildsOffline(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"resize", "image.resize", "sort"} {
		dir := filepath.Join(t.TempDir(), name)
		files, err := Create(dir, name, "go")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"handler.yaml", "main.go", "cases/ok.json", "go.mod", "README.md"} {
			if !slices.Contains(files, want) {
				t.Errorf("%s is missing in %v", want, files)
			}
		}
		for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
			run(t, dir, nil, "go", args...)
		}
		run(t, dir, []string{"GOOS=wasip1", "GOARCH=wasm"}, "go", "build", "-buildmode=c-shared", "-o", "x.wasm", ".")
		if out, err := exec.Command("gofmt", "-l", dir).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("not formatted: %s %v", out, err)
		}
	}
}

func run(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOFLAGS=")
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, "a", "go"); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("got %v", err)
	}
	if _, err := Create(filepath.Join(dir, "b"), "b", "cobol"); err == nil || !strings.Contains(err.Error(), "there are go, c") {
		t.Errorf("got %v", err)
	}
}
