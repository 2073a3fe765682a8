package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

func parseYAML(name string, data []byte) (*node, []Problem) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return &node{source: name}, nil
	}
	if err != nil {
		return nil, []Problem{yamlProblem(name, err)}
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, []Problem{yamlProblem(name, err)}
		}
		return nil, []Problem{{Source: at(name, second.Line), Message: "the file must hold one document, found a second one"}}
	}
	c := yamlConverter{name: name}
	root := c.convert(&doc, 0)
	return root, c.problems
}

// yamlProblem takes the line out of the parser's message.
func yamlProblem(name string, err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1])
		return Problem{Source: at(name, line), Message: "not YAML: " + text[len(m[0]):]}
	}
	return Problem{Source: name, Message: "not YAML: " + text}
}

type yamlConverter struct {
	name     string
	nodes    int
	problems []Problem
}

func (c *yamlConverter) fail(line int, format string, args ...any) {
	c.problems = append(c.problems, Problem{Source: at(c.name, line), Message: fmt.Sprintf(format, args...)})
}

func (c *yamlConverter) convert(y *yaml.Node, depth int) *node {
	n := &node{source: at(c.name, y.Line)}
	c.nodes++
	if c.nodes > nodesMax || depth > 100 {
		if len(c.problems) == 0 {
			c.fail(y.Line, "the file is too deep, or its aliases expand to too much (at most %d values, 100 levels)", nodesMax)
		}
		return n
	}
	switch y.Kind {
	case yaml.DocumentNode:
		if len(y.Content) > 0 {
			return c.convert(y.Content[0], depth)
		}
	case yaml.AliasNode:
		aliased := c.convert(y.Alias, depth+1)
		n.value = aliased.value
	case yaml.MappingNode:
		members := []member{}
		for i := 0; i+1 < len(y.Content); i += 2 {
			k := y.Content[i]
			if k.Kind != yaml.ScalarNode {
				c.fail(k.Line, "a key must be plain text")
				continue
			}
			if k.ShortTag() == "!!merge" {
				c.fail(k.Line, "merge keys (<<) are not supported")
				continue
			}
			members = append(members, member{k.Value, at(c.name, k.Line), c.convert(y.Content[i+1], depth+1)})
		}
		n.value = members
	case yaml.SequenceNode:
		list := []*node{}
		for _, e := range y.Content {
			list = append(list, c.convert(e, depth+1))
		}
		n.value = list
	case yaml.ScalarNode:
		n.value = c.scalar(y)
	}
	return n
}

func (c *yamlConverter) scalar(y *yaml.Node) any {
	switch y.ShortTag() {
	case "!!str", "!!timestamp":
		return y.Value
	}
	var v any
	if err := y.Decode(&v); err != nil {
		c.fail(y.Line, "cannot read %q: %s", clip(y.Value), strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	switch v := v.(type) {
	case int:
		return int64(v)
	case nil, string, bool, int64, uint64, float64:
		return v
	}
	c.fail(y.Line, "values of the kind %s are not supported", y.ShortTag())
	return nil
}
