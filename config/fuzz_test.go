package config

import (
	"errors"
	"strings"
	"testing"
)

// Whatever the bytes are: no panic, and either problems that name the file or a configuration that shows and reads back.
func FuzzLoadFile(f *testing.F) {
	for _, seed := range []struct{ ext, text string }{
		{"yaml", fullYAML}, {"toml", fullTOML}, {"json", fullJSON},
		{"yaml", "a: &a [*a]"}, {"yaml", "queues: {low: {weight: 1e400}}"}, {"yaml", "? [a]\n: b"}, {"yaml", "!!binary x: !!set {}"},
		{"json", `{"a":1e999}`}, {"json", "[[[["}, {"toml", "[[handlers]]\n[handlers.config]\n[[handlers]]\nx=1"}, {"toml", "a.b.c=1\n[a]\n"},
		{"toml", "a=1979-05-27T07:32:00Z"},
	} {
		f.Add(seed.ext, []byte(seed.text))
	}
	f.Fuzz(func(t *testing.T, ext string, data []byte) {
		if ext != "yaml" && ext != "toml" && ext != "json" {
			t.Skip()
		}
		name := "f." + ext
		root, wrong := parseFile(name, data)
		l, err := load(Source{File: name}, root, wrong)
		var e *Error
		switch {
		case errors.As(err, &e):
			for _, p := range e.Problems {
				if !strings.HasPrefix(p.Source, name) || p.Message == "" {
					t.Fatalf("a problem without a place: %+v", p)
				}
			}
		case err != nil:
			t.Fatalf("an error that is not a problem of the file: %v", err)
		default:
			text := marshal(t, l.Config.Show())
			shown, wrong := parseFile("shown.yaml", []byte(text))
			if _, err := load(Source{File: "shown.yaml"}, shown, wrong); err != nil && !strings.Contains(text, "***") {
				t.Fatalf("what is shown does not read back: %v\n%s", err, text)
			}
		}
	})
}

func FuzzEnviron(f *testing.F) {
	f.Add("TASKHOST_QUEUES__LOW__WEIGHT", "3")
	f.Add("TASKHOST___", "")
	f.Add("TASKHOST_QUEUES____WEIGHT", "1")
	f.Add("TASKHOST_PORT", "tcp://x")
	f.Fuzz(func(t *testing.T, name, val string) {
		_, err := Load(Source{Environ: []string{name + "=" + val}})
		if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
	})
}
