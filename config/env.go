package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// EnvPrefix begins the variables that set a key.
const EnvPrefix = "TASKHOST_"

// Variables with the prefix that set no key of the configuration.
const (
	EnvServer = "TASKHOST_SERVER"  // of the client commands
	EnvAPIKey = "TASKHOST_API_KEY" // of the client commands
	EnvFile   = "TASKHOST_CONFIG"  // names the configuration file
)

// serviceLink matches what Kubernetes adds for a service called taskhost or taskhost-…:
// https://kubernetes.io/docs/tutorials/services/connect-applications-service/#environment-variables
var serviceLink = regexp.MustCompile( //nolint:gochecknoglobals // compiled once, never written
	`^TASKHOST_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// servicePort is the one link whose name alone does not tell; its value does.
var servicePort = regexp.MustCompile(`^TASKHOST_([A-Z0-9_]+_)?PORT$`) //nolint:gochecknoglobals // as above

func isServiceLink(name, val string) bool {
	if serviceLink.MatchString(name) {
		return true
	}
	proto, _, _ := strings.Cut(val, "://")
	return servicePort.MatchString(name) && (proto == "tcp" || proto == "udp" || proto == "sctp")
}

// envTree turns variables ("NAME=value") into a tree. file is the tree of the file, or nil: its names are matched first.
func envTree(environ []string, s *shape, file *node) (root *node, skipped []string, problems []Problem) {
	root = &node{value: []member{}, source: "the environment"}
	for _, kv := range slices.Sorted(slices.Values(environ)) {
		name, val, _ := strings.Cut(kv, "=")
		rest, ok := strings.CutPrefix(name, EnvPrefix)
		if !ok || name == EnvServer || name == EnvAPIKey || name == EnvFile {
			continue
		}
		if isServiceLink(name, val) {
			skipped = append(skipped, name)
			continue
		}
		path, err := envPath(strings.Split(rest, "__"), s, file)
		if err != nil {
			problems = append(problems, Problem{Source: name, Message: err.Error()})
			continue
		}
		insert(root, path, &node{value: val, source: name, text: true})
	}
	return root, skipped, problems
}

// envPath finds the key that a variable names.
func envPath(levels []string, s *shape, file *node) ([]string, error) {
	var path []string
	at := s
	for i, level := range levels {
		var found string
		switch {
		case at.fields != nil:
			found = strings.ToLower(level)
			if level != strings.ToUpper(level) || at.fields[found] == nil {
				return nil, unmatched(levels, s)
			}
			at = at.fields[found]
		case at.key != nil:
			var err error
			if found, err = envName(level, file); err != nil {
				return nil, err
			}
			at = at.elem
		default:
			return nil, unmatched(levels, s)
		}
		path, file = append(path, found), child(file, found)
		if at.elem != nil && at.key == nil && !at.words {
			return nil, fmt.Errorf("%s can be set in the file only", strings.Join(path, "."))
		}
		if at.later && i < len(levels)-1 {
			return nil, fmt.Errorf("%s: not in this version", strings.Join(path, "."))
		}
	}
	if at.fields != nil || at.key != nil {
		return nil, unmatched(levels, s)
	}
	return path, nil
}

// envName finds the name of the file that looks like level in capitals; a new one is level in lower case.
func envName(level string, file *node) (string, error) {
	var found []string
	if file != nil {
		members, _ := file.value.([]member)
		for _, m := range members {
			if fold(m.key) == fold(level) && !slices.Contains(found, m.key) {
				found = append(found, m.key)
			}
		}
	}
	switch len(found) {
	case 0:
		return strings.ToLower(level), nil
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("could mean %s; set it in the file", strings.Join(found, " or "))
}

func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
}

// unmatched names the variable that comes nearest.
func unmatched(levels []string, s *shape) error {
	single := strings.Join(levels, "_")
	var candidates []string
	var exact string
	s.leaves(nil, func(path []string, _ *shape) {
		names := slices.Clone(path)
		for i, p := range path {
			if p != "*" {
				names[i] = strings.ToUpper(p)
				continue
			}
			// A name in the middle, written with single underscores.
			before, after := strings.ToUpper(strings.Join(path[:i], "_"))+"_", "_"+strings.ToUpper(strings.Join(path[i+1:], "_"))
			if middle, ok := strings.CutPrefix(single, before); ok {
				if middle, ok = strings.CutSuffix(middle, after); ok && middle != "" {
					names[i] = strings.Trim(middle, "_")
					exact = strings.Join(slices.Concat(names[:i+1], upper(path[i+1:])), "__")
					return
				}
			}
			names[i] = "NAME"
		}
		candidates = append(candidates, strings.Join(names, "__"))
	})
	if exact == "" {
		best, least := "", int(^uint(0)>>1)
		for _, c := range candidates {
			if d := distance(strings.Join(levels, "__"), c); d < least {
				best, least = c, d
			}
		}
		exact = best
	}
	return fmt.Errorf("matches no setting; the nearest is %s%s (two underscores between levels)", EnvPrefix, exact)
}

func upper(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.ToUpper(w)
	}
	return out
}

func child(n *node, key string) *node {
	if n == nil {
		return nil
	}
	members, _ := n.value.([]member)
	for _, m := range members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// insert puts a value at a path, making the maps above it.
func insert(root *node, path []string, v *node) {
	for i, key := range path {
		members, _ := root.value.([]member)
		next := child(root, key)
		if next == nil || i == len(path)-1 {
			next = v
			if i < len(path)-1 {
				next = &node{value: []member{}, source: v.source}
			}
			root.value = append(members, member{key, v.source, next})
		}
		root = next
	}
}
