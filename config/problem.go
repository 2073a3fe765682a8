package config

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Source  string `json:"source"` // "taskhost.yaml:12", "TASKHOST_LISTEN", "--listen"; empty when it has no one place
	Path    string `json:"path"`   // "queues.low.weight"; empty when it concerns the whole source
	Message string `json:"message"`
}

func (p Problem) String() string {
	parts := make([]string, 0, 3)
	for _, s := range [...]string{p.Source, p.Path, p.Message} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// Error is everything that is wrong with a configuration, in the order of the source. It has at least one problem.
type Error struct {
	Problems []Problem
}

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return fmt.Sprintf("%d problems in the configuration:\n  %s", len(lines), strings.Join(lines, "\n  "))
}
