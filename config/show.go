package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// Show returns the configuration as a document that Load would read back, in the order of Config, with secrets hidden. It
// marshals as YAML.
func (c *Config) Show() *yaml.Node {
	return showValue(reflect.ValueOf(c.Redacted()), "")
}

// Redacted returns a copy without secrets: passwords in the store's URL, and the values of a handler's or plugin's configuration and environment whose
// name looks like that of a secret.
func (c *Config) Redacted() Config {
	out := *c
	out.Store = RedactURL(c.Store)
	out.Handlers = slices.Clone(c.Handlers)
	for i := range out.Handlers {
		out.Handlers[i].Config = redactValues(out.Handlers[i].Config)
	}
	out.Plugins = slices.Clone(c.Plugins)
	for i := range out.Plugins {
		out.Plugins[i].Config, out.Plugins[i].Env = redactValues(out.Plugins[i].Config), redactValues(out.Plugins[i].Env)
	}
	return out
}

func redactValues(m map[string]string) map[string]string {
	values := maps.Clone(m)
	for k, v := range values {
		if looksSecret(k) {
			v = "***"
		}
		values[k] = RedactURL(v)
	}
	return values
}

// showValue turns a value into a node; nil for what is not set.
func showValue(v reflect.Value, key string) *yaml.Node {
	switch x := v.Interface().(type) {
	case time.Duration:
		return word(showDuration(x, key))
	case Size:
		if x == 0 && key == "memory_budget" {
			return word("auto")
		}
		return word(x.String())
	case Rate:
		return word(x.String())
	case JSON:
		return jsonNode(x)
	case Count:
		if x == Auto {
			return word("auto")
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("koanf")
			if v.Field(i).IsZero() && isListed(v.Type()) {
				continue // it has the default
			}
			if child := showValue(v.Field(i), name); child != nil {
				n.Content = append(n.Content, word(name), child)
			}
		}
		return n
	case reflect.Map:
		if v.Len() == 0 {
			return nil
		}
		n := &yaml.Node{Kind: yaml.MappingNode}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int {
			if a.String() < b.String() {
				return -1
			}
			return 1
		})
		for _, k := range keys {
			n.Content = append(n.Content, scalarNode(k.String()), showValue(v.MapIndex(k), ""))
		}
		return n
	case reflect.Slice:
		if v.Len() == 0 {
			return nil
		}
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n.Content = append(n.Content, showValue(v.Index(i), ""))
		}
		return n
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return showValue(v.Elem(), key)
	default:
		return scalarNode(v.Interface())
	}
}

// isListed tells the elements of lists, which show only what is set.
func isListed(t reflect.Type) bool {
	return t == reflect.TypeFor[Handler]() || t == reflect.TypeFor[Plugin]() || t == reflect.TypeFor[Schedule]() || t == reflect.TypeFor[Unique]()
}

// jsonNode reads JSON as the YAML it is.
func jsonNode(text JSON) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) != 1 {
		return scalarNode(string(text)) // not from Load, which takes nothing else
	}
	return doc.Content[0]
}

func showDuration(d time.Duration, key string) string {
	switch {
	case key == "dead" && d == RetentionForever:
		return "forever"
	case key == "succeeded" && d == 0:
		return "none"
	case key == "charge_by_time" && d == 0:
		return "off"
	}
	return FormatDuration(d)
}

func word(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// scalarNode lets the encoder choose the quotes.
func scalarNode(v any) *yaml.Node {
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		panic(fmt.Sprintf("encode a %T: %v", v, err)) // scalars always encode
	}
	return &n
}
