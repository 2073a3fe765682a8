package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// REFERENCE.md names every key with its default, and no other; its example is valid.
func TestReferenceIsComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		defaults[m[1]] = strings.ReplaceAll(strings.TrimSpace(m[2]), "`", "")
	}

	var want []string
	var walk func(s *shape, path string)
	walk = func(s *shape, path string) {
		switch {
		case s.fields != nil:
			for _, k := range s.keys() {
				walk(s.fields[k], strings.TrimPrefix(path+"."+k, "."))
			}
		case s.key != nil && s.elem.fields != nil:
			walk(s.elem, path+".*")
		case s.elem != nil && s.elem.fields != nil:
			walk(s.elem, path+"[]")
		default:
			want = append(want, path)
		}
	}
	walk(schema(), "")
	for _, key := range want {
		if _, ok := defaults[key]; !ok {
			t.Errorf("REFERENCE.md lacks %s", key)
		}
	}
	c := Default()
	shown := c.Show()
	for key, value := range defaults {
		if !slices.Contains(want, key) {
			t.Errorf("REFERENCE.md has %s, which is no key", key)
		}
		if strings.ContainsAny(key, "*[") {
			continue // no value by default
		}
		if got := valueAt(shown, strings.Split(key, ".")); got != value {
			t.Errorf("%s: REFERENCE.md says %q, config show %q", key, value, got)
		}
	}

	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	mustLoad(t, Source{File: write(t, "c.yaml", string(example[1]))})
}

// valueAt reads a scalar, or a list joined by commas.
func valueAt(n *yaml.Node, path []string) string {
	for _, key := range path {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				n = n.Content[i+1]
				break
			}
		}
	}
	if n.Kind != yaml.SequenceNode {
		return n.Value
	}
	var parts []string
	for _, e := range n.Content {
		parts = append(parts, e.Value)
	}
	return strings.Join(parts, ", ")
}
