package lockdown

import (
	"fmt"
	"strings"
)

// Level is how far a process is locked down. Each level includes those before it.
type Level int

// The levels.
const (
	Off      Level = iota // nothing beyond resource limits and an empty environment
	Basic                 // no_new_privs, no capabilities, rlimits, a seccomp allow-list
	Standard              // and Landlock: no files beyond the named folders, no TCP, no abstract sockets, no signals to others
	Strict                // and namespaces of its own: user, pid, net, ipc, uts, mount
)

var levelNames = []string{"off", "basic", "standard", "strict"}

// String is the name of the level, as in the configuration.
func (l Level) String() string {
	if l < Off || l > Strict {
		return fmt.Sprintf("level %d", int(l))
	}
	return levelNames[l]
}

// ParseLevel reads the name of a level: off, basic, standard or strict.
func ParseLevel(name string) (Level, error) {
	for i, n := range levelNames {
		if n == name {
			return Level(i), nil
		}
	}
	return Off, fmt.Errorf("sandbox level %q: allowed are %s", name, strings.Join(levelNames, ", "))
}

// The layers of a Report, in the order they are put on.
const (
	LayerNamespaces   = "namespaces"
	LayerRlimits      = "rlimits"
	LayerCapabilities = "capabilities"
	LayerNoNewPrivs   = "no_new_privs"
	LayerLandlock     = "landlock"
	LayerSeccomp      = "seccomp"
)

// Layer is one part of the lock-down.
type Layer struct {
	Name   string `json:"name"`
	Holds  bool   `json:"holds"`
	Detail string `json:"detail"`           // what was done, or why it was not
	Remedy string `json:"remedy,omitempty"` // what to change, if it does not hold
}

// Report is how far a process was locked down.
type Report struct {
	Level  string  `json:"level"`
	Layers []Layer `json:"layers"`
}

// Reached is the level as a number.
func (r Report) Reached() Level {
	for i, n := range levelNames {
		if n == r.Level {
			return Level(i)
		}
	}
	return Off
}

// Missing says in one line what keeps a level from being reached; empty if nothing does.
func (r Report) Missing(want Level) string {
	var parts []string
	for _, l := range r.Layers {
		if !l.Holds && neededFor(l.Name) <= want {
			part := l.Name + ": " + l.Detail
			if l.Remedy != "" {
				part += " (" + l.Remedy + ")"
			}
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// neededFor is the least level a layer belongs to.
func neededFor(layer string) Level {
	switch layer {
	case LayerNamespaces:
		return Strict
	case LayerLandlock:
		return Standard
	}
	return Basic
}

// reach computes the level from the layers.
func (r *Report) reach() {
	level := Strict
	for _, l := range r.Layers {
		if !l.Holds {
			level = min(level, neededFor(l.Name)-1)
		}
	}
	if len(r.Layers) == 0 {
		level = Off
	}
	r.Level = level.String()
}

// BelowError says that a process could not be locked down as far as it must be.
type BelowError struct {
	Want   Level
	Report Report
}

func (e *BelowError) Error() string {
	return fmt.Sprintf("sandbox level %s is required, this machine reaches %s: %s", e.Want, e.Report.Level, e.Report.Missing(e.Want))
}
