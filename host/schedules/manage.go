package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// writeTries is how often a change begins anew because another one came between.
const writeTries = 5

// update reads a schedule, lets change alter it, and stores it; it begins anew when somebody else changed it meanwhile. change
// gets nil when there is none, and returns what to store, nil = nothing.
func (s *Service) update(ctx context.Context, tenant, name string, change func(have *record, now time.Time) (*record, error)) (Info, error) {
	for try := 1; ; try++ {
		have, err := s.get(ctx, tenant, name)
		if err != nil && !errors.Is(err, queue.ErrNotFound) {
			return Info{}, err
		}
		now, err := s.o.Queue.Now(ctx)
		if err != nil {
			return Info{}, fmt.Errorf("ask the store for its time: %w", err)
		}
		next, err := change(have, now)
		if err != nil {
			return Info{}, err
		}
		if next != nil {
			next.UpdatedAt = now
			if err := s.put(ctx, next); errors.Is(err, queue.ErrConflict) && try < writeTries {
				continue
			} else if err != nil {
				return Info{}, err
			}
			have = next
		}
		state, err := s.stateOf(ctx, have)
		if err != nil {
			return Info{}, err
		}
		return have.info(state, now), nil
	}
}

// replace puts a new definition into a record: have, or a new one when that is nil. What was due before does not count for a new
// spec, nor for one that was paused.
func replace(have *record, d Definition, origin Origin, now time.Time) *record {
	if have == nil {
		return &record{Definition: d, Origin: origin, Since: now, CreatedAt: now}
	}
	next := *have
	next.Definition, next.Origin = d, origin
	if origin == OriginAPI {
		next.PausedOverride = nil
	}
	if d.Cron != have.Cron || d.TZ != have.TZ || have.paused() && !next.paused() {
		next.Since = now
	}
	return &next
}

// Put creates a schedule or replaces its definition whole; created says which. An *queue.InvalidError or *queue.LimitError names
// the field at fault; a *ManagedError refuses one that the configuration owns. With create, one that exists gives an *ExistsError.
func (s *Service) Put(ctx context.Context, d Definition, create bool) (info Info, created bool, err error) {
	if err := d.validate(s.o.Limits); err != nil {
		return Info{}, false, err
	}
	info, err = s.update(ctx, d.Tenant, d.Name, func(have *record, now time.Time) (*record, error) {
		created = have == nil
		switch {
		case have == nil:
			if err := s.room(ctx, d.Tenant); err != nil {
				return nil, err
			}
		case create:
			return nil, &ExistsError{Name: d.Name}
		case have.Origin == OriginConfig:
			return nil, &ManagedError{Name: d.Name}
		}
		return replace(have, d, OriginAPI, now), nil
	})
	return info, created, err
}

// room refuses one more schedule than a tenant may have.
func (s *Service) room(ctx context.Context, tenant string) error {
	list, err := s.o.Records.ListRecords(ctx, kindSchedule, tenant+"/", "", PerTenantMax)
	if err != nil {
		return fmt.Errorf("count the schedules: %w", err)
	}
	if len(list) >= PerTenantMax {
		return &queue.LimitError{Field: "name", Limit: "schedules", Max: PerTenantMax, Got: PerTenantMax + 1, Unit: "schedules"}
	}
	return nil
}

// notFound answers for a schedule of the tenant that is not there.
func notFound(name string) error { return fmt.Errorf("schedule %q: %w", name, queue.ErrNotFound) }

// SetPaused pauses or resumes a schedule, whoever owns it; for one of the configuration it holds until it is resumed or paused
// again. What falls into a pause is never caught up.
func (s *Service) SetPaused(ctx context.Context, tenant, name string, paused bool) (Info, error) {
	return s.update(ctx, tenant, name, func(have *record, now time.Time) (*record, error) {
		if have == nil {
			return nil, notFound(name)
		}
		if have.paused() == paused {
			return nil, nil //nolint:nilnil // nothing to store, and no error
		}
		next := *have
		if next.Origin == OriginConfig {
			next.PausedOverride = &paused
		} else {
			next.Paused = paused
		}
		if !paused {
			next.Since = now
		}
		return &next, nil
	})
}

// Get returns a schedule of the tenant; queue.ErrNotFound also for another tenant's.
func (s *Service) Get(ctx context.Context, tenant, name string) (Info, error) {
	return s.update(ctx, tenant, name, func(have *record, _ time.Time) (*record, error) {
		if have == nil {
			return nil, notFound(name)
		}
		return nil, nil //nolint:nilnil // nothing to store, and no error
	})
}

// List returns up to limit schedules of the tenant by name, those behind after. more says that there are others.
func (s *Service) List(ctx context.Context, tenant, after string, limit int) (list []Info, more bool, err error) {
	if after != "" {
		after = key(tenant, after)
	}
	records, err := s.o.Records.ListRecords(ctx, kindSchedule, tenant+"/", after, limit+1)
	if err != nil {
		return nil, false, fmt.Errorf("list schedules: %w", err)
	}
	if more = len(records) > limit; more {
		records = records[:limit]
	}
	states := map[string]stateRecord{}
	if len(records) > 0 {
		err := scan(ctx, s, kindState, tenant+"/", func(rec queue.Record, st stateRecord) { states[rec.Key] = st })
		if err != nil {
			return nil, false, err
		}
	}
	now, err := s.o.Queue.Now(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("ask the store for its time: %w", err)
	}
	for _, rec := range records {
		var r record
		if err := json.Unmarshal(rec.Value, &r); err != nil {
			s.o.Log.Error("stored record cannot be read", "kind", kindSchedule, "key", rec.Key, "error", err)
			continue
		}
		st := states[rec.Key]
		list = append(list, r.info(st.of(&r), now))
	}
	return list, more, nil
}

// Delete removes a schedule; jobs that it enqueued stay. A *ManagedError refuses one that the configuration owns.
func (s *Service) Delete(ctx context.Context, tenant, name string) error {
	r, err := s.get(ctx, tenant, name)
	if err != nil {
		return err
	}
	if r.Origin == OriginConfig {
		return &ManagedError{Name: name}
	}
	return s.remove(ctx, tenant, name)
}

// Run enqueues the job of a schedule now, beside its due times and also while it is paused, and returns the job's id. A job
// that the store refuses gives its error, such as a *queue.UniqueHeldError.
func (s *Service) Run(ctx context.Context, tenant, name string) (string, error) {
	r, err := s.get(ctx, tenant, name)
	if err != nil {
		return "", err
	}
	now, err := s.o.Queue.Now(ctx)
	if err != nil {
		return "", fmt.Errorf("ask the store for its time: %w", err)
	}
	outcomes, err := s.o.Queue.Enqueue(ctx, []queue.JobSpec{r.Definition.spec(now, s.o.Defaults)})
	if err != nil {
		return "", fmt.Errorf("enqueue the job of schedule %q: %w", name, err)
	}
	return outcomes[0].ID, outcomes[0].Err
}
