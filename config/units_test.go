package config

import (
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

func marshal(t *testing.T, n *yaml.Node) string {
	t.Helper()
	text, err := yaml.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{"64MiB": 64 * MiB, "1.5GiB": 3 * GiB / 2, "1000B": 1000, "2 kB": 2000, "1MB": 1e6, "0B": 0} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "64", "MiB", "-1B", "1e3B", "0x10B", "infGiB", "nanB", "1.5B", "99999999999GiB", "1_0B", "64mib"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q: got %d", text, got)
		}
	}
	for want, s := range map[string]Size{"64MiB": 64 * MiB, "1GiB": GiB, "1000B": 1000, "1KiB": KiB, "0B": 0} {
		if s.String() != want {
			t.Errorf("got %s, want %s", s, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "30d": 30 * day, "1d12h": 36 * time.Hour, "0s": 0, "250ms": 250 * time.Millisecond,
	} {
		got, err := ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("%q: got %s, %v", text, got, err)
		}
		if again, err := ParseDuration(FormatDuration(got)); err != nil || again != got {
			t.Errorf("%q: formatted as %q, which reads as %s, %v", text, FormatDuration(got), again, err)
		}
	}
	for _, text := range []string{"", "0", "15", "d", "-1d", "1d-2h", "99999d9999999h", "1.5d", "s"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q: got %s", text, got)
		}
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"qeues", "queues", 1}, {"ab", "ba", 1}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestParseRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Rate{"100/s": {100, time.Second}, "5/m": {5, time.Minute}, " 20 / h ": {20, time.Hour}, "7/d": {7, 24 * time.Hour},
		"3/90s": {3, 90 * time.Second}, "1/1500ms": {1, 1500 * time.Millisecond}} {
		got, err := ParseRate(text)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
		if again, err := ParseRate(got.String()); err != nil || again != got {
			t.Errorf("%q is written %q: got %+v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "5", "/s", "5/", "5/w", "0/s", "-1/s", "1000001/s", "1/999ms", "1/25h", "1/1.5ms", "a/s", "5/s/s", "5/-1s"} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}
