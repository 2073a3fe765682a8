package schedules

import "time"

// A wall time is what a clock of the zone shows, written as if it were UTC: a calendar without gaps and doubles, in which the
// fields of a spec are matched.

// wallOf is what the clock of the zone shows at t.
func wallOf(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// nextNamed serves each matching wall time once. instantOf never goes back, and is at most t for the wall time of t, so nothing
// before that can be due after t.
func (s Spec) nextNamed(t time.Time) time.Time {
	for wall := wallOf(t, s.zone); ; {
		if wall = s.cron.Next(wall); wall.IsZero() {
			return time.Time{}
		}
		if due := instantOf(wall, s.zone); due.After(t) {
			return due
		}
	}
}

// instantOf is when the clock of the zone first shows wall; for one that it jumps over, the moment of the jump.
func instantOf(wall time.Time, zone *time.Location) time.Time {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	start, end := t.ZoneBounds()
	switch shown := wallOf(t, zone); {
	case shown.After(wall): // jumped over; t is behind the jump
		return start.UTC()
	case shown.Before(wall): // jumped over; t is in front of it
		return end.UTC()
	case start.IsZero():
		return t.UTC()
	}
	_, before := start.Add(-time.Second).In(zone).Zone()
	if earlier := wall.Add(-time.Duration(before) * time.Second); earlier.Before(start) {
		return earlier.UTC()
	}
	return t.UTC()
}

// nextInterval goes by elapsed time: within one offset of the zone after the other.
func (s Spec) nextInterval(t time.Time) time.Time {
	for within := t.In(s.zone); ; {
		_, seconds := within.Zone()
		offset := time.Duration(seconds) * time.Second
		wall := s.cron.Next(t.UTC().Add(offset))
		if wall.IsZero() {
			return time.Time{}
		}
		due := wall.Add(-offset)
		end := changeAfter(within)
		if end.IsZero() || due.Before(end) {
			return due
		}
		// The clock may change first; the moment of the change itself may be due.
		t, within = end.Add(-time.Second), end
	}
}

// changeAfter is a time after t until which the zone keeps its offset; zero = for ever. In years that a zone knows by rule only,
// ZoneBounds ends a leap year a day early, which would be no time after t.
func changeAfter(t time.Time) time.Time {
	_, end := t.ZoneBounds()
	if end.IsZero() || end.After(t) {
		return end
	}
	return t.Add(24 * time.Hour)
}
