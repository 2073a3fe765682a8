package redisq

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Configure implements queue.Configurable. The configuration belongs to the store: hosts that share it should have the same one,
// the last one wins. One that changes nothing costs a look.
func (s *Store) Configure(ctx context.Context, c queue.Scheduling) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	args := []any{flag(hasLimits(c)), "", packRules(c)}
	if c.ChargeByTime > 0 {
		args = append(args, "unit", c.ChargeByTime.Milliseconds())
	}
	for _, name := range slices.Sorted(maps.Keys(c.Queues)) {
		args = append(args, "q:"+name, packSettings(c.Queues[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tenants)) {
		args = append(args, "t:"+name, strconv.FormatFloat(c.TenantWeight(name), 'g', -1, 64))
		if n := c.TenantMaxRunning(name); n > 0 {
			args = append(args, "m:"+name, n)
		}
	}
	h := sha256.New()
	for _, a := range args {
		fmt.Fprintf(h, "%q;", fmt.Sprint(a))
	}
	_, err := s.run(ctx, "configure", append([]any{hex.EncodeToString(h.Sum(nil)[:16])}, args...)...)
	return err
}

// packRules are the settings that belong to no queue: see conf in lua/lib/settings.lua.
func packRules(c queue.Scheduling) []byte {
	age := func(st queue.State) int64 {
		d, forever := c.Retention.Age(st)
		if forever {
			return -1
		}
		return ceilMillis(d)
	}
	logs := cmp.Or(c.Retention.Logs, queue.LogsOfFailed)
	p := newPacker(nil)
	p.b, p.n = packInt(packString(p.b, "done"), age(queue.StateSucceeded)), p.n+1
	p.b, p.n = packInt(packString(p.b, "dead"), age(queue.StateDead)), p.n+1
	p.int("most", int64(c.Retention.Count))
	p.int("mostdead", int64(c.Retention.DeadCount))
	p.int("guard", int64(c.MaxConsecutiveHigh))
	p.int("crashes", int64(c.CrashBudget()))
	p.str("logs", string(logs))
	return p.end()
}

func packSettings(q queue.QueueSettings) []byte {
	p := newPacker(nil)
	if q.Weight != nil {
		p.float("w", *q.Weight)
	}
	if q.Priority != nil {
		p.b, p.n = packInt(packString(p.b, "p"), int64(*q.Priority)), p.n+1
	}
	if q.Paused != nil {
		p.b, p.n = packInt(packString(p.b, "x"), flag(*q.Paused)), p.n+1
	}
	if q.MaxRunning != nil {
		p.int("m", int64(*q.MaxRunning))
	}
	if q.MaxPerKey != nil {
		p.int("k", int64(*q.MaxPerKey))
	}
	if q.Rate != nil {
		p.int("r", int64(q.Rate.Count))
		p.int("rp", q.Rate.Per.Milliseconds())
	}
	return p.end()
}

// hasLimits says whether a configuration has anything that scripts look for only in a store with limits.
func hasLimits(c queue.Scheduling) bool {
	for _, q := range c.Queues {
		if q.MaxRunning != nil || q.MaxPerKey != nil || q.Rate != nil {
			return true
		}
	}
	for _, t := range c.Tenants {
		if t.MaxRunning != nil {
			return true
		}
	}
	return false
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func unpackSettings(text string) (queue.QueueSettings, error) {
	var q queue.QueueSettings
	if text == "" {
		return q, nil
	}
	m, err := unpackMap(text)
	if err != nil {
		return q, err
	}
	switch w := m["w"].(type) {
	case float64:
		q.Weight = &w
	case int64: // how Lua writes a whole number
		f := float64(w)
		q.Weight = &f
	}
	if _, ok := m["p"]; ok {
		n := int(m.int("p"))
		q.Priority = &n
	}
	if _, ok := m["x"]; ok {
		on := m.int("x") == 1
		q.Paused = &on
	}
	if n := int(m.int("m")); n > 0 {
		q.MaxRunning = &n
	}
	if n := int(m.int("k")); n > 0 {
		q.MaxPerKey = &n
	}
	if n := int(m.int("r")); n > 0 {
		q.Rate = &queue.Rate{Count: n, Per: time.Duration(m.int("rp")) * time.Millisecond}
	}
	return q, nil
}

// ListQueues implements queue.Queues.
func (s *Store) ListQueues(ctx context.Context, tenant string) ([]queue.QueueInfo, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if err := queue.ValidName("tenant", tenant); err != nil {
		return nil, err
	}
	return s.describe(ctx, tenant, "", false)
}

// GetQueue implements queue.Queues.
func (s *Store) GetQueue(ctx context.Context, tenant, name string) (queue.QueueInfo, error) {
	if err := s.enter(ctx); err != nil {
		return queue.QueueInfo{}, err
	}
	if queue.ValidName("tenant", tenant) != nil || queue.ValidName("queue", name) != nil {
		return queue.QueueInfo{}, queue.ErrNotFound
	}
	infos, err := s.describe(ctx, tenant, name, false)
	if err != nil {
		return queue.QueueInfo{}, err
	}
	if len(infos) == 0 {
		return queue.QueueInfo{}, queue.ErrNotFound
	}
	return infos[0], nil
}

// SetQueue implements queue.Queues.
func (s *Store) SetQueue(ctx context.Context, tenant, name string, c queue.QueueChange) (queue.QueueInfo, error) {
	if err := s.enter(ctx); err != nil {
		return queue.QueueInfo{}, err
	}
	if err := cmp.Or(queue.ValidName("tenant", tenant), queue.ValidName("queue", name), c.Validate()); err != nil {
		return queue.QueueInfo{}, err
	}
	args := []any{tenant, name, "", "", "", "", "", "", ""}
	for i, clear := range []bool{c.ClearWeight, c.ClearPriority, c.ClearPaused, c.ClearMaxRunning, c.ClearMaxPerKey, c.ClearRate, c.ClearRate} {
		if clear {
			args[2+i] = "-"
		}
	}
	if w := c.Set.Weight; w != nil {
		args[2] = strconv.FormatFloat(*w, 'g', -1, 64)
	}
	if p := c.Set.Priority; p != nil {
		args[3] = *p
	}
	if p := c.Set.Paused; p != nil {
		args[4] = flag(*p)
	}
	if n := c.Set.MaxRunning; n != nil {
		args[5] = *n
	}
	if n := c.Set.MaxPerKey; n != nil {
		args[6] = *n
	}
	if r := c.Set.Rate; r != nil {
		args[7], args[8] = r.Count, r.Per.Milliseconds()
	}
	if _, err := s.run(ctx, "setqueue", args...); err != nil {
		return queue.QueueInfo{}, err
	}
	infos, err := s.describe(ctx, tenant, name, true)
	if err != nil {
		return queue.QueueInfo{}, err
	}
	return infos[0], nil
}

// queueFields is how many values lua/queues.lua returns per queue.
const queueFields = 10

var waitOfLetter = map[string]queue.WaitCode{
	"p": queue.WaitPaused, "m": queue.WaitMaxRunning, "t": queue.WaitTenantMaxRunning, "r": queue.WaitRate,
}

// describe returns the queues of a tenant, or one of them; always: also when there is none of that name.
func (s *Store) describe(ctx context.Context, tenant, name string, always bool) ([]queue.QueueInfo, error) {
	v, err := s.run(ctx, "queues", tenant, name, flag(always))
	if err != nil {
		return nil, err
	}
	list, err := asList(v)
	if err != nil || len(list)%queueFields != 0 {
		return nil, fmt.Errorf("%w: redis described queues with %d values", queue.ErrUnavailable, len(list))
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	var infos []queue.QueueInfo
	for k := 0; k < len(list); k += queueFields {
		number := func(i int) int64 {
			n, _ := strconv.ParseInt(asString(list[k+i]), 10, 64)
			return n
		}
		template, err := unpackSettings(asString(list[k+1]))
		if err != nil {
			return nil, err
		}
		override, err := unpackSettings(asString(list[k+2]))
		if err != nil {
			return nil, err
		}
		e := queue.Effective(override, template)
		info := queue.QueueInfo{
			Tenant: tenant, Name: asString(list[k]), Weight: e.Weight, Priority: e.Priority, Paused: e.Paused,
			MaxRunning: e.MaxRunning, MaxPerKey: e.MaxPerKey, Rate: e.Rate, Override: override, Waiting: waitOfLetter[asString(list[k+9])],
			Served: max(number(3), 0), Scheduled: number(4), Ready: number(5), Running: number(6), Dead: number(7),
		}
		if oldest := oldest(asString(list[k+8])); !oldest.IsZero() {
			info.OldestAge = max(now.Sub(oldest), 0)
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b queue.QueueInfo) int { return cmp.Compare(a.Name, b.Name) })
	return infos, nil
}

// oldest is the earliest of the times that begin the ids of some jobs, ten characters each. The job in front of a line is not always
// its oldest, but the next to be served.
func oldest(times string) time.Time {
	first := time.Time{}
	for len(times) >= 10 {
		if u, ok := queue.ParseID(queue.JobIDPrefix, queue.JobIDPrefix+"_"+times[:10]+"0000000000000000"); ok {
			at := millis(int64(u[0])<<40 | int64(u[1])<<32 | int64(u[2])<<24 | int64(u[3])<<16 | int64(u[4])<<8 | int64(u[5]))
			if first.IsZero() || at.Before(first) {
				first = at
			}
		}
		times = times[10:]
	}
	return first
}
