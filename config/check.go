package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// checker compares a tree with the schema and collects everything that is wrong.
type checker struct {
	problems []Problem
	base     string // folder that paths are relative to
}

func (c *checker) fail(source, path, format string, args ...any) {
	c.problems = append(c.problems, Problem{source, path, fmt.Sprintf(format, args...)})
}

// walk returns the value as koanf takes it: maps, lists, and scalars of their final type. false means that there is nothing
// to take.
func (c *checker) walk(s *shape, n *node, source, path string) (any, bool) {
	switch {
	case s.later:
		c.fail(source, path, "not in this version")
		return nil, false
	case s.fields != nil || s.key != nil:
		members, ok := n.value.([]member)
		if !ok {
			c.fail(n.source, path, "must be a map, got %s", n.kindName())
			return nil, false
		}
		return c.walkMap(s, members, n.source, path), true
	case s.elem != nil:
		return c.walkList(s, n, path)
	}
	v, err := s.scalar(n)
	if err != nil {
		c.fail(n.source, path, "%s", err)
		return nil, false
	}
	if file, ok := v.(string); ok && s.path {
		if file == "" {
			c.fail(n.source, path, "must not be empty")
			return nil, false
		}
		if !filepath.IsAbs(file) && c.base != "" {
			v = filepath.Join(c.base, file)
		}
	}
	return v, true
}

func (c *checker) walkMap(s *shape, members []member, source, path string) map[string]any {
	out, seen := map[string]any{}, map[string]string{}
	for _, m := range members {
		child := s.elem
		if s.fields != nil {
			child = s.fields[m.key]
		}
		full := join(path, m.key)
		if first, dup := seen[m.key]; dup {
			c.fail(m.source, full, "duplicate key, first at %s", first)
			continue
		}
		seen[m.key] = m.source
		if child == nil {
			c.unknown(s, m, path)
			continue
		}
		if s.key != nil {
			if err := s.key(m.key); err != nil {
				c.fail(m.source, full, "%s", err)
				continue
			}
		}
		if v, ok := c.walk(child, m.value, m.source, full); ok {
			name := m.key
			if s.paths && !filepath.IsAbs(name) && c.base != "" {
				name = filepath.Join(c.base, name)
			}
			out[name] = v
		}
	}
	for _, k := range s.must {
		if _, ok := seen[k]; !ok {
			c.fail(source, join(path, k), "must be given")
		}
	}
	return out
}

func (c *checker) unknown(s *shape, m member, path string) {
	hint := "; known here: " + strings.Join(s.keys(), ", ")
	if near := nearest(m.key, s.keys()); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	c.fail(m.source, join(path, m.key), "unknown key%s", hint)
}

func (c *checker) walkList(s *shape, n *node, path string) (any, bool) {
	list, ok := n.value.([]*node)
	if words, isText := n.value.(string); isText && n.text && s.words {
		ok = true
		for w := range strings.SplitSeq(words, ",") {
			list = append(list, &node{value: strings.TrimSpace(w), source: n.source, text: true})
		}
	}
	if !ok {
		c.fail(n.source, path, "must be a list, got %s", n.kindName())
		return nil, false
	}
	out := make([]any, 0, len(list))
	for i, e := range list {
		if v, ok := c.walk(s.elem, e, e.source, fmt.Sprintf("%s[%d]", path, i)); ok {
			out = append(out, v)
		}
	}
	if s.words {
		if len(list) == 0 {
			c.fail(n.source, path, "must not be empty")
		}
		for i, v := range out {
			if slices.Contains(out[:i], v) {
				c.fail(n.source, path, "%q is listed twice", v)
			}
		}
	}
	return out, true
}

// join writes a path; a key that is empty or has a dot or another odd character is quoted.
func join(path, key string) string {
	if key == "" || strings.ContainsAny(key, ". \"'[]\n\t") {
		key = fmt.Sprintf("%q", clip(key))
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Validate checks what one value alone cannot show. Load calls it; call it again after changing a Config by hand.
func (c *Config) Validate() error {
	var problems []Problem
	fail := func(path, format string, args ...any) {
		problems = append(problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if b := c.Defaults.Backoff; b.Max < b.Base {
		fail("defaults.backoff.max", "must not be shorter than defaults.backoff.base (%s), got %s", FormatDuration(b.Base), FormatDuration(b.Max))
	}
	if budget := c.Wasm.MemoryBudget; budget > 0 {
		const over = "%s is more than the whole wasm.memory_budget of %s, so no job would ever run"
		if c.Defaults.Memory > budget {
			fail("defaults.memory", over, c.Defaults.Memory, budget)
		}
		for i, h := range c.Handlers {
			if h.Memory > budget {
				fail(fmt.Sprintf("handlers[%d].memory", i), over, h.Memory, budget)
			}
		}
	}
	if slices.Contains(c.Worker.Queues, "*") && len(c.Worker.Queues) > 1 {
		fail("worker.queues", `"*" means all queues and must stand alone`)
	}
	types := map[string]int{}
	for i, h := range c.Handlers {
		if first, dup := types[h.Type]; dup {
			fail(fmt.Sprintf("handlers[%d].type", i), "%s is served by handlers[%d] already", h.Type, first)
			continue
		}
		types[h.Type] = i
	}
	native := map[string]int{}
	for i, p := range c.Plugins {
		for j, typ := range p.Types {
			path := fmt.Sprintf("plugins[%d].types[%d]", i, j)
			if first, dup := types[typ]; dup {
				fail(path, "%s is served by handlers[%d] already", typ, first)
			} else if first, dup := native[typ]; dup {
				fail(path, "%s is served by plugins[%d] already", typ, first)
			} else {
				native[typ] = i
			}
		}
	}
	if len(problems) > 0 {
		return &Error{Problems: problems}
	}
	return nil
}

// QueueNames returns the configured queues, sorted.
func (c *Config) QueueNames() []string { return slices.Sorted(maps.Keys(c.Queues)) }
