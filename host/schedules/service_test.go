package schedules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/host/hosttest"
	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/lifecycle/lifecycletest"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

// link is one host's connection to the store: it counts, and can be frozen or die.
type link struct {
	hosttest.Engine
	calls atomic.Int64

	mu     sync.Mutex
	dead   bool
	thawed chan struct{} // nil = not frozen
	lose   bool          // the next state is lost on its way
}

var errDead = errors.New("the process is gone")

func (l *link) pass() error {
	l.calls.Add(1)
	l.mu.Lock()
	dead, thawed := l.dead, l.thawed
	l.mu.Unlock()
	if thawed != nil {
		<-thawed
	}
	if dead {
		return errDead
	}
	return nil
}

func (l *link) Enqueue(ctx context.Context, specs []queue.JobSpec) ([]queue.EnqueueOutcome, error) {
	if err := l.pass(); err != nil {
		return nil, err
	}
	return l.Engine.Enqueue(ctx, specs)
}

func (l *link) Now(ctx context.Context) (time.Time, error) {
	if err := l.pass(); err != nil {
		return time.Time{}, err
	}
	return l.Engine.Now(ctx)
}

func (l *link) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	if err := l.pass(); err != nil {
		return false, err
	}
	return l.Engine.AcquireLease(ctx, name, holder, ttl)
}

func (l *link) ReleaseLease(ctx context.Context, name, holder string) error {
	if err := l.pass(); err != nil {
		return err
	}
	return l.Engine.ReleaseLease(ctx, name, holder)
}

func (l *link) GetRecord(ctx context.Context, kind, key string) (queue.Record, error) {
	if err := l.pass(); err != nil {
		return queue.Record{}, err
	}
	return l.Engine.GetRecord(ctx, kind, key)
}

func (l *link) PutRecord(ctx context.Context, kind, key string, value []byte, ifRevision int64) (int64, error) {
	if err := l.pass(); err != nil {
		return 0, err
	}
	l.mu.Lock()
	lose := l.lose && kind == kindState
	l.mu.Unlock()
	if lose {
		return 0, queue.ErrUnavailable
	}
	return l.Engine.PutRecord(ctx, kind, key, value, ifRevision)
}

func (l *link) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func over(t *testing.T, l *link, holder string) *Service {
	o := Options{Queue: l, Records: l, Holder: holder, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Random: func() float64 { return 0 }, Defaults: Defaults{MaxAttempts: 3}}
	if holder != "" {
		o.Leaser = l
	}
	return New(o)
}

func start(t *testing.T, e hosttest.Engine, holder string) (*Service, *link) {
	t.Helper()
	l := &link{Engine: e}
	s := over(t, l, holder)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, l
}

func every(name, spec string) Definition {
	return Definition{Tenant: "acme", Name: name, Cron: spec, Job: Job{Type: "report", Payload: []byte(`{"n":1}`), PayloadJSON: true}}
}

