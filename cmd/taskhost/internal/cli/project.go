package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// manifestName is the file that makes a folder a handler project.
const manifestName = "handler.yaml"

// project is a handler project on disk.
type project struct {
	dir    string
	Type   string   `yaml:"type"`   // the task type; required
	Lang   string   `yaml:"lang"`   // go or c; not with build
	Build  []string `yaml:"build"`  // a command and its arguments, for any other language
	Module string   `yaml:"module"` // what is built, relative to the folder; required
}

// laterKeys are keys of a manifest that do nothing yet. They are refused: a limit that is written down but not in force would be
// a trap.
func laterKeys() []string {
	return []string{"memory", "timeout", "secrets", "http_allow", "config", "retry", "limits", "instance", "fuel"}
}

// openProject reads the manifest of a folder.
func openProject(dir string) (*project, error) {
	file := filepath.Join(dir, manifestName)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &exitError{
			code: ExitUsage, err: fmt.Errorf("%s is not a handler project: it has no %s", dir, manifestName),
			hint: fmt.Sprintf("start one: %s handler new NAME --lang go", self()),
		}
	}
	if err != nil {
		return nil, err
	}
	p := &project{dir: dir}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(p); err != nil && !errors.Is(err, io.EOF) {
		text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), " in type cli.project", "")
		text = strings.TrimPrefix(strings.ReplaceAll(text, "unmarshal errors:\n  ", ""), "\n")
		for _, key := range laterKeys() {
			text = strings.ReplaceAll(text, "field "+key+" not found", key+" is not in this version")
		}
		return nil, usagef("%s: %s", file, text)
	}
	switch {
	case p.Type == "":
		err = errors.New("type must be given: the task type the handler serves")
	case p.Module == "":
		err = errors.New("module must be given: the file that is built")
	case filepath.IsAbs(p.Module) || !filepath.IsLocal(p.Module):
		err = fmt.Errorf("module must be a path inside the project, got %q", p.Module)
	case (p.Lang == "") == (len(p.Build) == 0):
		err = errors.New("give either lang (go or c) or build (a command and its arguments)")
	case p.Lang != "" && p.Lang != "go" && p.Lang != "c":
		err = fmt.Errorf("lang must be go or c, got %q; for another language give build, a command and its arguments", p.Lang)
	}
	if err != nil {
		return nil, usagef("%s: %w", file, err)
	}
	return p, nil
}

func (p *project) module() string { return filepath.Join(p.dir, p.Module) }

// command is how the project is built: the command, variables beside the environment's, and how to get the tool.
func (p *project) command() (args, env []string, install string) {
	switch p.Lang {
	case "go":
		// GOFLAGS is the user's; what would keep the project from building without network is overridden.
		return []string{"go", "build", "-buildmode=c-shared", "-trimpath", "-o", p.Module, "."},
			[]string{"GOOS=wasip1", "GOARCH=wasm", "GOWORK=off"}, "install Go 1.24 or newer: https://go.dev/dl"
	case "c":
		return []string{"clang", "--target=wasm32-wasi", "-mexec-model=reactor", "-O2", "-Wall", "-o", p.Module, "main.c"},
			nil, "install clang, lld and wasi-libc (Debian: apt-get install clang lld wasi-libc libclang-rt-dev-wasm32)"
	}
	return p.Build, nil, ""
}

// build builds the module. What the tool prints goes to stderr.
func (p *project) build(ctx context.Context, stderr io.Writer) error {
	args, env, install := p.command()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, stderr, stderr
	cmd.Env = append(os.Environ(), env...)
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return &exitError{code: ExitFailed, err: fmt.Errorf("cannot build: %s is not installed", args[0]), hint: install}
	case err != nil:
		return &exitError{code: ExitFailed, err: fmt.Errorf("cannot build: %s: %w", strings.Join(args, " "), err), hint: install}
	}
	if _, err := os.Stat(p.module()); err != nil {
		return fmt.Errorf("the build made no %s", p.Module)
	}
	return nil
}

// loadModule gives the bytes of a module: of a file, or of a project that is built first. typ is "" for a file.
func (a *App) loadModule(ctx context.Context, path string) (module []byte, typ string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", usagef("%w", err)
	}
	if info.IsDir() {
		p, err := openProject(path)
		if err != nil {
			return nil, "", err
		}
		if err := p.build(ctx, a.Err); err != nil {
			return nil, "", err
		}
		path, typ = p.module(), p.Type
	}
	module, err = readModule(path)
	return module, typ, err
}

// moduleMax is the largest module that any server takes.
const moduleMax = 64 << 20 // bytes

func readModule(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usagef("%w", err)
	}
	defer f.Close()
	module, err := io.ReadAll(io.LimitReader(f, moduleMax+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(module) > moduleMax {
		return nil, usagef("%s has more than %d MiB, the most that a module may have", path, moduleMax>>20)
	}
	return module, nil
}
