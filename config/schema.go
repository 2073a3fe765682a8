package config

import (
	"maps"
	"slices"
	"time"
)

// shape says what may stand at one place of the tree. Exactly one of fields, elem (with or without key) and scalar is set, or
// later.
type shape struct {
	fields map[string]*shape       // a map with these keys
	key    func(name string) error // a map with free keys of this kind, and values elem
	elem   *shape                  // of a list when key is nil
	words  bool                    // a list of scalars that a variable or a flag may give, separated by commas
	scalar scalar
	path   bool // a file or folder, relative to where it was written
	paths  bool // the free keys are such
	later  bool // a key of the design that does nothing yet: refused as such
	must   []string
}

// schema is every key there is. Its twin is Config; a test compares the two.
func schema() *shape {
	const day = 24 * time.Hour
	later := &shape{later: true}
	weight := value(number(0.001, 10000))
	runningCap := value(integer(1, 1_000_000))
	return object(map[string]*shape{
		"store":    value(storeName),
		"data_dir": filePath(),
		"listen":   value(address),
		"roles":    wordList(oneOf([]string{RoleAPI, RoleWorker}, "scheduler", "ui")),
		"worker": object(map[string]*shape{
			"concurrency":  value(count(100_000)),
			"queues":       wordList(queueOrAll),
			"lease":        value(duration(time.Second, time.Hour)),
			"drain":        value(duration(0, time.Hour)),
			"handler_wait": value(duration(time.Second, 7*day)),
		}),
		"wasm": object(map[string]*shape{
			"runners":       value(count(1024)),
			"slots":         value(count(1024)),
			"isolation":     value(oneOf([]string{"shared"}, "tenant", "job", "inline")),
			"sandbox":       value(oneOf([]string{"off", SandboxBest, "basic", "standard", "strict"})),
			"memory_budget": value(sizeOrAuto(64*KiB, 1<<50)),
		}),
		"defaults": object(map[string]*shape{
			"timeout":      value(duration(10*time.Millisecond, 7*day)),
			"max_attempts": value(integer(1, 1000)),
			"backoff": object(map[string]*shape{
				"base":   value(duration(time.Millisecond, day)),
				"max":    value(duration(time.Millisecond, 30*day)),
				"jitter": value(oneOf([]string{"full", "none"})),
			}),
			"memory":  value(size(64*KiB, 4*GiB)),
			"payload": value(size(KiB, 64*MiB)),
			"result":  value(size(KiB, 64*MiB)),
			"fuel":    value(integer(0, 1e15)),
		}),
		"scheduling": object(map[string]*shape{
			"max_consecutive_high": value(integer(0, 1_000_000)),
			"charge_by_time":       value(wholeMillis(durationOr("off", 0, time.Millisecond, time.Hour))),
		}),
		"retention": object(map[string]*shape{
			"succeeded":  value(durationOr("none", 0, time.Second, 3650*day)),
			"dead":       value(durationOr("forever", RetentionForever, time.Second, 3650*day)),
			"count":      value(integer(0, 1e12)),
			"dead_count": value(integer(0, 1e12)),
			"logs":       value(oneOf([]string{"failed", "all", "none"})),
		}),
		"queues": table(validName, object(map[string]*shape{
			"weight":      weight,
			"priority":    value(integer(-4095, 4095)),
			"paused":      value(boolean),
			"max_running": runningCap,
			"max_per_key": runningCap,
			"rate":        value(rate),
		})),
		"tenants": table(validName, object(map[string]*shape{
			"weight":      weight,
			"max_running": runningCap,
			"plan":        later, "pool": later, "http_allow": later, "keys": later,
		})),
		"handlers": {elem: object(map[string]*shape{
			"type":    value(handlerType),
			"wasm":    filePath(),
			"memory":  value(size(64*KiB, 4*GiB)),
			"timeout": value(duration(10*time.Millisecond, 7*day)),
			"config":  table(configName, value(text)),
			"fuel":    value(integer(0, 1e15)),
			"tenant":  later, "secrets": later, "instance": later, "http_allow": later, "retry": later,
		}, "type", "wasm")},
		"plugins": {elem: pluginShape()},
		"log": object(map[string]*shape{
			"level":  value(oneOf([]string{"debug", "info", "warn", "error"})),
			"format": value(oneOf([]string{"auto", "text", "json"})),
		}),
		"tls": later, "admin_listen": later, "public_url": later, "trusted_proxies": later, "modules": later,
		"plans": later, "schedules": scheduleShape(later), "secrets": later, "webhooks": later, "revision": later,
	})
}

func pluginShape() *shape {
	files := table(fileName, value(sha256Text))
	files.paths = true
	return object(map[string]*shape{
		"types":         wordList(handlerType),
		"command":       filePath(),
		"args":          {elem: value(text)},
		"sha256":        value(sha256Text),
		"files":         files,
		"env":           table(configName, value(text)),
		"dir":           filePath(),
		"instances":     value(integer(1, 64)),
		"concurrency":   value(integer(1, 1024)),
		"mtls":          value(boolean),
		"timeout":       value(duration(10*time.Millisecond, 7*24*time.Hour)),
		"grace":         value(duration(10*time.Millisecond, 8*time.Second)),
		"silence":       value(duration(time.Second, time.Hour)),
		"start_timeout": value(duration(100*time.Millisecond, 10*time.Minute)),
		"config":        table(configName, value(text)),
	}, "types", "command")
}

func object(fields map[string]*shape, must ...string) *shape {
	return &shape{fields: fields, must: must}
}
func table(key func(string) error, elem *shape) *shape { return &shape{key: key, elem: elem} }
func value(s scalar) *shape                            { return &shape{scalar: s} }
func filePath() *shape                                 { return &shape{scalar: text, path: true} }
func wordList(s scalar) *shape                         { return &shape{elem: value(s), words: true} }

// keys are the names that act now, sorted.
func (s *shape) keys() []string {
	var names []string
	for _, k := range slices.Sorted(maps.Keys(s.fields)) {
		if !s.fields[k].later {
			names = append(names, k)
		}
	}
	return names
}

// leaves calls f for the path of every scalar and list of words that a variable can set; a free key is "*".
func (s *shape) leaves(path []string, f func(path []string, leaf *shape)) {
	switch {
	case s.later:
	case s.fields != nil:
		for _, k := range s.keys() {
			s.fields[k].leaves(append(slices.Clone(path), k), f)
		}
	case s.key != nil:
		s.elem.leaves(append(slices.Clone(path), "*"), f)
	case s.scalar != nil || s.words:
		f(path, s)
	}
}