func mustPut(t *testing.T, s *Service, d Definition) Info {
	t.Helper()
	info, _, err := s.Put(t.Context(), d, false)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// dues counts the jobs in the store by schedule and due time.
func dues(t *testing.T, e hosttest.Engine) map[string]int {
	t.Helper()
	got := map[string]int{}
	for f := (queue.JobFilter{Tenant: "acme", Limit: 500}); ; {
		page, err := e.ListJobs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range page.Jobs {
			got[j.Headers[HeaderSchedule]+" "+j.Headers[HeaderDueAt]]++
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return got
		}
	}
}

func wantDues(t *testing.T, e hosttest.Engine, name string, want ...time.Time) {
	t.Helper()
	got := dues(t, e)
	for _, at := range want {
		k := name + " " + at.UTC().Format(time.RFC3339)
		if got[k] != 1 {
			t.Errorf("%d jobs for %s, want 1", got[k], k)
		}
		delete(got, k)
	}
	for k, n := range got {
		t.Errorf("%d jobs too many: %s", n, k)
	}
}

func ticks(first time.Time, n int, step time.Duration) []time.Time {
	list := make([]time.Time, n)
	for i := range list {
		list[i] = first.Add(time.Duration(i) * step)
	}
	return list
}

func TestCase061OneJobPerTickWhateverHappensToHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memq.New(memq.Options{})
		var hosts []*Service
		var links []*link
		for i := range 3 {
			s, l := start(t, store, fmt.Sprintf("w-%d", i+1))
			hosts, links = append(hosts, s), append(links, l)
		}
		synctest.Wait()
		begin := time.Now().Truncate(time.Second)
		mustPut(t, hosts[2], every("tick", "* * * * * *")) // the one that is told takes the lease
		leader := func() int {
			for i, h := range hosts {
				if h.Stats().Leading {
					return i
				}
			}
			t.Fatal("nobody leads")
			return -1
		}
		time.Sleep(30*time.Second + 500*time.Millisecond)
		synctest.Wait()
		killed := leader()
		links[killed].set(func() { links[killed].dead = true })
		hosts[killed].loop.Interrupt()
		hosts[killed].leading.Store(false)
		// The next leader is frozen for ten seconds in the middle of its work.
		time.Sleep(25 * time.Second)
		synctest.Wait()
		frozen := leader()
		thawed := make(chan struct{})
		links[frozen].set(func() { links[frozen].thawed = thawed })
		time.Sleep(10 * time.Second)
		links[frozen].set(func() { links[frozen].thawed = nil })
		close(thawed)
		time.Sleep(35 * time.Second)
		synctest.Wait()
		wantDues(t, store, "tick", ticks(begin.Add(time.Second), 100, time.Second)...)
		for i, h := range hosts {
			if i != killed && h.Stats().Refused+h.Stats().Skipped > 0 {
				t.Errorf("host %d: %+v", i, h.Stats())
			}
			h.Stop()
		}
	})
}

// Another host takes over from one that was frozen for longer than its lease; when that one wakes, it enqueues nothing twice.
func TestAFrozenLeaderDoublesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memq.New(memq.Options{})
		first, l := start(t, store, "w-1")
		begin := time.Now().Truncate(time.Second)
		mustPut(t, first, every("tick", "* * * * * *"))
		synctest.Wait()
		second, _ := start(t, store, "w-2")
		time.Sleep(5500 * time.Millisecond)
		thawed := make(chan struct{})
		l.set(func() { l.thawed = thawed })
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if !second.Stats().Leading {
			t.Error("nobody took over")
		}
		l.set(func() { l.thawed = nil })
		close(thawed)
		time.Sleep(14500 * time.Millisecond)
		synctest.Wait()
		wantDues(t, store, "tick", ticks(begin.Add(time.Second), 60, time.Second)...)
		if first.Stats().Leading == second.Stats().Leading {
			t.Errorf("leading: %v and %v", first.Stats(), second.Stats())
		}
		first.Stop()
		second.Stop()
	})
}

