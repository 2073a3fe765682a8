// Command child is a compile child for tests: the real one, and ones that misbehave as a module that took one over might make it.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/artifact"
	"github.com/taskhost/taskhost/handlers/wasm/compile"
	"github.com/taskhost/taskhost/handlers/wasm/engine"
)

const report = `{"report":{"kind":"reactor","size_bytes":%d,"imports":[],"exports":[],"declared_memory":{"min_bytes":65536,"max_bytes":65536}}}`

func main() {
	switch mode := os.Args[1]; mode {
	case "compile":
		os.Exit(compile.Child(context.Background(), os.Stdin, os.Stdout, os.Stderr))
	case "hang":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		if len(os.Args) > 2 {
			must(os.WriteFile(os.Args[2], fmt.Append(nil, os.Getpid()), 0o600))
		}
		for {
			time.Sleep(time.Hour) // an empty select would be reported as a deadlock
		}
	case "hold": // reads nothing until a file appears, then compiles
		must(os.WriteFile(os.Args[2]+".up", nil, 0o600))
		for {
			if _, err := os.Stat(os.Args[2]); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		os.Exit(compile.Child(context.Background(), os.Stdin, os.Stdout, os.Stderr))
	case "kill-self":
		must(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		time.Sleep(time.Hour)
	case "exit":
		fmt.Fprintln(os.Stderr, "\nfirst \x1b[31mline\nsecond line")
		os.Exit(7)
	case "panic":
		panic("index out of range")
	case "garbage":
		fmt.Println("not what was asked for")
	case "flood":
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		for range 64 {
			os.Stdout.Write(chunk)
			os.Stderr.Write(chunk)
		}
	case "fault":
		fmt.Println(`{"fault":"disk full"}`)
	case "link", "no-module", "leave-process", "environment":
		misbehave(mode)
	case "load": // what a runner does
		module, err := os.ReadFile(filepath.Join(os.Args[2], artifact.ModuleFile))
		must(err)
		loaded, err := engine.Load(context.Background(), module, handlers.Kind(os.Args[3]), filepath.Join(os.Args[2], artifact.CacheDir))
		must(err)
		must(loaded.Close())
	case "supervise":
		supervise(os.Args[2], os.Args[3])
	default:
		panic("unknown mode " + mode)
	}
}

// misbehave answers with a sound report and leaves something else than what it says.
func misbehave(mode string) {
	data, err := io.ReadAll(os.Stdin)
	must(err)
	module := data[bytes.Index(data, []byte("\x00asm")):]
	if mode != "no-module" {
		must(os.WriteFile(artifact.ModuleFile, module, 0o600))
	}
	switch mode {
	case "link":
		must(os.Symlink("/etc/passwd", "passwd"))
	case "leave-process":
		cmd := exec.Command("/proc/self/exe", "hang", os.Args[2])
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // and so keeps the pipes open
		must(cmd.Start())
		for {
			if pid, err := os.ReadFile(os.Args[2]); err == nil && len(pid) > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
	case "environment":
		dir, err := os.Getwd()
		must(err)
		text := strings.Join(os.Environ(), "\n") + "\n" + dir + "\n"
		must(os.WriteFile(os.Args[2], []byte(text), 0o600))
	}
	fmt.Printf(report, len(module))
}

// supervise is a supervisor that waits for a child that hangs, until it is killed itself.
func supervise(dir, pidFile string) {
	store, err := artifact.NewStore(dir, artifact.HostKey{1})
	must(err)
	s, err := compile.NewService(compile.Options{Store: store, Command: func() (string, []string) {
		return "/proc/self/exe", []string{"hang", pidFile}
	}})
	must(err)
	must(s.Start())
	_, _, err = s.Admit(context.Background(), handlers.AdmitRequest{Module: []byte("any")})
	must(err)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
