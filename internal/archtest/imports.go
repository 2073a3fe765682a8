package archtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// Package is what `go list -json` says about a package, as far as it matters here.
type Package struct {
	ImportPath                         string
	Dir                                string
	Name                               string
	Doc                                string
	GoFiles, TestGoFiles               []string
	XTestGoFiles, IgnoredGoFiles       []string
	Imports, TestImports, XTestImports []string
}

// Load lists the packages of the module in dir that match the patterns.
func Load(ctx context.Context, dir string, patterns ...string) ([]Package, error) {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"list", "-e", "-json"}, patterns)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	var packages []Package
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// CheckImports returns every import of the packages that no room allows.
func CheckImports(packages []Package, rooms []Room) (faults []string) {
	for _, p := range packages {
		path := relative(p.ImportPath)
		room, ok := roomOf(path, rooms)
		if !ok {
			faults = append(faults, fmt.Sprintf("%s has no room in internal/archtest/rules.go", path))
			continue
		}
		for _, imp := range p.Imports {
			if !room.allows(path, imp, false) {
				faults = append(faults, fmt.Sprintf("%s must not import %s", path, relative(imp)))
			}
		}
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			if !room.allows(path, imp, true) {
				faults = append(faults, fmt.Sprintf("tests of %s must not import %s", path, relative(imp)))
			}
		}
	}
	return faults
}

func relative(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, Module), "/")
}

func roomOf(path string, rooms []Room) (best Room, ok bool) {
	longest := -1
	for _, r := range rooms {
		base := strings.TrimSuffix(r.Path, "/...")
		if within(path, r.Path) && len(base) > longest {
			best, ok, longest = r, true, len(base)
		}
	}
	return best, ok
}

// within reports whether path is in a room given as "a" or "a/...".
func within(path, room string) bool {
	base, tree := strings.CutSuffix(room, "/...")
	return path == base || (tree && strings.HasPrefix(path, base+"/"))
}

func (r Room) allows(from, imp string, test bool) bool {
	first, _, _ := strings.Cut(imp, "/")
	ours := imp == Module || strings.HasPrefix(imp, Module+"/")
	if !ours && !strings.Contains(first, ".") {
		return true // the standard library
	}
	allowed, path := r.May, relative(imp)
	if !ours {
		allowed = r.Third
	}
	if test {
		allowed = slices.Concat(allowed, r.Tests)
		if path == from {
			return true // an external test package imports what it tests
		}
	}
	return slices.ContainsFunc(allowed, func(a string) bool {
		if ours {
			return within(path, a)
		}
		return imp == a || strings.HasPrefix(imp, a+"/")
	})
}