func TestCatchUpAfterADowntime(t *testing.T) {
	const hour = time.Hour
	for _, c := range []struct {
		catchUp CatchUp
		spec    string
		down    time.Duration
		want    []time.Duration // due times of the downtime that are served
		skipped int64
	}{
		{"", "0 * * * *", 3*hour + 5*time.Minute, nil, 3},
		{CatchUpNone, "0 * * * *", 3*hour + 30*time.Second, nil, 3},
		{CatchUpOne, "0 * * * *", 3*hour + 5*time.Minute, []time.Duration{3 * hour}, 2},
		{CatchUpAll, "0 * * * *", 3*hour + 5*time.Minute, []time.Duration{hour, 2 * hour, 3 * hour}, 0},
		{CatchUpNone, "0 * * * *", hour + 30*time.Second, []time.Duration{hour}, 0}, // late, not missed
		{CatchUpNone, "0 * * * *", 30 * time.Minute, nil, 0},
		{CatchUpAll, "@every 1s", 2 * hour, nil, 7200 - CatchUpMax},
	} {
		t.Run(fmt.Sprintf("%s %s after %s", c.catchUp, c.spec, c.down), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memq.New(memq.Options{})
				time.Sleep(time.Until(time.Now().Truncate(hour).Add(hour))) // begin on the hour
				s, _ := start(t, store, "")
				d := every("s", c.spec)
				d.CatchUp = c.catchUp
				begin := mustPut(t, s, d).CreatedAt
				s.Stop()
				time.Sleep(c.down)
				s, _ = start(t, store, "")
				synctest.Wait()
				var want []time.Time
				for _, d := range c.want {
					want = append(want, begin.Add(d))
				}
				if c.spec == "@every 1s" {
					want = ticks(begin.Add(c.down-(CatchUpMax-1)*time.Second), CatchUpMax, time.Second)
				}
				wantDues(t, store, "s", want...)
				if got := s.Stats().Skipped; got != c.skipped {
					t.Errorf("%d skipped, want %d", got, c.skipped)
				}
				info, err := s.Get(t.Context(), "acme", "s")
				if err != nil || info.Skipped != c.skipped || info.Enqueued != int64(len(want)) {
					t.Errorf("shown: %+v %v", info.State, err)
				}
				s.Stop()
				// A restart at the same time does nothing more.
				s, _ = start(t, store, "")
				synctest.Wait()
				wantDues(t, store, "s", want...)
				s.Stop()
			})
		})
	}
}

// A host that dies between the enqueue and the note of it: the next one finds the job by its key, also when the definition
// changed meanwhile.
func TestADeathBeforeTheNoteDoublesNothing(t *testing.T) {
	for _, edit := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := memq.New(memq.Options{})
			s, l := start(t, store, "")
			d := every("s", "@every 10s")
			d.CatchUp = CatchUpAll
			begin := mustPut(t, s, d).CreatedAt.Truncate(10 * time.Second)
			l.set(func() { l.lose = true })
			time.Sleep(12 * time.Second)
			s.Stop()
			if !s.Stats().StoreDown {
				t.Error("the outage is not reported")
			}
			if edit {
				d.Job.Payload = []byte(`{"n":2}`)
				mustPut(t, over(t, &link{Engine: store}, ""), d)
			}
			s, _ = start(t, store, "")
			time.Sleep(10 * time.Second)
			synctest.Wait()
			wantDues(t, store, "s", ticks(begin.Add(10*time.Second), 2, 10*time.Second)...)
			info, err := s.Get(t.Context(), "acme", "s")
			if err != nil || info.Enqueued != 2 || info.LastJob == "" || info.LastError != "" {
				t.Errorf("%+v %v", info.State, err)
			}
			s.Stop()
		})
	}
}

func TestCase022ARefusalIsShownAndTheScheduleGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memq.New(memq.Options{})
		s, _ := start(t, store, "")
		d := every("s", "@every 10s")
		d.Job.Unique = queue.Unique{Key: "one"}
		begin := mustPut(t, s, d).CreatedAt.Truncate(10 * time.Second)
		time.Sleep(25 * time.Second)
		synctest.Wait()
		info, err := s.Get(t.Context(), "acme", "s")
		if err != nil || info.Enqueued != 1 || info.Refused != 1 || info.LastError == "" || info.LastErrorAt.IsZero() || s.Stats().Refused != 1 {
			t.Fatalf("%+v %v", info.State, err)
		}
		// In the dead-letter queue it blocks nothing; deleted neither.
		take := func() *queue.Job {
			jobs, err := store.Reserve(t.Context(), queue.ReserveParams{Worker: "w", Max: 1, Lease: time.Minute})
			if err != nil || len(jobs) != 1 {
				t.Fatalf("%d jobs, %v", len(jobs), err)
			}
			return jobs[0]
		}
		j := take()
		if _, err := store.Settle(t.Context(), []queue.Settlement{{Ref: queue.Ref{ID: j.ID, Token: j.Token}, Verb: queue.VerbDead, Error: &queue.JobError{Kind: "permanent"}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		info, err = s.Get(t.Context(), "acme", "s")
		if err != nil || info.Enqueued != 2 {
			t.Fatalf("after the death: %+v %v", info.State, err)
		}
		if err := store.DeleteJob(t.Context(), "acme", info.LastJob); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if info, err = s.Get(t.Context(), "acme", "s"); err != nil || info.Enqueued != 3 || !info.LastDue.Equal(begin.Add(40*time.Second)) {
			t.Fatalf("after the removal: %+v %v", info.State, err)
		}
		s.Stop()
	})
}

