package host_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/handlertest"
	"github.com/taskhost/taskhost/host"
	"github.com/taskhost/taskhost/host/catalog"
	"github.com/taskhost/taskhost/host/hosttest"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

// crashing is a runtime under which the jobs with the payload "bad" of version 1 die.
func crashing() *hosttest.Runtime {
	return &hosttest.Runtime{RuntimeName: "func", Fn: func(_ context.Context, inv *handlers.Invocation) handlers.Outcome {
		if inv.Version.Number == 1 && string(inv.Payload) == "bad" {
			return handlers.Outcome{Kind: handlers.OutcomeCrashed, Error: &handlers.Error{Kind: "crash", Message: "runner died (signal: aborted)"}}
		}
		return handlertest.Succeed(nil)
	}}
}

func inCrashingRig(t *testing.T, test func(r *rig, restart func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := hosttest.Wrap(memq.New(memq.Options{}))
		r := newRig(t, store, crashing(), nil)
		start := func() {
			if err := r.host.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		stop := func() {
			if err := r.host.Stop(context.Background()); err != nil {
				t.Errorf("stop: %v", err)
			}
		}
		start()
		test(r, func() {
			stop()
			r.host = newRig(t, store, crashing(), nil).host
			start()
		})
		stop()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// serve uploads n versions of type work for a tenant and makes the first live.
func (r *rig) serve(tenant string, n int) {
	r.t.Helper()
	for i := range n {
		if _, _, err := r.host.Catalog().Upload(r.t.Context(), tenant, "work", fmt.Appendf(nil, "%s %d", tenant, i)); err != nil {
			r.t.Fatal(err)
		}
	}
	r.activate(tenant, 1)
}

func (r *rig) activate(tenant string, version int) {
	r.t.Helper()
	if _, err := r.host.Catalog().SetLive(r.t.Context(), tenant, "work", version); err != nil {
		r.t.Fatal(err)
	}
}

func payload(s string) func(*queue.JobSpec) { return func(j *queue.JobSpec) { j.Payload = []byte(s) } }

func (r *rig) quarantined() bool {
	_, is := r.host.Catalog().Quarantined("acme", "acme", "work", 1)
	return is
}

// kills enqueues n jobs that crash, and waits for their end in the dead-letter queue, or until they are put off.
func (r *rig) kills(n int) {
	r.t.Helper()
	for _, id := range r.enqueue(n, payload("bad")) {
		r.await(id, func(j *queue.Job) bool { return j.State == queue.StateDead || r.quarantined() })
	}
}

func TestAVersionThatKeepsCrashingIsQuarantinedUntilOneIsMadeLive(t *testing.T) {
	for name, lift := range map[string]func(r *rig){
		"the same again": func(r *rig) { r.activate("acme", 1) },
		"another one":    func(r *rig) { r.activate("acme", 2) },
	} {
		t.Run(name, func(t *testing.T) {
			inCrashingRig(t, func(r *rig, restart func()) {
				r.serve("acme", 2)
				r.serve("other", 1)
				r.kills(catalog.QuarantineJobs - 1)
				if r.quarantined() {
					t.Fatalf("quarantined after %d jobs", catalog.QuarantineJobs-1)
				}
				r.kills(1)
				if !r.quarantined() {
					t.Fatalf("not quarantined after %d jobs", catalog.QuarantineJobs)
				}
				if err := r.host.Catalog().Quarantines(); err == nil || !strings.Contains(err.Error(), "work version 1 for tenant acme: 5 jobs crashed") {
					t.Errorf("the host says %v", err)
				}
				good := r.enqueue(1, payload("good"))[0]
				j := r.await(good, func(j *queue.Job) bool { return len(j.Attempts) >= 3 })
				if j.State != queue.StateScheduled || j.Reason != queue.ReasonDefer || j.Attempt > 1 || j.Crashes != 0 {
					t.Errorf("a job meanwhile is %s (%s), attempt %d, %d crashes", j.State, j.Reason, j.Attempt, j.Crashes)
				}
				// Another tenant's version of the same name goes on.
				theirs := r.enqueue(1, func(s *queue.JobSpec) { s.Tenant = "other" })[0]
				synctest.Wait()
				if j, err := r.store.GetJob(r.t.Context(), "other", theirs); err != nil || j.State != queue.StateSucceeded {
					t.Errorf("another tenant's job: %+v, %v", j, err)
				}
				restart()
				if !r.quarantined() {
					t.Fatal("the quarantine did not survive a restart")
				}
				lift(r)
				began := time.Now()
				if j := r.awaitEnd(good); j.State != queue.StateSucceeded || j.Attempt != 1 {
					t.Errorf("after it was lifted: %s, attempt %d", j.State, j.Attempt)
				}
				if took := time.Since(began); took > 16*time.Second {
					t.Errorf("the job ran %s after the end of the quarantine", took)
				}
				if err := r.host.Catalog().Quarantines(); err != nil {
					t.Error(err)
				}
				restart()
				if r.quarantined() {
					t.Error("the quarantine came back with a restart")
				}
			})
		})
	}
}

// Crashes of one job, of jobs that were not alone, or far apart in time, say nothing about the version.
func TestFewOrOldCrashesQuarantineNothing(t *testing.T) {
	inCrashingRig(t, func(r *rig, _ func()) {
		r.serve("acme", 1)
		for range 3 * catalog.QuarantineJobs {
			r.kills(1)
			time.Sleep(catalog.QuarantineWindow / (catalog.QuarantineJobs - 1)) // virtual
		}
		if r.quarantined() {
			t.Error("quarantined for crashes that are far apart")
		}
	})
}

// A host-wide version is held for the tenant whose jobs crash, and for no other.
func TestAHostWideVersionIsQuarantinedForOneTenant(t *testing.T) {
	inCrashingRig(t, func(r *rig, _ func()) {
		wide := []catalog.ConfiguredHandler{{Type: "work", Module: []byte("wide")}}
		if err := r.host.Catalog().EnsureConfigured(r.t.Context(), wide); err != nil {
			t.Fatal(err)
		}
		for _, id := range r.enqueue(catalog.QuarantineJobs, payload("bad")) {
			r.await(id, func(j *queue.Job) bool { return j.Crashes >= 2 })
		}
		if _, is := r.host.Catalog().Quarantined("acme", "", "work", 1); !is {
			t.Fatal("not quarantined")
		}
		theirs := r.enqueue(1, func(s *queue.JobSpec) { s.Tenant = "other" })[0]
		synctest.Wait()
		if j, err := r.store.GetJob(r.t.Context(), "other", theirs); err != nil || j.State != queue.StateSucceeded {
			t.Errorf("another tenant's job: %+v, %v", j, err)
		}
		if err := r.host.Catalog().EnsureConfigured(r.t.Context(), wide); err != nil {
			t.Fatal(err)
		}
		if err := r.host.Catalog().Quarantines(); err != nil {
			t.Error(err)
		}
	})
}

// Every host of a store holds what one of them has quarantined, and lifts what another lifts.
func TestQuarantineIsOfAllHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memq.New(memq.Options{})
		var hosts []*rig
		for i := range 2 {
			r := newRig(t, hosttest.Wrap(engine), crashing(), func(o *host.Options) { o.Shared, o.NoWorker = true, i == 1 })
			if err := r.host.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			hosts = append(hosts, r)
		}
		hosts[0].serve("acme", 1)
		hosts[0].kills(catalog.QuarantineJobs)
		time.Sleep(catalog.FollowEvery + time.Second) // virtual
		if !hosts[1].quarantined() {
			t.Error("the other host does not know of the quarantine")
		}
		hosts[1].activate("acme", 1)
		time.Sleep(catalog.FollowEvery + time.Second)
		if hosts[0].quarantined() {
			t.Error("the other host does not know that the quarantine was lifted")
		}
		for _, r := range hosts {
			if err := r.host.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
}
