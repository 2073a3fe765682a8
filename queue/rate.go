package queue

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate bounds how fast jobs of a queue are reserved: Count per Per over any long time, and in any stretch of time W at most
// 1 + Count·(W + RateSlack)/Per jobs. The zero value is no rate.
//
// It is the generic cell rate algorithm (ITU-T I.371, 1993), the token bucket that keeps one time, with an interval of
// Per/Count and a tolerance of RateSlack, kept exactly. RULES.md states it in full; fair.Bucket computes it.
type Rate struct {
	Count int           // 1–RateCountMax jobs …
	Per   time.Duration // … in each RatePerMin–RatePerMax, whole milliseconds
}

// Bounds of a Rate. RateSlack is how late a host may take a job without losing any of the rate, and so how much time's worth
// of jobs may go out at once.
const (
	RateCountMax = 1_000_000
	RatePerMin   = time.Second
	RatePerMax   = 24 * time.Hour
	RateSlack    = 100 * time.Millisecond
)

// Burst is how many jobs may be reserved at once after a pause: one, and as many as RateSlack is long.
func (r Rate) Burst() int {
	if r.IsZero() {
		return 0
	}
	return 1 + int(int64(r.Count)*RateSlack.Milliseconds()/r.Per.Milliseconds())
}

// IsZero reports whether there is no rate.
func (r Rate) IsZero() bool { return r == Rate{} }

// rateUnits are the units a rate may be written in, the largest first.
var rateUnits = [...]struct {
	name string
	per  time.Duration
}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}

// String writes the rate as ParseRate reads it: "100/s", "5/m", "3/90s". No rate is "".
func (r Rate) String() string {
	if r.IsZero() {
		return ""
	}
	for _, u := range rateUnits {
		if r.Per > 0 && r.Per%u.per == 0 {
			if n := r.Per / u.per; n > 1 {
				return fmt.Sprintf("%d/%d%s", r.Count, n, u.name)
			}
			return fmt.Sprintf("%d/%s", r.Count, u.name)
		}
	}
	return fmt.Sprintf("%d/%dms", r.Count, r.Per.Milliseconds())
}

// ParseRate reads "100/s", "5/m", "20/h", "1000/d" or, with a number before the unit, "3/90s" and "1/1500ms".
func ParseRate(text string) (Rate, error) {
	bad := func() (Rate, error) {
		return Rate{}, &InvalidError{Field: "rate", Reason: fmt.Sprintf("must be jobs per time, as in 100/s, 5/m, 20/h or 3/90s; got %.40q", text)}
	}
	count, per, ok := strings.Cut(strings.TrimSpace(text), "/")
	if !ok {
		return bad()
	}
	n, err := strconv.Atoi(strings.TrimSpace(count))
	if err != nil {
		return bad()
	}
	per = strings.TrimSpace(per)
	unit := strings.TrimLeft(per, "0123456789")
	times := int64(1)
	if digits := per[:len(per)-len(unit)]; digits != "" {
		if times, err = strconv.ParseInt(digits, 10, 64); err != nil || times > RatePerMax.Milliseconds() {
			return bad()
		}
	}
	one := time.Millisecond
	if unit != "ms" {
		one = 0
		for _, u := range rateUnits {
			if u.name == unit {
				one = u.per
			}
		}
	}
	if one == 0 || times > int64(RatePerMax/one) {
		return bad()
	}
	r := Rate{Count: n, Per: time.Duration(times) * one}
	return r, r.Validate("rate")
}

// Validate checks the bounds; field names it in the error.
func (r Rate) Validate(field string) error {
	if r.Count < 1 || r.Count > RateCountMax {
		return &InvalidError{Field: field, Reason: fmt.Sprintf("must be of 1 to %d jobs, got %d", RateCountMax, r.Count)}
	}
	if r.Per < RatePerMin || r.Per > RatePerMax || r.Per%time.Millisecond != 0 {
		return &InvalidError{Field: field, Reason: fmt.Sprintf("must be per %s to %s, in whole milliseconds, got %s", RatePerMin, RatePerMax, r.Per)}
	}
	return nil
}

// MarshalText writes String.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what ParseRate does, and "" as no rate.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*r = Rate{}
		return nil
	}
	*r, err = ParseRate(string(text))
	return err
}
