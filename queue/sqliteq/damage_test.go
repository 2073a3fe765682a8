package sqliteq_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/queuetest"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

func enqueue(t *testing.T, s *sqliteq.Store, specs ...queue.JobSpec) (ids []string) {
	t.Helper()
	out, err := s.Enqueue(t.Context(), specs)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out {
		if o.Status != queue.EnqueueCreated {
			t.Fatalf("enqueue: %+v", o)
		}
		ids = append(ids, o.ID)
	}
	return ids
}

func job(payload string) queue.JobSpec {
	return queue.JobSpec{Tenant: "acme", Queue: "q", Type: "work", Payload: []byte(payload), MaxAttempts: 3}
}

func reserve(t *testing.T, s *sqliteq.Store, n int) []*queue.Job {
	t.Helper()
	jobs, err := s.Reserve(t.Context(), queue.ReserveParams{Worker: "w", Max: n, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func settle(t *testing.T, s *sqliteq.Store, verb queue.Verb, jobs ...*queue.Job) {
	t.Helper()
	list := make([]queue.Settlement, len(jobs))
	for i, j := range jobs {
		list[i] = queue.Settlement{Ref: queue.Ref{ID: j.ID, Token: j.Token}, Verb: verb, Error: &queue.JobError{Kind: "retryable", Message: "m"}}
	}
	out, err := s.Settle(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		if o.Status != queue.SettleOK {
			t.Fatalf("settle %s of %s: %+v", verb, jobs[i].ID, o)
		}
	}
}

// A record that cannot be read goes to the dead-letter queue once, and hurts nobody else.
func TestCase018DamagedRecord(t *testing.T) {
	t.Parallel()
	garbage := []byte("\x01\xff\xfe garbage \x00")
	for _, c := range []struct {
		name   string
		damage string
		args   []any
	}{
		{"record", "UPDATE jobs SET record = ? WHERE seq = 2", []any{garbage}},
		{"record is a number", "UPDATE jobs SET record = 17 WHERE seq = 2", nil},
		{"record is empty", "UPDATE jobs SET record = x'' WHERE seq = 2", nil},
		{"one bit", "UPDATE jobs SET record = substr(record, 1, 3) || x'7f' || substr(record, 5) WHERE seq = 2", nil},
		{"state", "UPDATE jobs SET state = ? WHERE seq = 2", []any{garbage}},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s restart=%t", c.name, restart), func(t *testing.T) {
				t.Parallel()
				s := open(t, sqliteq.Options{CacheBytes: -1})
				ids := enqueue(t, s, job("a"), job("b"), job("c"))
				execSQL(t, s.Path(), c.damage, c.args...)
				if restart {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = open(t, sqliteq.Options{Path: s.Path(), CacheBytes: -1})
				}
				jobs := reserve(t, s, 10)
				if len(jobs) != 2 || jobs[0].ID != ids[0] || jobs[1].ID != ids[2] {
					t.Fatalf("reserved %d jobs, want the two sound ones", len(jobs))
				}
				settle(t, s, queue.VerbAck, jobs...)
				dead, err := s.GetJob(t.Context(), "acme", ids[1])
				if err != nil {
					t.Fatal(err)
				}
				if dead.State != queue.StateDead || dead.LastError == nil || dead.LastError.Kind != "undecodable" {
					t.Errorf("the damaged job is %s with error %+v", dead.State, dead.LastError)
				}
				if n, err := s.CountDead(t.Context(), queue.DeadFilter{Tenant: "acme"}); n != 1 || err != nil {
					t.Errorf("%d dead jobs, %v, want 1", n, err)
				}
				page, err := s.ListJobs(t.Context(), queue.JobFilter{Tenant: "acme"})
				if err != nil || len(page.Jobs) != 3 {
					t.Errorf("list: %d jobs, %v, want 3", len(page.Jobs), err)
				}
				if report := audit(t, s); report.Counts[queue.StateDead] != 1 || report.Counts[queue.StateSucceeded] != 2 {
					t.Errorf("counts %v", report.Counts)
				}
				if c.name != "state" {
					chunk, err := s.ReplayDead(t.Context(), queue.DeadFilter{Tenant: "acme"}, "", 10)
					if err != nil || chunk.Skipped != 1 || !chunk.Done {
						t.Errorf("replay of a damaged job: %+v %v, want it skipped", chunk, err)
					}
				}
				if chunk, err := s.PurgeDead(t.Context(), queue.DeadFilter{Tenant: "acme"}, 10); err != nil || chunk.Changed != 1 {
					t.Errorf("purge: %+v %v", chunk, err)
				}
				audit(t, s)
			})
		}
	}
}

