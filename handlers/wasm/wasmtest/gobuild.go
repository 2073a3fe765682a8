package wasmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// GoCommand builds one Go file with GOOS=wasip1 as a command and returns the module. Extra flags go to go build. The source
// may import the standard library only.
func GoCommand(tb testing.TB, source string, flags ...string) []byte {
	tb.Helper()
	return goBuild(tb, source, flags)
}

// GoReactor builds one Go file with GOOS=wasip1 and -buildmode=c-shared, so that its //go:wasmexport functions are exports and
// _initialize starts the Go runtime. The source may import the standard library only.
func GoReactor(tb testing.TB, source string, flags ...string) []byte {
	tb.Helper()
	return goBuild(tb, source, append([]string{"-buildmode=c-shared"}, flags...))
}

func goBuild(tb testing.TB, source string, flags []string) []byte {
	tb.Helper()
	dir := tb.TempDir()
	for name, text := range map[string]string{"go.mod": "module guest\n\ngo 1.26\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	args := append([]string{"build", "-trimpath", "-o", "guest.wasm"}, flags...)
	cmd := exec.CommandContext(tb.Context(), "go", append(args, ".")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("go build of a guest: %v\n%s", err, out)
	}
	module, err := os.ReadFile(filepath.Join(dir, "guest.wasm"))
	if err != nil {
		tb.Fatal(err)
	}
	return module
}

// LargeGoSource is a Go command that links some of the largest packages there are: net/http, crypto/tls, html/template and
// go/types. It is some 20 MB, and handlers like it must be accepted.
const LargeGoSource = `package main

import (
	"crypto/tls"
	"fmt"
	"go/importer"
	"go/types"
	"html/template"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { template.Must(template.New("").Parse("x")).Execute(w, r) })
	cfg := types.Config{Importer: importer.Default()}
	_, err := cfg.Check("x", nil, nil, nil)
	_, err2 := tls.Dial("tcp", os.Args[0], nil)
	fmt.Println(err, err2, http.ListenAndServe("", nil))
}
`
