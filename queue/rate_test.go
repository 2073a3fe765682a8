package queue

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Rate{
		"100/s":     {100, time.Second},
		"5/m":       {5, time.Minute},
		" 20 / h ":  {20, time.Hour},
		"1000/d":    {1000, 24 * time.Hour},
		"3/90s":     {3, 90 * time.Second},
		"1/1500ms":  {1, 1500 * time.Millisecond},
		"1000000/s": {RateCountMax, time.Second},
	} {
		got, err := ParseRate(text)
		if err != nil || got != want {
			t.Errorf("ParseRate(%q) = %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := ParseRate(got.String()); err != nil || again != got {
			t.Errorf("ParseRate(%q) = %+v, %v, want %+v", got.String(), again, err, got)
		}
	}
	for _, text := range []string{"", "5", "/s", "5/", "5/w", "a/s", "0/s", "-1/s", "1000001/s", "1/0s", "1/999ms", "1/25h", "1/2d", "1/99999999999999999999s",
		"1/9223372036854775807ms", "0.5/s", "5/s/s"} {
		if got, err := ParseRate(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("ParseRate(%q) = %+v, %v, want an ErrInvalid", text, got, err)
		}
	}
}

func TestRateBurst(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"100/s": 11, "5/m": 1, "1/s": 1, "9/s": 1, "10/s": 2, "600/m": 2, "1000000/s": 100_001} {
		r, err := ParseRate(text)
		if err != nil || r.Burst() != want {
			t.Errorf("burst of %s = %d, %v, want %d", text, r.Burst(), err, want)
		}
	}
	if (Rate{}).Burst() != 0 {
		t.Error("no rate has a burst")
	}
}

func TestRateAsJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]QueueSettings{`{"rate":"7/90s"}`: {Rate: &Rate{7, 90 * time.Second}}, `{}`: {}} {
		b, err := json.Marshal(want)
		if err != nil || string(b) != text {
			t.Errorf("Marshal(%+v) = %s, %v, want %s", want, b, err, text)
		}
		var got QueueSettings
		if err := json.Unmarshal([]byte(text), &got); err != nil || (got.Rate == nil) != (want.Rate == nil) || got.Rate != nil && *got.Rate != *want.Rate {
			t.Errorf("Unmarshal(%s) = %+v, %v", text, got, err)
		}
	}
	var r Rate
	if err := r.UnmarshalText([]byte("fast")); err == nil {
		t.Error("a bad rate is accepted")
	}
}

func FuzzParseRate(f *testing.F) {
	for _, text := range []string{"100/s", "5/m", "3/90s", "1/1500ms", "1/24h", "x", "/", "1/18446744073709551616d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRate(text)
		if err != nil {
			return
		}
		if err := r.Validate("rate"); err != nil {
			t.Fatalf("ParseRate(%q) = %+v, which is not valid: %v", text, r, err)
		}
		if again, err := ParseRate(r.String()); err != nil || again != r {
			t.Fatalf("%q is written %q, which reads as %+v, %v", text, r.String(), again, err)
		}
		if b := r.Burst(); b < 1 || b > r.Count+1 {
			t.Fatalf("%q has a burst of %d", text, b)
		}
	})
}
