package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// FileMax is the largest configuration file that is read.
const FileMax = 1 << 20 // bytes

// nodesMax bounds what aliases of a YAML file may expand to.
const nodesMax = 100_000

// node is a value with the place it was written at. value is one of []member, []*node, string, bool, int64, uint64,
// float64 or nil.
type node struct {
	value  any
	source string // as Problem.Source
	text   bool   // from a variable or a flag: everything is a string, to be read as its key asks
}

type member struct {
	key    string
	source string
	value  *node
}

// kindName names what a file holds where something else was meant.
func (n *node) kindName() string {
	switch v := n.value.(type) {
	case []member:
		return "a map"
	case []*node:
		return "a list"
	case string:
		return fmt.Sprintf("the string %q", clip(v))
	case nil:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// parseFile reads a document into a tree. Syntax errors come back as problems with their line.
func parseFile(name string, data []byte) (*node, []Problem) {
	if len(data) > FileMax {
		return nil, []Problem{{Source: name, Message: fmt.Sprintf("the file has %d bytes, at most %d are read", len(data), FileMax)}}
	}
	var (
		root     *node
		problems []Problem
	)
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".yaml", ".yml":
		root, problems = parseYAML(name, data)
	case ".toml":
		root, problems = parseTOML(name, data)
	case ".json":
		root, problems = parseJSON(name, data)
	default:
		return nil, []Problem{{Source: name, Message: fmt.Sprintf("the extension must be .yaml, .yml, .toml or .json, got %q", ext)}}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	members, ok := root.value.([]member)
	switch {
	case root.value == nil || ok && len(members) == 0:
		return nil, []Problem{{Source: name, Message: "the file sets nothing; to run with the defaults, leave the file out"}}
	case !ok:
		return nil, []Problem{{Source: root.source, Message: "must be a map of settings, got " + root.kindName()}}
	}
	return root, nil
}

func at(name string, line int) string {
	if line < 1 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, line)
}
