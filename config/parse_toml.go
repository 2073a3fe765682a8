package config

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML reads the values with the decoder, which also finds duplicate keys, and the lines of the keys with the parser
// below it.
func parseTOML(name string, data []byte) (*node, []Problem) {
	var values map[string]any
	if err := toml.Unmarshal(data, &values); err != nil {
		line := 0
		var syntax *toml.DecodeError
		if errors.As(err, &syntax) {
			line, _ = syntax.Position()
		} else if _, repeated := tomlLines(data); repeated > 0 { // "already defined" comes without a position
			line = repeated
		}
		return nil, []Problem{{Source: at(name, line), Message: "not TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}}
	}
	lines, _ := tomlLines(data)
	c := tomlConverter{name: name, lines: lines}
	return c.convert(values, "", at(name, 1)), nil
}

type tomlConverter struct {
	name  string
	lines map[string]int
}

func (c *tomlConverter) convert(v any, path, source string) *node {
	if line, ok := c.lines[path]; ok {
		source = at(c.name, line)
	}
	n := &node{source: source}
	switch v := v.(type) {
	case map[string]any:
		members := []member{}
		keys := slices.Collect(maps.Keys(v))
		slices.SortFunc(keys, func(a, b string) int { // in the order of the file
			if d := c.lines[tomlPath(path, a)] - c.lines[tomlPath(path, b)]; d != 0 {
				return d
			}
			return strings.Compare(a, b)
		})
		for _, k := range keys {
			child := c.convert(v[k], tomlPath(path, k), source)
			members = append(members, member{k, child.source, child})
		}
		n.value = members
	case []any:
		list := []*node{}
		for i, e := range v {
			list = append(list, c.convert(e, tomlPath(path, strconv.Itoa(i)), source))
		}
		n.value = list
	case string, bool, int64, float64:
		n.value = v
	default: // dates and times, which no key takes
		text, _ := toml.Marshal(map[string]any{"v": v})
		n.value = strings.TrimSpace(strings.TrimPrefix(string(text), "v ="))
	}
	return n
}

// tomlPath joins with a byte that a key seldom has; a wrong line is all that could come of it.
func tomlPath(path, key string) string { return path + "\x00" + key }

// tomlLines maps the path of every key to the line of its first appearance; repeated is the line of the first key or table
// that was defined before, 0 for none.
func tomlLines(data []byte) (lines map[string]int, repeated int) {
	lines, elements := map[string]int{}, map[string]int{}
	defined := map[string]bool{}
	define := func(path string, offset uint32) {
		if defined[path] && repeated == 0 {
			repeated = 1 + bytes.Count(data[:offset], []byte("\n"))
		}
		defined[path] = true
	}
	note := func(path string, offset uint32) {
		if _, ok := lines[path]; !ok {
			lines[path] = 1 + bytes.Count(data[:offset], []byte("\n"))
		}
	}
	// keyPath walks a dotted key below prefix.
	keyPath := func(prefix string, it unstable.Iterator) string {
		for it.Next() {
			if n := elements[prefix]; n > 0 { // below a list a header means its last element
				prefix = tomlPath(prefix, strconv.Itoa(n-1))
			}
			prefix = tomlPath(prefix, string(it.Node().Data))
			note(prefix, it.Node().Raw.Offset)
		}
		return prefix
	}
	var p unstable.Parser
	p.Reset(data)
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table:
			table = keyPath("", e.Key())
			define(table, firstKey(e).Raw.Offset)
		case unstable.ArrayTable:
			list := keyPath("", e.Key())
			table = tomlPath(list, strconv.Itoa(elements[list]))
			elements[list]++
			for it := e.Key(); it.Next(); {
				note(table, it.Node().Raw.Offset)
			}
		case unstable.KeyValue:
			path := keyPath(table, e.Key())
			define(path, firstKey(e).Raw.Offset)
			tomlValueLines(path, e.Value(), keyPath)
		default:
		}
	}
	return lines, repeated
}

func firstKey(e *unstable.Node) *unstable.Node {
	it := e.Key()
	it.Next()
	return it.Node()
}

// tomlValueLines goes into inline tables and arrays.
func tomlValueLines(path string, v *unstable.Node, keyPath func(string, unstable.Iterator) string) {
	switch v.Kind {
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			kv := it.Node()
			tomlValueLines(keyPath(path, kv.Key()), kv.Value(), keyPath)
		}
	case unstable.Array:
		i := 0
		for it := v.Children(); it.Next(); i++ {
			tomlValueLines(tomlPath(path, strconv.Itoa(i)), it.Node(), keyPath)
		}
	default:
	}
}
