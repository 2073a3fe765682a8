package schedules

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// EnsureConfigured makes the schedules of the configuration what the store has: those given are created or replaced, also in place
// of one of the same name that was made over the API; those that a configuration owned and that are not given are
// removed. A pause or resume that was asked for stays. nil says that this host's configuration does not speak of schedules:
// when other hosts share the store, theirs are left alone then.
func (s *Service) EnsureConfigured(ctx context.Context, configured []Definition) error {
	if configured == nil && s.o.Leaser != nil {
		return nil
	}
	given := map[string]bool{}
	for i := range configured {
		d := &configured[i]
		if err := d.validate(s.o.Limits); err != nil {
			return fmt.Errorf("schedules[%d]: %w", i, err)
		}
		if given[key(d.Tenant, d.Name)] {
			return fmt.Errorf("schedules[%d]: %w", i, &queue.InvalidError{Field: "name", Reason: fmt.Sprintf("%q is given twice", d.Name)})
		}
		given[key(d.Tenant, d.Name)] = true
	}
	for i := range configured {
		if err := s.ensure(ctx, configured[i]); err != nil {
			return fmt.Errorf("schedules[%d] (%s): %w", i, configured[i].Name, err)
		}
	}
	var gone []record
	err := scan(ctx, s, kindSchedule, "", func(rec queue.Record, r record) {
		if r.Origin == OriginConfig && !given[rec.Key] {
			gone = append(gone, r)
		}
	})
	if err != nil {
		return err
	}
	for _, r := range gone {
		s.o.Log.Info("schedule is no longer configured and ends", "tenant", r.Tenant, "schedule", r.Name)
		if err := s.remove(ctx, r.Tenant, r.Name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) ensure(ctx context.Context, d Definition) error {
	want, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = s.update(ctx, d.Tenant, d.Name, func(have *record, now time.Time) (*record, error) {
		if have != nil && have.Origin == OriginConfig {
			is, err := json.Marshal(have.Definition)
			if err != nil {
				return nil, fmt.Errorf("encode: %w", err)
			}
			if string(is) == string(want) {
				return nil, nil //nolint:nilnil // nothing to store, and no error
			}
		} else if have != nil {
			s.o.Log.Warn("the configuration takes over a schedule that was made over the API", "tenant", d.Tenant, "schedule", d.Name)
		}
		return replace(have, d, OriginConfig, now), nil
	})
	return err
}
