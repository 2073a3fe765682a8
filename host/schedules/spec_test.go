package schedules

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func utc(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UTC()
}

func mustParse(t *testing.T, spec, tz string) Spec {
	t.Helper()
	s, err := Parse(spec, tz)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCase059MalformedSpecsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ spec, tz, field, want string }{
		{"TZ=0", "", "cron", "give it as tz"},
		{"TZ=", "", "cron", "give it as tz"},
		{"CRON_TZ=UTC", "", "cron", "give it as tz"},
		{"TZ=TZ=TZ=", "", "cron", "give it as tz"},
		{"CRON_TZ=UTC 0 3 * * *", "", "cron", "give it as tz"},
		{"TZ=0 0 3 * * *", "", "cron", "give it as tz"},
		{"15/0 * * * *", "", "cron", "step"},
		{"*/0 * * * *", "", "cron", "step"},
		{"0-10/0 * * * *", "", "cron", "step"},
		{"0 0 30 2 *", "", "cron", "next: never"},
		{"0 0 31 4,6,9,11 *", "", "cron", "next: never"},
		{"@every 0s", "", "cron", "between 1s and"},
		{"@every -1s", "", "cron", "between 1s and"},
		{"@every 999ms", "", "cron", "between 1s and"},
		{"@every 1500ms", "", "cron", "whole seconds"},
		{"@every 9000h", "", "cron", "between 1s and"},
		{"@every 99999999999999999h", "", "cron", "must be @every and a duration"},
		{"@every", "", "cron", "must be @every and a duration"},
		{"@every1s", "", "cron", "must be @every and a duration"},
		{"@every 5", "", "cron", "must be @every and a duration"},
		{"@every 1h", "UTC", "tz", "has no meaning with @every"},
		{"@reboot", "", "cron", "unrecognized"},
		{"@", "", "cron", "unrecognized"},
		{strings.Repeat("*", 10_000), "", "cron", "at most 256 bytes, got 10000"},
		{"0 0 " + strings.Repeat("1,", 126) + " * *", "", "cron", "at most 256 bytes"},
		{"", "", "cron", "must not be empty"},
		{" ", "", "cron", "cannot be read"},
		{"* * * *", "", "cron", "5 to 6 fields"},
		{"* * * * * * *", "", "cron", "5 to 6 fields"},
		{"60 * * * *", "", "cron", "60"},
		{"* 24 * * *", "", "cron", "24"},
		{"* * 0 * *", "", "cron", "below minimum"},
		{"* * * 13 *", "", "cron", "13"},
		{"* * * * 8", "", "cron", "8"},
		{", * * * *", "", "cron", "empty entry"},
		{"1,,2 * * * *", "", "cron", "empty entry"},
		{"+5 * * * *", "", "cron", "not allowed at byte 0"},
		{"0\n0 * * *", "", "cron", "not allowed at byte 1"},
		{"é * * * *", "", "cron", "not allowed at byte 0"},
		{"H * * * *", "", "cron", "cannot be read"},
		{"0 0 L * *", "", "cron", "cannot be read"},
		{"0 3 * * *", "Mars/Phobos", "tz", "not known"},
		{"0 3 * * *", "Local", "tz", "hosts may differ"},
		{"0 3 * * *", "../etc/passwd", "tz", "not known"},
		{"0 3 * * *", "/etc/localtime", "tz", "not known"},
		{"0 3 * * *", strings.Repeat("a", 65), "tz", "at most 64 bytes"},
	} {
		_, err := Parse(c.spec, c.tz)
		var invalid *queue.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != c.field || !strings.Contains(invalid.Reason, c.want) {
			t.Errorf("Parse(%.40q, %q) = %v, want an error of %s with %q", c.spec, c.tz, err, c.field, c.want)
		}
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	const monday = "2026-11-30T03:04:05Z"
	for _, c := range []struct{ spec, tz, after, want string }{
		{"* * * * *", "", monday, "2026-11-30T03:05:00Z"},
		{"* * * * * *", "", monday, "2026-11-30T03:04:06Z"},
		{"0 3 * * *", "", monday, "2026-12-01T03:00:00Z"},
		{"0 3 * * *", "Europe/Rome", monday, "2026-12-01T02:00:00Z"},
		{"0 3 * * *", "Europe/Rome", "2026-07-01T00:00:00Z", "2026-07-01T01:00:00Z"},
		{"30 15 4 * * *", "", monday, "2026-11-30T04:15:30Z"},
		{"0 0 29 2 *", "", monday, "2028-02-29T00:00:00Z"},
		{"0 0 29 2 *", "", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 0 1 * MON", "", monday, "2026-12-01T00:00:00Z"}, // either day matches
		{"0 0 1 * MON", "", "2026-12-01T00:00:00Z", "2026-12-07T00:00:00Z"},
		{"0 0 * * 7", "", monday, "2026-12-06T00:00:00Z"},
		{"0 22-1 * * *", "", monday, "2026-11-30T22:00:00Z"},
		{"@hourly", "", monday, "2026-11-30T04:00:00Z"},
		{"@hourly", "Asia/Kolkata", monday, "2026-11-30T03:30:00Z"},
		{"@daily", "America/New_York", monday, "2026-11-30T05:00:00Z"},
		{"@midnight", "", monday, "2026-12-01T00:00:00Z"},
		{"@weekly", "", monday, "2026-12-06T00:00:00Z"},
		{"@monthly", "", monday, "2026-12-01T00:00:00Z"},
		{"@yearly", "", monday, "2027-01-01T00:00:00Z"},
		{"@annually", "", monday, "2027-01-01T00:00:00Z"},
		{"@every 1s", "", monday, "2026-11-30T03:04:06Z"},
		{"@every 1s", "", "2026-11-30T03:04:05.999Z", "2026-11-30T03:04:06Z"},
		{"@every 15m", "", monday, "2026-11-30T03:15:00Z"},
		{"@every 15m", "", "2026-11-30T03:15:00Z", "2026-11-30T03:30:00Z"},
		{"@every 1h30m", "", "1969-12-31T23:00:00Z", "1970-01-01T00:00:00Z"},
	} {
		if got := mustParse(t, c.spec, c.tz).Next(utc(t, c.after)); !got.Equal(utc(t, c.want)) {
			t.Errorf("%q in %q after %s is due at %s, want %s", c.spec, c.tz, c.after, got.Format(time.RFC3339), c.want)
		}
	}
	if !(Spec{}).Next(utc(t, monday)).IsZero() {
		t.Error("the zero Spec is due")
	}
}

// between lists the due times in [from, to), which are given in New York's time.
func between(t *testing.T, spec, tz, from, to string) []time.Time {
	t.Helper()
	s := mustParse(t, spec, tz)
	var due []time.Time
	for at := s.Next(utc(t, from).Add(-time.Second)); at.Before(utc(t, to)); at = s.Next(at) {
		due = append(due, at)
	}
	return due
}

func texts(list []time.Time) []string {
	var out []string
	for _, at := range list {
		out = append(out, at.Format(time.RFC3339))
	}
	return out
}

func TestCase060ChangesOfTheClock(t *testing.T) {
	t.Parallel()
	const zone = "America/New_York"
	for _, c := range []struct {
		name, spec, from, to string
		want                 []string
	}{
		// 2025-03-09: 01:59:59 EST (UTC-5) is followed by 03:00:00 EDT (UTC-4), at 07:00Z.
		{"jumped over", "30 2 * * *", "2025-03-08T05:00:00Z", "2025-03-11T04:00:00Z",
			[]string{"2025-03-08T07:30:00Z", "2025-03-09T07:00:00Z", "2025-03-10T06:30:00Z"}},
		{"in front of the jump", "30 1 * * *", "2025-03-08T05:00:00Z", "2025-03-11T04:00:00Z",
			[]string{"2025-03-08T06:30:00Z", "2025-03-09T06:30:00Z", "2025-03-10T05:30:00Z"}},
		{"at the end of the jump", "0 2,3 * * *", "2025-03-09T05:00:00Z", "2025-03-10T04:00:00Z", []string{"2025-03-09T07:00:00Z"}},
		{"several jumped over", "*/15 2 * * *", "2025-03-09T05:00:00Z", "2025-03-10T04:00:00Z", []string{"2025-03-09T07:00:00Z"}},
		{"weekly over the jump", "0 6 * * MON", "2025-03-03T05:00:00Z", "2025-03-18T04:00:00Z",
			[]string{"2025-03-03T11:00:00Z", "2025-03-10T10:00:00Z", "2025-03-17T10:00:00Z"}},
		// 2025-11-02: 01:59:59 EDT (UTC-4) is followed by 01:00:00 EST (UTC-5), at 06:00Z.
		{"comes twice", "30 1 * * *", "2025-11-01T04:00:00Z", "2025-11-04T05:00:00Z",
			[]string{"2025-11-01T05:30:00Z", "2025-11-02T05:30:00Z", "2025-11-03T06:30:00Z"}},
		{"behind the double hour", "30 2 * * *", "2025-11-01T04:00:00Z", "2025-11-04T05:00:00Z",
			[]string{"2025-11-01T06:30:00Z", "2025-11-02T07:30:00Z", "2025-11-03T07:30:00Z"}},
		{"the double hour itself", "0 1,2 * * *", "2025-11-02T04:00:00Z", "2025-11-03T05:00:00Z",
			[]string{"2025-11-02T05:00:00Z", "2025-11-02T07:00:00Z"}},
		{"weekly over the double hour", "0 6 * * MON", "2025-10-27T04:00:00Z", "2025-11-04T05:00:00Z",
			[]string{"2025-10-27T10:00:00Z", "2025-11-03T11:00:00Z"}},
	} {
		if got := texts(between(t, c.spec, zone, c.from, c.to)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q is due at\n%s\nwant\n%s", c.name, c.spec, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	// A spec of every hour keeps its pace through both days, whose lengths are 23 and 25 hours.
	for _, c := range []struct {
		spec, from, to string
		pace           time.Duration
		want           int
	}{
		{"*/15 * * * * *", "2025-03-09T05:00:00Z", "2025-03-10T04:00:00Z", 15 * time.Second, 23 * 240},
		{"*/15 * * * * *", "2025-11-02T04:00:00Z", "2025-11-03T05:00:00Z", 15 * time.Second, 25 * 240},
		{"0 * * * *", "2025-03-09T05:00:00Z", "2025-03-10T04:00:00Z", time.Hour, 23},
		{"@hourly", "2025-11-02T04:00:00Z", "2025-11-03T05:00:00Z", time.Hour, 25},
	} {
		due := between(t, c.spec, zone, c.from, c.to)
		if len(due) != c.want {
			t.Errorf("%q is due %d times from %s, want %d", c.spec, len(due), c.from, c.want)
		}
		for i := 1; i < len(due); i++ {
			if d := due[i].Sub(due[i-1]); d != c.pace {
				t.Errorf("%q: %s between %s and %s", c.spec, d, due[i-1], due[i])
			}
		}
	}
}

// Zones with other habits: a change of half an hour, one at midnight, and a day that was left out.
func TestOtherChangesOfTheClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec, zone, from, to string
		want                 []string
	}{
		{"15 2 * * *", "Australia/Lord_Howe", "2025-10-04T00:00:00Z", "2025-10-06T00:00:00Z", []string{"2025-10-04T15:30:00Z", "2025-10-05T15:15:00Z"}},
		{"45 1 * * *", "Australia/Lord_Howe", "2025-04-05T00:00:00Z", "2025-04-07T00:00:00Z", []string{"2025-04-05T14:45:00Z", "2025-04-06T15:15:00Z"}},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T00:00:00Z", "2018-11-06T00:00:00Z",
			[]string{"2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}},
		{"0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2011-12-31T12:00:00Z", []string{"2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"}},
	} {
		if got := texts(between(t, c.spec, c.zone, c.from, c.to)); !slices.Equal(got, c.want) {
			t.Errorf("%q in %s is due at\n%s\nwant\n%s", c.spec, c.zone, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// Go's bounds of zones end leap years a day early once only the rule of a zone is known.
func TestDistantLeapYears(t *testing.T) {
	t.Parallel()
	due := between(t, "0 * * * *", "America/New_York", "2040-12-29T00:00:00Z", "2041-01-03T00:00:00Z")
	if len(due) != 5*24 {
		t.Fatalf("due %d times in five days, want %d", len(due), 5*24)
	}
	if got := between(t, "30 1 * * *", "America/New_York", "2040-12-29T00:00:00Z", "2041-01-03T00:00:00Z"); len(got) != 5 {
		t.Errorf("due %d times in five days, want 5", len(got))
	}
}

func TestUpcoming(t *testing.T) {
	t.Parallel()
	got := texts(mustParse(t, "0 0 1 1 *", "").Upcoming(utc(t, "2026-11-30T00:00:00Z"), 2))
	if want := []string{"2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Whatever is given: no panic, no hang, and what is accepted is due again and again, later each time, on whole seconds.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"* * * * *", "*/15 * * * * *", "30 2 * * *", "0 0 29 2 *", "@every 1s", "@hourly", "TZ=0", "TZ=", "15/0 * * * *", "0 0 30 2 *", "@every -1s",
		"1-5,7,9-2/3 * * JAN-MAR MON,2", "? ? ? ? ?", "* * * * * * *"} {
		for _, tz := range []string{"", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"} {
			f.Add(s, tz, int64(1741500000))
			f.Add(s, tz, int64(2240521200)) // the last days of a leap year
		}
	}
	f.Fuzz(func(t *testing.T, spec, tz string, seconds int64) {
		s, err := Parse(spec, tz)
		if err != nil {
			var invalid *queue.InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("Parse(%q, %q): an error of no field: %v", spec, tz, err)
			}
			return
		}
		at := time.Unix(mod(seconds, 4_000_000_000), 0)
		for range 5 {
			next := s.Next(at)
			if !next.After(at) || next.Nanosecond() != 0 {
				t.Fatalf("%q in %q after %s: %s", spec, tz, at, next)
			}
			at = next
		}
	})
}

func BenchmarkNext(b *testing.B) {
	for _, c := range [][2]string{{"* * * * * *", ""}, {"0 3 * * *", "Europe/Rome"}, {"0 0 29 2 *", "America/New_York"}, {"0 * * * *", "America/New_York"}, {"@every 90s", ""}} {
		b.Run(c[0], func(b *testing.B) {
			s, err := Parse(c[0], c[1])
			if err != nil {
				b.Fatal(err)
			}
			at := time.Unix(1_800_000_000, 0)
			for b.Loop() {
				at = s.Next(at)
				if at.Unix() > 4_000_000_000 {
					at = time.Unix(1_800_000_000, 0)
				}
			}
		})
	}
}
