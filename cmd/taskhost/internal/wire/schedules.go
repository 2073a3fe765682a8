package wire

import (
	"cmp"
	"errors"
	"time"

	"github.com/taskhost/taskhost/config"
	"github.com/taskhost/taskhost/host/schedules"
	"github.com/taskhost/taskhost/queue"
)

// CheckCron checks a cron spec and the name of its time zone ("" = UTC), and says which of the two fields of a schedule, "cron" or
// "tz", is at fault.
func CheckCron(spec, tz string) (field string, err error) {
	_, err = schedules.Parse(spec, tz)
	if e, ok := errors.AsType[*queue.InvalidError](err); ok {
		return e.Field, errors.New(e.Reason)
	}
	return "cron", err
}

// NextDue returns the first n times after a time at which a spec is due, by the clock of its zone.
func NextDue(spec, tz string, after time.Time, n int) ([]time.Time, error) {
	s, err := schedules.Parse(spec, tz)
	if err != nil {
		return nil, err
	}
	due := s.Upcoming(after, n)
	for i := range due {
		due[i] = due[i].In(s.Zone())
	}
	return due, nil
}

// configuredSchedules translates the schedules of the configuration; nil stays nil, which does not speak of any.
func configuredSchedules(list []config.Schedule) []schedules.Definition {
	if list == nil {
		return nil
	}
	out := make([]schedules.Definition, len(list))
	for i, c := range list {
		out[i] = schedules.Definition{
			Tenant: cmp.Or(c.Tenant, config.DefaultTenant), Name: c.Name, Cron: c.Cron, TZ: c.TZ, CatchUp: schedules.CatchUp(c.CatchUp), Paused: c.Paused,
			Job: schedules.Job{
				Type: c.Type, Queue: c.Queue, Priority: c.Priority, Timeout: c.Timeout, MaxAttempts: c.MaxAttempts, Labels: c.Labels,
				Unique: queue.Unique{Key: c.Unique.Key, Until: queue.UniqueUntil(c.Unique.Until), OnConflict: queue.UniqueConflict(c.Unique.OnConflict)},
			},
		}
		if c.Payload != "" {
			out[i].Job.Payload, out[i].Job.PayloadJSON = []byte(c.Payload), true
		}
	}
	return out
}
