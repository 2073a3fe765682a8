package queue

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestValidName(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "9", "image.resize", "A-b_c.D", strings.Repeat("x", NameMax)} {
		if err := ValidName("queue", good); err != nil {
			t.Errorf("ValidName(%q): %v", good, err)
		}
	}
	for _, bad := range []string{"", ".a", "-a", "_a", "a b", "a/b", "a:b", "{q}", "ä", "a\x00", "a\n", "<img>", strings.Repeat("x", NameMax+1)} {
		var invalid *InvalidError
		if err := ValidName("queue", bad); !errors.As(err, &invalid) || invalid.Field != "queue" || !errors.Is(err, ErrInvalid) {
			t.Errorf("ValidName(%q) = %v, want an error of queue", bad, err)
		}
	}
}

func FuzzValidName(f *testing.F) {
	for _, s := range []string{"a", "", ".a", "a b", "q{1}", "ü", strings.Repeat("a", 129)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if ValidName("queue", s) != nil {
			return
		}
		if s == "" || len(s) > NameMax || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != "" || strings.IndexByte("._-", s[0]) >= 0 {
			t.Fatalf("ValidName accepts %q", s)
		}
	})
}

func TestValidWeight(t *testing.T) {
	t.Parallel()
	for w, good := range map[float64]bool{WeightMin: true, 1: true, 1.5: true, WeightMax: true, 0: false, -1: false, 0.0009: false,
		10001: false, 1e9: false, math.Inf(1): false, math.Inf(-1): false} {
		if err := ValidWeight("w", w); (err == nil) != good {
			t.Errorf("ValidWeight(%v) = %v", w, err)
		}
	}
	if ValidWeight("w", math.NaN()) == nil {
		t.Error("ValidWeight accepts NaN")
	}
}
