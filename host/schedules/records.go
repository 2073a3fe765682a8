package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Kinds of records. Keys:
//
//	schedule           <tenant>/<name>   the definition; written by whoever changes it
//	schedule_state     <tenant>/<name>   how far it was served; written by the leader
//	schedule_revision  revision          written after every change of a definition, so that the leader looks again
const (
	kindSchedule = "schedule"
	kindState    = "schedule_state"
	kindRevision = "schedule_revision"
	keyRevision  = "revision"
)

// record is a stored definition.
type record struct {
	Definition
	Origin         Origin    `json:"origin"`
	PausedOverride *bool     `json:"paused_override,omitempty"` // what was asked for instead of the configured Paused
	Since          time.Time `json:"since"`                     // due times up to it do not count
	CreatedAt      time.Time `json:"created_at"`
	UpdatedAt      time.Time `json:"updated_at"`

	revision int64
}

// stateRecord is a stored state. Created is that of the definition it belongs to: a schedule that was removed and made again
// begins afresh.
type stateRecord struct {
	State
	Created time.Time `json:"created"`
	Through time.Time `json:"through,omitzero"` // due times up to it are served, refused or skipped

	revision int64
}

func key(tenant, name string) string { return tenant + "/" + name }

func (r *record) key() string { return key(r.Tenant, r.Name) }

// paused is the pause in force.
func (r *record) paused() bool {
	if r.PausedOverride != nil {
		return *r.PausedOverride
	}
	return r.Paused
}

// base is the time after which due times count.
func (r *record) base(s *stateRecord) time.Time {
	if s.Through.After(r.Since) {
		return s.Through
	}
	return r.Since
}

// info shows a schedule. One whose spec this program cannot read says so.
func (r *record) info(s *stateRecord, now time.Time) Info {
	i := Info{Definition: r.Definition, State: s.State, Origin: r.Origin, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt}
	i.Paused = r.paused()
	if i.Job.Queue == "" {
		i.Job.Queue = DefaultQueue
	}
	if i.CatchUp == "" {
		i.CatchUp = CatchUpNone
	}
	spec, err := Parse(r.Cron, r.TZ)
	if err != nil {
		i.LastError = err.Error()
		return i
	}
	if !i.Paused {
		after := now
		if base := r.base(s); base.After(now) {
			after = base
		}
		i.Next = spec.Upcoming(after, NextShown)
	}
	return i
}

// scan reads all records of a kind below a prefix. One that cannot be read is logged and left out: it must not keep the
// others from being used.
func scan[T any](ctx context.Context, s *Service, kind, prefix string, each func(queue.Record, T)) error {
	const page = 500
	for after := ""; ; {
		records, err := s.o.Records.ListRecords(ctx, kind, prefix, after, page)
		if err != nil {
			return fmt.Errorf("list %s records: %w", kind, err)
		}
		for _, rec := range records {
			after = rec.Key
			var v T
			if err := json.Unmarshal(rec.Value, &v); err != nil {
				s.o.Log.Error("stored record cannot be read", "kind", kind, "key", rec.Key, "error", err)
				continue
			}
			each(rec, v)
		}
		if len(records) < page {
			return nil
		}
	}
}

// get reads a definition; queue.ErrNotFound when there is none.
func (s *Service) get(ctx context.Context, tenant, name string) (*record, error) {
	rec, err := s.o.Records.GetRecord(ctx, kindSchedule, key(tenant, name))
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", name, err)
	}
	r := &record{revision: rec.Revision}
	if err := json.Unmarshal(rec.Value, r); err != nil {
		return nil, fmt.Errorf("%s record %q cannot be read: %w", kindSchedule, rec.Key, err)
	}
	return r, nil
}

// put writes a definition if nobody else did since it was read, else queue.ErrConflict, and makes every host look.
func (s *Service) put(ctx context.Context, r *record) error {
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode schedule %q: %w", r.Name, err)
	}
	if r.revision, err = s.o.Records.PutRecord(ctx, kindSchedule, r.key(), value, r.revision); err != nil {
		return fmt.Errorf("store schedule %q: %w", r.Name, err)
	}
	return s.announce(ctx, r.key())
}

// remove removes a schedule and its state.
func (s *Service) remove(ctx context.Context, tenant, name string) error {
	if err := s.o.Records.DeleteRecord(ctx, kindSchedule, key(tenant, name)); err != nil {
		return fmt.Errorf("remove schedule %q: %w", name, err)
	}
	if err := s.o.Records.DeleteRecord(ctx, kindState, key(tenant, name)); err != nil && !errors.Is(err, queue.ErrNotFound) {
		return fmt.Errorf("remove the state of schedule %q: %w", name, err)
	}
	return s.announce(ctx, key(tenant, name))
}

// announce tells this host's loop and the other hosts of a change.
func (s *Service) announce(ctx context.Context, what string) error {
	note, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("encode a note: %w", err)
	}
	_, err = s.o.Records.PutRecord(ctx, kindRevision, keyRevision, note, queue.AnyRevision)
	select {
	case s.changed <- struct{}{}:
	default: // it looks already
	}
	if err != nil {
		return fmt.Errorf("tell other hosts of a change of schedules: %w", err)
	}
	return nil
}

func (s *Service) revision(ctx context.Context) (int64, error) {
	rec, err := s.o.Records.GetRecord(ctx, kindRevision, keyRevision)
	if errors.Is(err, queue.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the revision of the schedules: %w", err)
	}
	return rec.Revision, nil
}

// stateOf reads the state of a definition, a fresh one when there is none.
func (s *Service) stateOf(ctx context.Context, r *record) (*stateRecord, error) {
	rec, err := s.o.Records.GetRecord(ctx, kindState, r.key())
	if errors.Is(err, queue.ErrNotFound) {
		return &stateRecord{Created: r.CreatedAt}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of schedule %q: %w", r.Name, err)
	}
	st := &stateRecord{revision: rec.Revision}
	if err := json.Unmarshal(rec.Value, st); err != nil {
		return nil, fmt.Errorf("%s record %q cannot be read: %w", kindState, rec.Key, err)
	}
	return st.of(r), nil
}

// of is the state if it belongs to the definition, else a fresh one that takes its place.
func (st *stateRecord) of(r *record) *stateRecord {
	if st.Created.Equal(r.CreatedAt) {
		return st
	}
	return &stateRecord{Created: r.CreatedAt, revision: st.revision}
}

func (s *Service) putState(ctx context.Context, key string, st *stateRecord) error {
	value, err := json.Marshal(st)
	if err != nil {
		return fmt.Errorf("encode the state of schedule %s: %w", key, err)
	}
	if st.revision, err = s.o.Records.PutRecord(ctx, kindState, key, value, st.revision); err != nil {
		return fmt.Errorf("store the state of schedule %s: %w", key, err)
	}
	return nil
}