func TestPauseIsNoDowntimeAndChangesApplyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memq.New(memq.Options{})
		s, l := start(t, store, "")
		d := every("s", "@every 10s")
		d.CatchUp = CatchUpAll
		begin := mustPut(t, s, d).CreatedAt.Truncate(10 * time.Second)
		time.Sleep(15 * time.Second)
		if info, err := s.SetPaused(t.Context(), "acme", "s", true); err != nil || !info.Paused || len(info.Next) > 0 {
			t.Fatalf("%+v %v", info, err)
		}
		synctest.Wait()
		before := l.calls.Load()
		time.Sleep(time.Hour)
		if n := l.calls.Load() - before; n != 0 {
			t.Errorf("%d calls of the store for a paused schedule in an hour", n)
		}
		if info, err := s.SetPaused(t.Context(), "acme", "s", false); err != nil || info.Paused || len(info.Next) != NextShown {
			t.Fatalf("%+v %v", info, err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		resumed := begin.Add(time.Hour + 20*time.Second)
		wantDues(t, store, "s", begin.Add(10*time.Second), resumed)
		// A new spec begins from now on, and wakes the loop that waits for the old one.
		d.Cron = "0 0 1 1 *"
		mustPut(t, s, d)
		d.Cron = "@every 2s"
		mustPut(t, s, d)
		now := time.Now().Truncate(2 * time.Second)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		wantDues(t, store, "s", begin.Add(10*time.Second), resumed, now.Add(2*time.Second), now.Add(4*time.Second))
		if err := s.Delete(t.Context(), "acme", "s"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(dues(t, store)); n != 4 {
			t.Errorf("%d jobs, want no more after the removal", n)
		}
		// Made again it begins afresh.
		if info := mustPut(t, s, d); info.Enqueued != 0 || !info.LastDue.IsZero() {
			t.Errorf("a new schedule has the state of an old one: %+v", info.State)
		}
		s.Stop()
	})
}

func TestAChangeOnAnotherHostIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memq.New(memq.Options{})
		leader, _ := start(t, store, "w-1")
		mustPut(t, leader, every("s", "@every 1s"))
		other, _ := start(t, store, "w-2")
		time.Sleep(time.Minute)
		if err := other.Delete(t.Context(), "acme", "s"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(TTLDefault / 3)
		synctest.Wait()
		n := len(dues(t, store))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(dues(t, store)); got != n {
			t.Errorf("%d jobs after the removal", got-n)
		}
		leader.Stop()
		other.Stop()
	})
}

// Idle hosts of a shared store without schedules look twice a minute; an embedded one never.
func TestIdleHostsAreQuiet(t *testing.T) {
	for holder, most := range map[string]int64{"": 0, "w-1": 120} {
		synctest.Test(t, func(t *testing.T) {
			s, l := start(t, memq.New(memq.Options{}), holder)
			synctest.Wait()
			before := l.calls.Load()
			time.Sleep(time.Hour)
			if n := l.calls.Load() - before; n > most {
				t.Errorf("%d calls in an hour without schedules, want at most %d", n, most)
			}
			s.Stop()
		})
	}
}

func TestConfiguredSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memq.New(memq.Options{})
		s := over(t, &link{Engine: store}, "")
		mustPut(t, s, every("mine", "@hourly"))
		mustPut(t, s, every("taken", "@hourly"))
		ensure := func(s *Service, list []Definition) {
			t.Helper()
			if err := s.EnsureConfigured(t.Context(), list); err != nil {
				t.Fatal(err)
			}
		}
		ensure(s, []Definition{every("taken", "@daily"), every("nightly", "0 3 * * *")})
		get := func(name string) Info {
			t.Helper()
			info, err := s.Get(t.Context(), "acme", name)
			if err != nil {
				t.Fatal(err)
			}
			return info
		}
		if get("mine").Origin != OriginAPI || get("taken").Origin != OriginConfig || get("taken").Cron != "@daily" {
			t.Error("the configuration does not own what it names, or owns more")
		}
		var managed *ManagedError
		if _, _, err := s.Put(t.Context(), every("nightly", "@hourly"), false); !errors.As(err, &managed) || !errors.Is(err, queue.ErrConflict) {
			t.Errorf("a write over the API: %v", err)
		}
		if err := s.Delete(t.Context(), "acme", "nightly"); !errors.As(err, &managed) {
			t.Errorf("a removal over the API: %v", err)
		}
		// A pause survives a reload, and a resume of what the configuration pauses too.
		if _, err := s.SetPaused(t.Context(), "acme", "nightly", true); err != nil {
			t.Fatal(err)
		}
		ensure(s, []Definition{every("nightly", "0 4 * * *")})
		if info := get("nightly"); !info.Paused || info.Cron != "0 4 * * *" {
			t.Errorf("after a reload: %+v", info)
		}
		if _, err := s.Get(t.Context(), "acme", "taken"); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("a schedule that is no longer configured: %v", err)
		}
		// Of hosts that share a store, one whose configuration does not speak of schedules leaves them alone.
		ensure(over(t, &link{Engine: store}, "w-2"), nil)
		get("nightly")
		ensure(s, nil)
		if list, more, err := s.List(t.Context(), "acme", "", 10); err != nil || more || len(list) != 1 || list[0].Name != "mine" {
			t.Errorf("%+v %v", list, err)
		}
		if err := s.EnsureConfigured(t.Context(), []Definition{every("a", "TZ=UTC 0 3 * * *")}); err == nil {
			t.Error("a malformed spec was taken")
		}
		if err := s.EnsureConfigured(t.Context(), []Definition{every("a", "@daily"), every("a", "@daily")}); err == nil {
			t.Error("a name was taken twice")
		}
	})
}

func TestListPages(t *testing.T) {
	t.Parallel()
	store := memq.New(memq.Options{})
	s := over(t, &link{Engine: store}, "")
	for i := range 5 {
		mustPut(t, s, every(fmt.Sprintf("s%d", i), "@daily"))
	}
	foreign := every("s9", "@daily")
	foreign.Tenant = "acme-2"
	mustPut(t, s, foreign)
	var names []string
	for after := ""; ; {
		list, more, err := s.List(t.Context(), "acme", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range list {
			names = append(names, i.Name)
		}
		if !more {
			break
		}
		after = list[len(list)-1].Name
	}
	if got := fmt.Sprint(names); got != "[s0 s1 s2 s3 s4]" {
		t.Errorf("listed %s", got)
	}
}

func TestRunNow(t *testing.T) {
	t.Parallel()
	store := memq.New(memq.Options{})
	s := over(t, &link{Engine: store}, "")
	d := every("s", "@yearly")
	d.Job.Unique, d.Job.Labels = queue.Unique{Key: "one"}, map[string]string{"team": "a"}
	mustPut(t, s, d)
	id, err := s.Run(t.Context(), "acme", "s")
	if err != nil {
		t.Fatal(err)
	}
	j, err := store.GetJob(t.Context(), "acme", id)
	if err != nil || j.Labels[LabelSchedule] != "s" || j.Labels["team"] != "a" || j.Headers[HeaderSchedule] != "s" || j.Queue != DefaultQueue || j.MaxAttempts != 3 || string(j.Payload) != `{"n":1}` {
		t.Errorf("%+v %v", j, err)
	}
	var held *queue.UniqueHeldError
	if _, err := s.Run(t.Context(), "acme", "s"); !errors.As(err, &held) || held.JobID != id {
		t.Errorf("a second run: %v", err)
	}
	if _, err := s.Run(t.Context(), "other", "s"); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("another tenant's: %v", err)
	}
}

