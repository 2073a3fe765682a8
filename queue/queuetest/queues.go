package queuetest

import (
	"errors"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func queuesCases() []testCase {
	return []testCase{
		{name: "case 074: a configured queue exists without jobs", run: queuesConfigured},
		{name: "unknown queues are not found", run: queuesUnknown},
		{name: "counts", run: queuesCounts},
		{name: "pause holds back, resume gives back", run: queuesPause},
		{name: "override wins over the template and can be returned", run: queuesOverride},
		{name: "a new configuration replaces the old one whole", run: queuesReplace},
		{name: "queues of a tenant are its own", run: queuesTenant},
		{name: "bad settings are refused and change nothing", run: queuesBad},
	}
}

func (f *fixture) queueNames(tenant string) string {
	f.Helper()
	infos, err := f.queues.ListQueues(f.ctx, tenant)
	if err != nil {
		f.Fatalf("ListQueues: %v", err)
	}
	var names []string
	for _, info := range infos {
		if info.Tenant != tenant {
			f.Errorf("queue %+v in the list of %s", info, tenant)
		}
		names = append(names, info.Name)
	}
	return strings.Join(names, " ")
}

func queuesConfigured(f *fixture) {
	f.configure(queue.Scheduling{Queues: map[string]queue.QueueSettings{"b": {}, "a": {Weight: ptr(2.5), Priority: ptr(-3), Paused: ptr(true)}}})
	if got := f.queueNames("acme"); got != "a b" {
		f.Errorf("queues = %q, want a b", got)
	}
	want := queue.QueueInfo{Tenant: "acme", Name: "a", Weight: 2.5, Priority: -3, Paused: true, MaxPerKey: 1, Waiting: queue.WaitPaused}
	if got := f.info("a"); got != want {
		f.Errorf("queue a = %+v, want %+v", got, want)
	}
	if got := f.info("b"); got != (queue.QueueInfo{Tenant: "acme", Name: "b", Weight: 1, MaxPerKey: 1}) {
		f.Errorf("queue b = %+v, want the defaults", got)
	}
}

func queuesUnknown(f *fixture) {
	for _, name := range []string{"never", "", "a b"} {
		if _, err := f.queues.GetQueue(f.ctx, "acme", name); !errors.Is(err, queue.ErrNotFound) {
			f.Errorf("GetQueue(%q) = %v, want ErrNotFound", name, err)
		}
	}
	if got := f.queueNames("acme"); got != "" {
		f.Errorf("queues = %q, want none", got)
	}
	f.setQueue("acme", "held", paused(true))
	if got := f.queueNames("acme"); got != "held" {
		f.Errorf("queues = %q, want the overridden one", got)
	}
	f.setQueue("acme", "held", queue.QueueChange{ClearPaused: true})
	if got := f.queueNames("acme"); got != "" {
		f.Errorf("queues = %q, want none: the override is gone and it was never used", got)
	}
}

func queuesCounts(f *fixture) {
	f.putN(3, "q")
	f.Advance(10 * time.Second)
	f.put("q", "b")
	f.put("q", "c", delay(time.Hour))
	f.bury(f.takeFromQueueHead("q"))
	f.take(1)
	got := f.info("q")
	if got.Scheduled != 1 || got.Ready != 2 || got.Running != 1 || got.Dead != 1 || got.Served != 2 {
		f.Errorf("queue = %+v, want scheduled 1, ready 2, running 1, dead 1, served 2", got)
	}
	if got.OldestAge < 10*time.Second || got.OldestAge > time.Minute {
		f.Errorf("oldest age = %s, want about 10s", got.OldestAge)
	}
	f.take(2)
	if got := f.info("q"); got.OldestAge != 0 {
		f.Errorf("oldest age = %s without a ready job", got.OldestAge)
	}
}

// takeFromQueueHead returns the id of the oldest ready job of a queue without reserving it.
func (f *fixture) takeFromQueueHead(name string) string {
	f.Helper()
	page, err := f.jobs.ListJobs(f.ctx, queue.JobFilter{Tenant: "acme", Queue: name, States: []queue.State{queue.StateReady}})
	if err != nil || len(page.Jobs) == 0 {
		f.Fatalf("ListJobs = %+v, %v", page, err)
	}
	return page.Jobs[len(page.Jobs)-1].ID
}

func queuesPause(f *fixture) {
	f.putAll("q", "a b")
	j := f.takeOne()
	if info := f.setQueue("acme", "q", paused(true)); !info.Paused || info.Ready != 1 {
		f.Errorf("SetQueue = %+v, want paused with one ready", info)
	}
	f.put("q", "c") // accepted
	f.put("other", "o")
	f.wantOrder("o")
	f.settle(settlement(j, queue.VerbRelease), queue.StateReady) // what runs may end
	f.wantOrder("")
	f.setQueue("acme", "q", paused(false))
	f.wantOrder("a b c")
}

func queuesOverride(f *fixture) {
	f.configure(queue.Scheduling{Queues: map[string]queue.QueueSettings{"q": {Weight: ptr(2.0), Priority: ptr(5)}}})
	info := f.setQueue("acme", "q", queue.QueueChange{Set: queue.QueueSettings{Weight: ptr(7.0), Paused: ptr(true)}})
	if info.Weight != 7 || info.Priority != 5 || !info.Paused || info.Override.Weight == nil || *info.Override.Weight != 7 || info.Override.Priority != nil {
		f.Errorf("after set: %+v", info)
	}
	info = f.setQueue("acme", "q", queue.QueueChange{Set: queue.QueueSettings{Priority: ptr(6)}, ClearWeight: true})
	if info.Weight != 2 || info.Priority != 6 || !info.Paused || info.Override.Weight != nil {
		f.Errorf("after a partial change: %+v, want weight 2 of the template, priority 6, still paused", info)
	}
	info = f.setQueue("acme", "q", queue.QueueChange{ClearPriority: true, ClearPaused: true})
	if info.Weight != 2 || info.Priority != 5 || info.Paused || !info.Override.Empty() {
		f.Errorf("after clear: %+v, want the template", info)
	}
	*f.setQueue("acme", "q", weight(9)).Override.Weight = 1 // the caller's own copy
	if got := f.info("q"); got.Weight != 9 || *got.Override.Weight != 9 {
		f.Errorf("a caller changed the store: %+v", got)
	}
}

func queuesReplace(f *fixture) {
	f.configure(queue.Scheduling{Queues: map[string]queue.QueueSettings{"a": {Weight: ptr(2.0)}, "b": {Paused: ptr(true)}}})
	f.put("b", "b")
	f.wantOrder("")
	f.configure(queue.Scheduling{Queues: map[string]queue.QueueSettings{"c": {}}})
	if got := f.queueNames("acme"); got != "b c" {
		f.Errorf("queues = %q, want b (used) and c (configured)", got)
	}
	f.wantOrder("b") // no longer paused, at once
}

func queuesTenant(f *fixture) {
	f.put("q", "a")
	f.put("q", "b", tenant("other"))
	f.put("mine", "c", tenant("other"))
	f.setQueue("other", "q", paused(true))
	if got := f.queueNames("acme"); got != "q" {
		f.Errorf("queues of acme = %q, want q", got)
	}
	if got := f.queueNames("other"); got != "mine q" {
		f.Errorf("queues of other = %q, want mine q", got)
	}
	if got := f.info("q"); got.Paused || got.Ready != 1 {
		f.Errorf("q of acme = %+v: another tenant's pause or jobs show", got)
	}
	f.setQueue("other", "mine", weight(5))
	if _, err := f.queues.GetQueue(f.ctx, "acme", "mine"); !errors.Is(err, queue.ErrNotFound) {
		f.Errorf("GetQueue of another tenant's queue = %v, want ErrNotFound", err)
	}
	f.take(10)
	if got := f.info("q"); got.Served != 1 {
		f.Errorf("q of acme served %d, want 1", got.Served)
	}
}

func queuesBad(f *fixture) {
	nan := 0.0
	nan /= nan
	for what, c := range map[string]queue.QueueChange{
		"weight 0":        weight(0),
		"weight -1":       weight(-1),
		"weight NaN":      weight(nan),
		"weight 1e9":      weight(1e9),
		"priority 5000":   {Set: queue.QueueSettings{Priority: ptr(5000)}},
		"set and cleared": {Set: queue.QueueSettings{Weight: ptr(1.0)}, ClearWeight: true},
		"half bad":        {Set: queue.QueueSettings{Paused: ptr(true), Weight: ptr(0.0)}},
	} {
		_, err := f.queues.SetQueue(f.ctx, "acme", "q", c)
		f.wantInvalid("SetQueue with "+what, err)
	}
	_, err := f.queues.SetQueue(f.ctx, "acme", "a b", weight(1))
	f.wantInvalid("SetQueue of a bad name", err)
	for what, s := range map[string]queue.Scheduling{
		"a bad weight":        {Queues: map[string]queue.QueueSettings{"q": {Weight: ptr(-3.0)}}},
		"a bad name":          {Queues: map[string]queue.QueueSettings{"": {}}},
		"a bad tenant weight": {Tenants: map[string]queue.TenantSettings{"t": {Weight: ptr(0.0)}}},
		"a bad guard":         {MaxConsecutiveHigh: -1},
		"bad crashes":         {MaxCrashes: -1},
		"bad log retention":   {Retention: queue.Retention{Logs: "some"}},
	} {
		f.wantInvalid("Configure with "+what, f.configured.Configure(f.ctx, s))
	}
	if got := f.queueNames("acme"); got != "" {
		f.Errorf("queues = %q after refused changes", got)
	}
}
