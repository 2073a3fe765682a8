// Package scaffold writes the project of a new handler: sources, cases, and a copy of the SDK, so that it builds without network.
//
// The copies under _sdk are those of sdk/go/guest and sdk/c (another module's files cannot be embedded); `go generate` refreshes
// them and a test compares.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

//go:generate go run ./copysdk

//go:embed all:_sdk
var sdk embed.FS

//go:embed templates
var templates embed.FS

// sdkImport is the import path of the Go SDK where it comes from.
const sdkImport = "github.com/taskhost/taskhost/sdk/go/guest"

// sdkFolder is where a project has its copy.
const sdkFolder = "taskhost"

// Languages returns what Create can write, in the order they are shown.
func Languages() []string { return []string{"go", "c"} }

// Create writes a project for the type name into dir, which must not exist yet or be empty. It returns the files it wrote, without
// those of the SDK, relative to dir.
func Create(dir, name, lang string) ([]string, error) {
	if !slices.Contains(Languages(), lang) {
		return nil, fmt.Errorf("unknown language %q; there are %s", lang, strings.Join(Languages(), ", "))
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%s exists and is not empty", dir)
	}
	files, err := render(name, lang)
	if err != nil {
		return nil, err
	}
	var shown []string
	for _, f := range files {
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(f.name)), f.data); err != nil {
			return nil, err
		}
		if path.Dir(f.name) != sdkFolder && !strings.HasPrefix(f.name, sdkFolder+"/") {
			shown = append(shown, f.name)
		}
	}
	return shown, nil
}

type file struct {
	name string // with slashes, relative to the project
	data []byte
}

// render returns the files of a project, the main ones first.
func render(name, lang string) ([]file, error) {
	data := struct{ Name, Module, Import string }{name, "example.com/" + name, "example.com/" + name + "/" + sdkFolder}
	var files []file
	root := "templates/" + lang
	err := fs.WalkDir(templates, root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(templates, p)
		if err != nil {
			return err
		}
		t, err := template.New(p).Option("missingkey=error").Parse(string(text))
		if err != nil {
			return err
		}
		var b strings.Builder
		if err := t.Execute(&b, data); err != nil {
			return err
		}
		files = append(files, file{strings.TrimSuffix(strings.TrimPrefix(p, root+"/"), ".tmpl"), []byte(b.String())})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the templates: %w", err)
	}
	from := "_sdk/" + lang
	err = fs.WalkDir(sdk, from, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(sdk, p)
		if err != nil {
			return err
		}
		text = []byte(strings.ReplaceAll(string(text), sdkImport, data.Import))
		files = append(files, file{sdkFolder + "/" + strings.TrimPrefix(p, from+"/"), text})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the SDK: %w", err)
	}
	return files, nil
}

func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
