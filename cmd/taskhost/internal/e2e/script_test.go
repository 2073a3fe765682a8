package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/taskhost/taskhost/handlers/wasm/wasmtest"
)

// The scripts under testdata/script are what a person types. Beside the usual commands there are:
//
//	server dev|serve [ARGS]   start a server on a free port; TASKHOST_SERVER names it
//	stopserver                SIGTERM; it must exit with 0
//	module NAME FILE          write a module of package wasmtest: echo, loop
func TestScripts(t *testing.T) {
	t.Parallel()
	path := filepath.Dir(binary) + string(os.PathListSeparator) + os.Getenv("PATH")
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", path)
			e.Setenv("PROGRAM", filepath.Dir(binary)) // a PATH with nothing else
			e.Setenv("HOME", e.WorkDir)
			// Builds share the caches of the machine; nothing may be fetched.
			for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOROOT"} {
				out, err := exec.Command("go", "env", name).Output()
				if err != nil {
					return err
				}
				e.Setenv(name, strings.TrimSpace(string(out)))
			}
			e.Setenv("GOPROXY", "off")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "clang" {
				if _, err := exec.LookPath("clang"); err == nil || os.Getenv("CI") != "" {
					return true, nil // in CI a missing compiler must fail, not skip
				}
				return false, nil
			}
			return false, fmt.Errorf("unknown condition %s", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"server": scriptServer, "stopserver": scriptStop, "module": scriptModule,
		},
	})
}

// servers are the running servers by script.
var servers sync.Map

// running is the server of a script.
type running struct {
	cmd   *exec.Cmd
	log   *log
	ended chan struct{}
}

func scriptServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: server dev|serve [ARGS]")
	}
	hasListen := false
	for _, a := range args {
		hasListen = hasListen || a == "--listen"
	}
	if !hasListen {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	r := &running{cmd: exec.Command(binary, args...), log: newLog(), ended: make(chan struct{})}
	r.cmd.Dir, r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = ts.MkAbs("."), environment(), r.log, r.log
	ts.Check(r.cmd.Start())
	go func() {
		_ = r.cmd.Wait() // ProcessState tells
		close(r.ended)
	}()
	ts.Defer(func() {
		_ = r.cmd.Process.Kill() // it may be gone
		<-r.ended
	})
	re := readyLine
	if args[0] == "dev" {
		re = devReady
	}
	match := r.log.wait(re, r.ended, time.Minute)
	if match == nil {
		ts.Fatalf("taskhost %s is not ready:\n%s", strings.Join(args, " "), r.log)
	}
	ts.Logf("%s", r.log)
	ts.Setenv("TASKHOST_SERVER", match[1])
	servers.Store(ts, r)
	ts.Check(os.WriteFile(ts.MkAbs("server.log"), []byte(r.log.String()), 0o600))
}

func scriptStop(ts *testscript.TestScript, neg bool, args []string) {
	v, ok := servers.LoadAndDelete(ts)
	if neg || !ok || len(args) > 0 {
		ts.Fatalf("usage: stopserver, after server")
	}
	r, _ := v.(*running)
	ts.Check(r.cmd.Process.Signal(os.Interrupt))
	select {
	case <-r.ended:
	case <-time.After(time.Minute):
		ts.Fatalf("the server did not stop:\n%s", r.log)
	}
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		ts.Fatalf("the server exited with %d:\n%s", code, r.log)
	}
}

func scriptModule(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: module echo|loop FILE")
	}
	modules := map[string]func() []byte{"echo": wasmtest.EchoReactor, "loop": wasmtest.LoopReactor}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), modules[args[0]](), 0o600))
}
