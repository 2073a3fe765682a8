package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// DefaultTenant is whose the schedules are that name no tenant.
const DefaultTenant = "default"

// JSON is the text of one JSON value.
type JSON string

// Schedule is a job that the operator has enqueued at set times.
type Schedule struct {
	Name        string            `koanf:"name"`         // unique in its tenant; required
	Tenant      string            `koanf:"tenant"`       // whose jobs these are; default "default"
	Cron        string            `koanf:"cron"`         // five fields, six with seconds, @hourly and the like, or "@every 15m"; required
	TZ          string            `koanf:"tz"`           // IANA time zone whose clock is meant; default UTC
	Type        string            `koanf:"type"`         // required
	Queue       string            `koanf:"queue"`        // default "default"
	Payload     JSON              `koanf:"payload"`      // any value, which becomes JSON; default: no bytes
	Priority    *int              `koanf:"priority"`     // -4095–4095, default: the queue's
	CatchUp     string            `koanf:"catch_up"`     // of due times in a downtime: none (default), one, all
	Paused      bool              `koanf:"paused"`       // default false
	Timeout     time.Duration     `koanf:"timeout"`      // of one attempt; default: the handler's
	MaxAttempts int               `koanf:"max_attempts"` // default: defaults.max_attempts
	Unique      Unique            `koanf:"unique"`       // default: none
	Labels      map[string]string `koanf:"labels"`       // for searching
}

// Unique holds a key while a job is unfinished.
type Unique struct {
	Key        string `koanf:"key"`         // 1–256 bytes; required
	Until      string `koanf:"until"`       // finished (default), started
	OnConflict string `koanf:"on_conflict"` // reject (default), existing
}

func scheduleShape(later *shape) *shape {
	const day = 24 * time.Hour
	return &shape{elem: object(map[string]*shape{
		"name":         value(plainName),
		"tenant":       value(plainName),
		"cron":         value(text),
		"tz":           value(text),
		"type":         value(plainName),
		"queue":        value(plainName),
		"payload":      value(jsonValue),
		"priority":     value(integer(-4095, 4095)),
		"catch_up":     value(oneOf([]string{"none", "one", "all"})),
		"paused":       value(boolean),
		"timeout":      value(duration(10*time.Millisecond, 7*day)),
		"max_attempts": value(integer(1, 1000)),
		"unique": object(map[string]*shape{
			"key":         value(keyText),
			"until":       value(oneOf([]string{"finished", "started"})),
			"on_conflict": value(oneOf([]string{"reject", "existing"})),
		}, "key"),
		"labels":  table(labelName, value(text)),
		"headers": later, "backoff": later, "expires_in": later,
	}, "name", "cron", "type")}
}

func plainName(n *node) (any, error) {
	s, ok := n.value.(string)
	if !ok {
		return nil, wrongType("a name", n)
	}
	return s, validName(s)
}

func keyText(n *node) (any, error) {
	v, err := text(n)
	if s, ok := v.(string); ok && (s == "" || len(s) > 256) {
		return nil, fmt.Errorf("must be 1 to 256 bytes, got %d", len(s))
	}
	return v, err
}

func labelName(name string) error {
	if name == "" || len(name) > 128 {
		return fmt.Errorf("the name must be 1 to 128 bytes, got %d", len(name))
	}
	return nil
}

// payloadMax bounds the payload of a schedule, which every host keeps in memory.
const payloadMax = 64 << 10 // bytes

// jsonValue takes any value of the file and writes it as JSON, in its order.
func jsonValue(n *node) (any, error) {
	var b bytes.Buffer
	if err := writeJSON(&b, n); err != nil {
		return nil, err
	}
	if b.Len() > payloadMax {
		return nil, fmt.Errorf("must be at most %d bytes as JSON, got %d", payloadMax, b.Len())
	}
	return JSON(b.String()), nil
}

func writeJSON(b *bytes.Buffer, n *node) error {
	scalar := func(v any) error {
		enc := json.NewEncoder(b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return fmt.Errorf("cannot be written as JSON: %w", err)
		}
		b.Truncate(b.Len() - 1) // the encoder's line break
		return nil
	}
	switch v := n.value.(type) {
	case []member:
		seen := map[string]bool{}
		b.WriteByte('{')
		for i, m := range v {
			if seen[m.key] {
				return fmt.Errorf("has the key %q twice", clip(m.key))
			}
			seen[m.key] = true
			if i > 0 {
				b.WriteByte(',')
			}
			if err := scalar(m.key); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := writeJSON(b, m.value); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case []*node:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, e); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%v is no JSON number", v)
		}
	}
	return scalar(n.value)
}

// checkSchedules finds what is wrong with the schedules of a file beyond single values: names that are taken, and specs, by cron
// (see Source.Cron).
func checkSchedules(root *node, cron func(spec, tz string) (field string, err error)) []Problem {
	var problems []Problem
	taken := map[string]string{}
	for i, e := range listIn(root, "schedules") {
		path := fmt.Sprintf("schedules[%d]", i)
		field := func(key string) (string, string) {
			n := find(e, key)
			if n == nil {
				return "", e.source
			}
			s, _ := n.value.(string) // another kind was reported already
			return s, n.source
		}
		name, source := field("name")
		tenant, _ := field("tenant")
		if tenant == "" {
			tenant = DefaultTenant
		}
		full := tenant + "/" + name
		if first, dup := taken[full]; dup && name != "" {
			problems = append(problems, Problem{source, path + ".name", fmt.Sprintf("%q is the name of another schedule, at %s", name, first)})
		} else {
			taken[full] = source
		}
		spec, specSource := field("cron")
		tz, tzSource := field("tz")
		if cron == nil || spec == "" && !isText(find(e, "cron")) {
			continue
		}
		if at, err := cron(spec, tz); err != nil {
			if at == "tz" {
				specSource = tzSource
			}
			problems = append(problems, Problem{specSource, path + "." + at, err.Error()})
		}
	}
	return problems
}

func isText(n *node) bool {
	if n == nil {
		return false
	}
	_, ok := n.value.(string)
	return ok
}

// find returns the value of a key of a map, nil when there is none.
func find(n *node, key string) *node {
	members, _ := n.value.([]member) // of another kind there is none
	for _, m := range members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// listIn returns the elements of a list of the root.
func listIn(root *node, key string) []*node {
	n := find(root, key)
	if n == nil {
		return nil
	}
	list, _ := n.value.([]*node) // as above
	return list
}
