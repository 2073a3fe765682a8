package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes.
type Size int64

// Multiples of a byte.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

var sizeUnits = [...]struct { //nolint:gochecknoglobals // a table that is never written
	name string
	size Size
}{
	{"KiB", KiB}, {"MiB", MiB}, {"GiB", GiB},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
	{"B", 1},
}

// String writes the size with the largest binary unit that keeps it exact, e.g. "64MiB".
func (s Size) String() string {
	for _, u := range [...]struct {
		name string
		size Size
	}{{"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}} {
		if s >= u.size && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// ParseSize reads "64MiB", "1.5GiB", "64MB" or "1000B". A number without a unit is refused.
func ParseSize(text string) (Size, error) {
	t := strings.TrimSpace(text)
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(t, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || strings.ContainsAny(digits, "eExXpP_niNI") {
			break
		}
		bytes := n * float64(u.size)
		if !(bytes >= 0 && bytes < math.MaxInt64) || bytes != math.Trunc(bytes) {
			return 0, fmt.Errorf("must be a whole number of bytes, got %q", text)
		}
		return Size(bytes), nil
	}
	return 0, fmt.Errorf(`must be a size with a unit such as "64MiB", got %q`, text)
}

// ParseDuration reads what time.ParseDuration reads, and days in front of it: "90s", "30d", "1d12h". A number without a unit
// is refused.
func ParseDuration(text string) (time.Duration, error) {
	fail := fmt.Errorf(`must be a duration with a unit such as "90s", got %q`, text)
	t := strings.TrimSpace(text)
	days, rest, ok := strings.Cut(t, "d")
	if !ok {
		d, err := time.ParseDuration(t)
		if err != nil || t == "0" {
			return 0, fail
		}
		return d, nil
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, fail
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || d+more < d {
		return 0, fail
	}
	return d + more, nil
}

// FormatDuration writes a duration the way ParseDuration reads it, without zero units: "30d", "1h30m", "90s" as "1m30s".
func FormatDuration(d time.Duration) string {
	if d <= 0 {
		return d.String()
	}
	var b strings.Builder
	const day = 24 * time.Hour
	if d >= day {
		fmt.Fprintf(&b, "%dd", d/day)
		d %= day
	}
	if d > 0 {
		s := d.String()
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
		b.WriteString(s)
	}
	return b.String()
}

// Rate is Count jobs per Per.
type Rate struct {
	Count int           // 1–1000000
	Per   time.Duration // 1s–1d, whole milliseconds
}

// ParseRate reads "100/s", "5/m", "20/h", "1000/d", and any duration behind the slash: "3/90s".
func ParseRate(text string) (Rate, error) {
	fail := fmt.Errorf(`must be 1 to 1000000 jobs per 1s to 1d, such as "100/s", "5/m" or "3/90s", got %q`, clip(text))
	count, per, ok := strings.Cut(strings.TrimSpace(text), "/")
	if !ok {
		return Rate{}, fail
	}
	n, err := strconv.Atoi(strings.TrimSpace(count))
	if err != nil || n < 1 || n > 1_000_000 {
		return Rate{}, fail
	}
	per = strings.TrimSpace(per)
	if per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	d, err := ParseDuration(per)
	if err != nil || d < time.Second || d > 24*time.Hour || d%time.Millisecond != 0 {
		return Rate{}, fail
	}
	return Rate{Count: n, Per: d}, nil
}

// String writes the rate the way ParseRate reads it.
func (r Rate) String() string {
	for unit, per := range map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour} {
		if r.Per == per {
			return fmt.Sprintf("%d/%s", r.Count, unit)
		}
	}
	return fmt.Sprintf("%d/%s", r.Count, FormatDuration(r.Per))
}
