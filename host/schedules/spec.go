package schedules

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones also where the machine has none

	cron "github.com/netresearch/go-cron"

	"github.com/taskhost/taskhost/queue"
)

// Bounds of a spec.
const (
	SpecMax  = 256                  // bytes of a spec
	ZoneMax  = 64                   // bytes of the name of a time zone
	EveryMin = time.Second          // the shortest @every
	EveryMax = 366 * 24 * time.Hour // the longest @every
)

// searchYears bounds the search for the next due time. Some match is never further away: February 29 on a given weekday comes
// within 40 years.
const searchYears = 40

// Spec is a parsed schedule: the times at which it is due. The zero value is never due.
//
// Cron specs have five fields (minute, hour, day of month, month, day of week) or six (second first), in which *, lists, ranges,
// steps and English names of months and days have the usual meaning; when both days are restricted, either may match. @yearly,
// @annually, @monthly, @weekly, @daily, @midnight and @hourly are short for such specs. They mean the wall clock of their zone.
//
// On the days on which a zone changes its clock, a spec that names hours is served once for each of its times: one that is
// jumped over is due at the moment of the jump (2:30 becomes 3:00; several of them together are one), one that comes twice
// is due the first time. A spec of every hour goes on at its pace through the change, without a gap and without a double.
//
// "@every 90s" is due at whole multiples of its duration since 1970-01-01T00:00:00Z, so that every host, and every
// restart, agrees on them.
type Spec struct {
	cron   *cron.SpecSchedule // nil for every
	zone   *time.Location
	hourly bool // every hour of the day matches
	every  time.Duration
}

// Parse reads a spec. tz is the IANA name of the zone whose clock is meant, "" = UTC. An error is a *queue.InvalidError of the
// field cron or tz.
func Parse(spec, tz string) (Spec, error) {
	if err := checkText(spec); err != nil {
		return Spec{}, err
	}
	if strings.HasPrefix(spec, "@every") {
		return parseEvery(spec, tz)
	}
	zone, err := loadZone(tz)
	if err != nil {
		return Spec{}, err
	}
	parser, err := cron.TryNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom)
	if err != nil {
		return Spec{}, fmt.Errorf("make a cron parser: %w", err)
	}
	parsed, err := parser.WithMaxSearchYears(searchYears).Parse(spec)
	if err != nil {
		return Spec{}, badSpec("cannot be read: %s", err)
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Spec{}, badSpec("cannot be read: %q", spec)
	}
	// The fields are matched in UTC, which has no changes; what the zone's clock makes of it is in wall.go.
	fields.Location = time.UTC
	const everyHour = 1<<24 - 1
	s := Spec{cron: fields, zone: zone, hourly: fields.Hour&everyHour == everyHour}
	if s.cron.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Spec{}, badSpec("never matches (next: never), got %q", spec)
	}
	return s, nil
}

func badSpec(format string, args ...any) error {
	return &queue.InvalidError{Field: "cron", Reason: fmt.Sprintf(format, args...)}
}

// checkText refuses what no spec can be, before the parser sees it.
func checkText(spec string) error {
	switch {
	case spec == "":
		return badSpec(`must not be empty; give five fields such as "0 3 * * *", six with seconds, or "@every 15m"`)
	case len(spec) > SpecMax:
		return badSpec("must be at most %d bytes, got %d", SpecMax, len(spec))
	}
	if i := strings.IndexByte(spec, '='); i >= 0 {
		return badSpec("must not name a time zone (%.32q); give it as tz", spec)
	}
	for i := range len(spec) {
		c := spec[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(" *,-/?@.", c) >= 0 {
			continue
		}
		return badSpec("has a character that is not allowed at byte %d: %q", i, spec[i:i+1])
	}
	if strings.HasPrefix(spec, "@") {
		return nil
	}
	for field := range strings.FieldsSeq(spec) {
		if strings.HasPrefix(field, ",") || strings.HasSuffix(field, ",") || strings.Contains(field, ",,") {
			return badSpec("has an empty entry in the list %.40q", field)
		}
	}
	return nil
}

func parseEvery(spec, tz string) (Spec, error) {
	text := strings.TrimSpace(strings.TrimPrefix(spec, "@every"))
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || !strings.HasPrefix(spec, "@every "):
		return Spec{}, badSpec(`must be @every and a duration such as "@every 90s", got %q`, spec)
	case d < EveryMin || d > EveryMax:
		return Spec{}, badSpec("@every must be between %s and %s, got %s", EveryMin, EveryMax, text)
	case d%time.Second != 0:
		return Spec{}, badSpec("@every must be whole seconds, got %s", text)
	case tz != "":
		return Spec{}, &queue.InvalidError{Field: "tz", Reason: fmt.Sprintf("has no meaning with @every; leave it out, got %.64q", tz)}
	}
	return Spec{every: d, zone: time.UTC}, nil
}

func loadZone(tz string) (*time.Location, error) {
	bad := func(why string) error {
		return &queue.InvalidError{Field: "tz", Reason: fmt.Sprintf("must be an IANA time zone such as Europe/Rome or UTC (%s), got %.80q", why, tz)}
	}
	switch {
	case tz == "":
		return time.UTC, nil
	case len(tz) > ZoneMax:
		return nil, bad(fmt.Sprintf("at most %d bytes", ZoneMax))
	case strings.EqualFold(tz, "local"):
		return nil, bad("hosts may differ in what is local")
	}
	zone, err := time.LoadLocation(tz)
	if err != nil {
		return nil, bad("this one is not known")
	}
	return zone, nil
}

// Zone is the zone whose clock the spec means.
func (s Spec) Zone() *time.Location {
	if s.zone == nil {
		return time.UTC
	}
	return s.zone
}

// Next returns the first due time after t, in UTC with whole seconds; the zero time for a zero Spec.
func (s Spec) Next(t time.Time) time.Time {
	switch {
	case s.every > 0:
		step := int64(s.every / time.Second)
		seconds := t.Unix()
		return time.Unix(seconds-mod(seconds, step)+step, 0).UTC()
	case s.cron == nil:
		return time.Time{}
	case s.hourly:
		return s.nextInterval(t)
	}
	return s.nextNamed(t)
}

// mod is the remainder that is never negative.
func mod(a, n int64) int64 { return ((a % n) + n) % n }

// Upcoming returns the first n due times after t.
func (s Spec) Upcoming(t time.Time, n int) []time.Time {
	due := make([]time.Time, 0, n)
	for range n {
		if t = s.Next(t); t.IsZero() {
			break
		}
		due = append(due, t)
	}
	return due
}