func TestPutRefuses(t *testing.T) {
	t.Parallel()
	s := over(t, &link{Engine: memq.New(memq.Options{})}, "")
	for field, change := range map[string]func(*Definition){
		"name":               func(d *Definition) { d.Name = "a/b" },
		"tenant":             func(d *Definition) { d.Tenant = "" },
		"cron":               func(d *Definition) { d.Cron = "TZ=0" },
		"tz":                 func(d *Definition) { d.TZ = "Nowhere" },
		"catch_up":           func(d *Definition) { d.CatchUp = "some" },
		"type":               func(d *Definition) { d.Job.Type = "" },
		"timeout":            func(d *Definition) { d.Job.Timeout = -1 },
		"unique.on_conflict": func(d *Definition) { d.Job.Unique = queue.Unique{Key: "k", OnConflict: "x"} },
	} {
		d := every("s", "@daily")
		change(&d)
		var invalid *queue.InvalidError
		if _, _, err := s.Put(t.Context(), d, false); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	d := every("s", "@daily")
	d.Job.Payload = make([]byte, PayloadMax+1)
	var limit *queue.LimitError
	if _, _, err := s.Put(t.Context(), d, false); !errors.As(err, &limit) || limit.Max != PayloadMax {
		t.Errorf("a large payload: %v", err)
	}
	mustPut(t, s, every("s", "@daily"))
	var exists *ExistsError
	if _, _, err := s.Put(t.Context(), every("s", "@daily"), true); !errors.As(err, &exists) {
		t.Errorf("create what is there: %v", err)
	}
}

// The default store: the schedule, how far it came, and its jobs survive a restart.
func TestRestartOnDisk(t *testing.T) {
	t.Parallel()
	clock := &handClock{now: time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)}
	dir := t.TempDir()
	d := every("hourly", "0 * * * *")
	d.CatchUp = CatchUpOne
	for round := range 3 {
		store, err := sqliteq.Open(t.Context(), sqliteq.Options{Dir: dir, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		s := over(t, &link{Engine: store}, "")
		if round == 0 {
			mustPut(t, s, d)
		} else {
			if err := s.load(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := s.serve(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var want []time.Time
		for i := range round {
			want = append(want, time.Date(2026, 11, 30, 7+5*i, 0, 0, 0, time.UTC))
		}
		wantDues(t, store, "hourly", want...)
		clock.advance(5*time.Hour - time.Duration(1-min(round, 1))*50*time.Minute)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// handClock is store time that only the test moves.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (*handClock) NewTimer(time.Duration) (<-chan time.Time, func() bool) {
	return nil, func() bool { return true }
}

// Store time that jumps ahead or back: nothing doubles, and what was jumped over is late.
func TestJumpsOfStoreTime(t *testing.T) {
	t.Parallel()
	clock := &handClock{now: time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)}
	store := memq.New(memq.Options{Clock: clock})
	s := over(t, &link{Engine: store}, "")
	begin := mustPut(t, s, every("tick", "* * * * * *")).CreatedAt
	if err := s.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, jump := range []time.Duration{time.Second, 30 * time.Second, -20 * time.Second, 5 * time.Second, 16 * time.Second} {
		clock.advance(jump)
		if _, err := s.serve(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wantDues(t, store, "tick", ticks(begin.Add(time.Second), 32, time.Second)...)
}

func TestLifecycle(t *testing.T) {
	store := memq.New(memq.Options{})
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service { return over(t, &link{Engine: store}, "w-1") })
}
