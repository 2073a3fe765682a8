// Package build compiles the sample handlers and records what they were compiled from.
package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Record says what a module was built from. Two records with equal sources were built from the same bytes; if the compiler
// is equal too, the modules are equal.
type Record struct {
	Sources  string `json:"sources"`  // sha256 over the names and contents of all inputs and the flags
	Compiler string `json:"compiler"` // first line of clang --version
	Module   string `json:"module"`   // sha256
}

// Files beside package samples.
const (
	ModuleFile = "samples.wasm"
	RecordFile = "samples.json"
)

func inputs() []string {
	return []string{
		"sdk/c/taskhost.h",
		"wasm-examples/samples/c/json.c",
		"wasm-examples/samples/c/json.h",
		"wasm-examples/samples/c/samples.c",
	}
}

// flags never contain a path that differs between machines. Custom sections are stripped: one of them names the compiler.
func flags() []string {
	return []string{
		"--target=wasm32", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2",
		"-nostdlib", "-ffreestanding", "-fno-builtin", "-I", "sdk/c",
		"-Wl,--no-entry", "-Wl,--strip-all", "-Wl,--stack-first", "-Wl,-z,stack-size=65536",
	}
}

// Sources returns the hash of everything the module is built from, the compiler apart. root is the repository's root.
func Sources(root string) (string, error) {
	h := sha256.New()
	for _, name := range inputs() {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(content), content)
	}
	fmt.Fprintf(h, "%q", flags())
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Compiler returns what clang says it is. The error wraps exec.ErrNotFound when there is no clang.
func Compiler(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "clang", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("clang --version: %w", err)
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	return string(bytes.TrimSpace(line)), nil
}

// Module compiles the sources. The linker of the same version (lld) must be installed.
func Module(ctx context.Context, root string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "taskhost-samples-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, ModuleFile)
	args := slices.Concat(flags(), []string{"-o", out})
	for _, name := range inputs() {
		if strings.HasSuffix(name, ".c") {
			args = append(args, name)
		}
	}
	cmd := exec.CommandContext(ctx, "clang", args...)
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("clang: %w\n%s", err, text)
	}
	return os.ReadFile(out)
}

// Hash is the hash a Record holds of a module.
func Hash(module []byte) string {
	sum := sha256.Sum256(module)
	return hex.EncodeToString(sum[:])
}

// Write builds the module and writes it and its record into dir.
func Write(ctx context.Context, root, dir string) (Record, error) {
	var r Record
	module, err := Module(ctx, root)
	if err != nil {
		return r, err
	}
	r.Module = Hash(module)
	if r.Sources, err = Sources(root); err != nil {
		return r, err
	}
	if r.Compiler, err = Compiler(ctx); err != nil {
		return r, err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return r, err
	}
	if err := os.WriteFile(filepath.Join(dir, ModuleFile), module, 0o644); err != nil {
		return r, err
	}
	return r, os.WriteFile(filepath.Join(dir, RecordFile), append(text, '\n'), 0o644)
}
