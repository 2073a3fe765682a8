package cli

import (
	"slices"
	"testing"
)

func TestHeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		message, want string
		trace         []string
	}{
		{"name is missing", `trap "name is missing"`, nil},
		{"integer divide by zero\n  at scale (main.c:41:9)\n  at taskhost_handle\x1b[31m", `trap "integer divide by zero" at scale (main.c:41:9)`, []string{`at taskhost_handle\x1b[31m`}},
		{"panic: x\ngoroutine 1\nmain.go", `trap "panic: x"`, []string{"goroutine 1", "main.go"}},
	} {
		if got := headline("trap", c.message); got != c.want {
			t.Errorf("%q: %s, want %s", c.message, got, c.want)
		}
		if got := trace(c.message); !slices.Equal(got, c.trace) {
			t.Errorf("%q: trace %q, want %q", c.message, got, c.trace)
		}
	}
}