// Damage of a row in the hands of a process that dies.
func TestDamagedWhileReserved(t *testing.T) {
	t.Parallel()
	s := open(t, sqliteq.Options{})
	ids := enqueue(t, s, job("a"), job("b"))
	if got := len(reserve(t, s, 2)); got != 2 {
		t.Fatalf("reserved %d", got)
	}
	dir := copyStore(t, s)
	execSQL(t, dir+"/"+sqliteq.FileName, "UPDATE jobs SET record = x'00' WHERE seq = 1")
	s = open(t, sqliteq.Options{Dir: dir})
	jobs := reserve(t, s, 2)
	if len(jobs) != 1 || jobs[0].ID != ids[1] || jobs[0].Crashes != 1 {
		t.Fatalf("reserved %+v, want the sound job with one crash", jobs)
	}
	if j, err := s.GetJob(t.Context(), "acme", ids[0]); err != nil || j.State != queue.StateDead {
		t.Errorf("the damaged job: %+v %v", j, err)
	}
	audit(t, s)
}

// The acknowledged cancel of a running job holds when the process dies before the handler stopped.
func TestCancelSurvivesACrash(t *testing.T) {
	t.Parallel()
	s := open(t, sqliteq.Options{})
	ids := enqueue(t, s, job("a"))
	reserve(t, s, 1)
	if j, err := s.CancelJob(t.Context(), "acme", ids[0]); err != nil || !j.CancelRequested {
		t.Fatalf("cancel: %+v %v", j, err)
	}
	s = open(t, sqliteq.Options{Dir: copyStore(t, s)})
	if jobs := reserve(t, s, 1); len(jobs) != 0 {
		t.Fatalf("a cancelled job started again")
	}
	if j, err := s.GetJob(t.Context(), "acme", ids[0]); err != nil || j.State != queue.StateCancelled {
		t.Errorf("the job is %+v %v", j, err)
	}
	audit(t, s)
}

// Crashes of the process count against the budget that was configured before, in the order of the reservations.
func TestCrashBudgetAcrossRestarts(t *testing.T) {
	t.Parallel()
	clock := queuetest.NewFakeClock()
	s := open(t, sqliteq.Options{Clock: clock})
	if err := s.Configure(t.Context(), queue.Scheduling{MaxCrashes: 2}); err != nil {
		t.Fatal(err)
	}
	ids := enqueue(t, s, job("a"), job("b"), job("c"), job("d"))
	batch := reserve(t, s, 3)
	settle(t, s, queue.VerbYield, batch[1]) // settled: not in the hands of the process any more
	clock.Advance(2 * time.Second)
	s = open(t, sqliteq.Options{Dir: copyStore(t, s), Clock: clock})
	jobs := reserve(t, s, 10)
	var order []string
	for _, j := range jobs {
		order = append(order, j.ID)
	}
	if want := []string{ids[0], ids[2], ids[3], ids[1]}; fmt.Sprint(order) != fmt.Sprint(want) {
		t.Errorf("order after the crash %v, want %v", order, want)
	}
	a := jobs[0].Attempts
	if jobs[0].Crashes != 1 || jobs[0].Attempt != 1 || len(a) != 1 || a[0].Outcome != queue.AttemptCrashed || a[0].DurationMS != 2000 || a[0].Worker != "w" {
		t.Errorf("after one crash: %+v", jobs[0])
	}
	if jobs[3].Crashes != 0 {
		t.Errorf("the yielded job has %d crashes", jobs[3].Crashes)
	}
	s = open(t, sqliteq.Options{Dir: copyStore(t, s), Clock: clock})
	j, err := s.GetJob(t.Context(), "acme", ids[0])
	if err != nil || j.State != queue.StateDead || j.Crashes != 2 || j.LastError.Kind != queue.ErrorKindCrash {
		t.Errorf("after two crashes of two allowed: %+v %v", j, err)
	}
	audit(t, s)
}

// Tokens of a process that is gone are never current again.
func TestTokensEndWithTheProcess(t *testing.T) {
	t.Parallel()
	s := open(t, sqliteq.Options{})
	enqueue(t, s, job("a"))
	old := reserve(t, s, 1)[0]
	s = open(t, sqliteq.Options{Dir: copyStore(t, s)})
	again := reserve(t, s, 1)[0]
	out, err := s.Settle(t.Context(), []queue.Settlement{{Ref: queue.Ref{ID: old.ID, Token: old.Token}, Verb: queue.VerbAck}})
	if err != nil || out[0].Status != queue.SettleLeaseLost {
		t.Errorf("settle with an old token: %+v %v", out, err)
	}
	settle(t, s, queue.VerbAck, again)
}

// Ids of other stores, and invented ones, are not found.
func TestForeignIDs(t *testing.T) {
	t.Parallel()
	a, b := open(t, sqliteq.Options{}), open(t, sqliteq.Options{})
	id := enqueue(t, a, job("a"))[0]
	enqueue(t, b, job("b"))
	last := byte('0')
	if id[len(id)-1] == last {
		last = '1'
	}
	for _, wrong := range []string{id, "job_", "", id[:len(id)-1] + string(last), "job_00000000000000000000000000"} {
		if _, err := b.GetJob(t.Context(), "acme", wrong); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("GetJob(%q) in another store: %v", wrong, err)
		}
	}
	if _, err := a.GetJob(t.Context(), "other", id); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("another tenant's job: %v", err)
	}
}

func audit(t *testing.T, s *sqliteq.Store) queue.AuditReport {
	t.Helper()
	report, err := s.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range report.Faults {
		t.Errorf("audit: %s", fault)
	}
	return report
}
