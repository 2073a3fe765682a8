package redisq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
	"github.com/taskhost/taskhost/queue/redisq/redistest"
)

func mail(label string) queue.JobSpec {
	return queue.JobSpec{Tenant: "acme", Queue: "mail", Type: "send", Payload: []byte(label), MaxAttempts: 3}
}

func put(t *testing.T, s *redisq.Store, specs ...queue.JobSpec) []string {
	t.Helper()
	out, err := s.Enqueue(t.Context(), specs)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(out))
	for i, o := range out {
		if ids[i] = o.ID; o.Status != queue.EnqueueCreated {
			t.Fatalf("enqueue outcome %+v", o)
		}
	}
	return ids
}

func take(t *testing.T, s *redisq.Store, n int, lease time.Duration) []*queue.Job {
	t.Helper()
	jobs, err := s.Reserve(t.Context(), queue.ReserveParams{Worker: "w", Max: n, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != n {
		t.Fatalf("reserved %d jobs, want %d", len(jobs), n)
	}
	return jobs
}

func ref(j *queue.Job) queue.Ref { return queue.Ref{ID: j.ID, Token: j.Token} }

func settle(t *testing.T, s *redisq.Store, v queue.Verb, jobs ...*queue.Job) {
	t.Helper()
	list := make([]queue.Settlement, len(jobs))
	for i, j := range jobs {
		list[i] = queue.Settlement{Ref: ref(j), Verb: v, Error: &queue.JobError{Kind: "retryable", Message: "no"}}
	}
	out, err := s.Settle(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out {
		if o.Status != queue.SettleOK {
			t.Fatalf("settle %s: %+v", v, o)
		}
	}
}

func books(t *testing.T, s *redisq.Store) queue.AuditReport {
	t.Helper()
	r, err := s.Audit(t.Context())
	if err != nil || len(r.Faults) > 0 {
		t.Fatalf("audit: %+v %v", r, err)
	}
	return r
}

func client(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// own starts a server for one test.
func own(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	s, err := redistest.Start(t.Context(), t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
	})
	return s
}

// Every reply is lost once, on every verb: nothing is lost or done twice.
func TestLostReplies(t *testing.T) { inBothModes(t, lostReplies) }

func lostReplies(t *testing.T, m mode) {
	server := shared.Server(t)
	p, err := redistest.NewProxy(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	url, err := p.URL(m.url(t))
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, redisq.Options{URL: url})
	ctx := t.Context()
	lossy := func(what string, call func()) {
		t.Helper()
		before := p.Lost()
		if m == redisq.ModeNoLua {
			p.DropReplyTo("\r\nexec\r\n")
		} else {
			p.DropReplies(1)
		}
		call()
		if p.Lost() != before+1 {
			t.Fatalf("%s: no reply was lost: this proves nothing", what)
		}
	}
	var ids []string
	lossy("enqueue", func() { ids = put(t, s, mail("a"), mail("b"), mail("c"), mail("d")) })
	if r := books(t, s); r.Enqueued != 4 || r.Counts[queue.StateReady] != 4 {
		t.Fatalf("after an enqueue whose reply was lost: %+v", r)
	}
	var jobs []*queue.Job
	lossy("reserve", func() { jobs = take(t, s, 4, time.Minute) })
	for i, j := range jobs {
		if j.ID != ids[i] || string(j.Payload) != string("abcd"[i]) {
			t.Fatalf("reserved %s %q at place %d", j.ID, j.Payload, i)
		}
	}
	if r := books(t, s); r.Counts[queue.StateRunning] != 4 {
		t.Fatalf("after a reservation whose reply was lost: %+v", r)
	}
	lossy("extend", func() {
		out, err := s.Extend(ctx, []queue.Ref{ref(jobs[0])}, time.Minute)
		if err != nil || out[0].Status != queue.ExtendOK {
			t.Fatalf("extend: %+v %v", out, err)
		}
	})
	lossy("log", func() {
		if err := s.AppendLogs(ctx, ref(jobs[1]), []queue.LogLine{{Message: "once"}}); err != nil {
			t.Fatal(err)
		}
	})
	if page, err := s.JobLogs(ctx, "acme", ids[1], 0, 0); err != nil || len(page.Lines) != 1 {
		t.Fatalf("log: %+v %v", page, err)
	}
	lossy("ack", func() { settle(t, s, queue.VerbAck, jobs[0]) })
	lossy("nack", func() { settle(t, s, queue.VerbNack, jobs[1]) })
	if j, err := s.GetJob(ctx, "acme", ids[1]); err != nil || j.Attempt != 1 || len(j.Attempts) != 1 {
		t.Fatalf("after a nack whose reply was lost: %+v %v", j, err)
	}
	lossy("dead", func() { settle(t, s, queue.VerbDead, jobs[2]) })
	lossy("replay", func() {
		c, err := s.ReplayDead(ctx, queue.DeadFilter{Tenant: "acme", IDs: []string{ids[2]}}, "", 1)
		if err != nil || c.Changed != 1 {
			t.Fatalf("replay: %+v %v", c, err)
		}
	})
	lossy("release", func() { settle(t, s, queue.VerbRelease, jobs[3]) })
	lossy("cancel", func() {
		if j, err := s.CancelJob(ctx, "acme", ids[3]); err != nil || j.State != queue.StateCancelled {
			t.Fatalf("cancel: %+v %v", j, err)
		}
	})
	lossy("delete", func() {
		if err := s.DeleteJob(ctx, "acme", ids[3]); err != nil {
			t.Fatal(err)
		}
	})
	lossy("record", func() {
		if _, err := s.PutRecord(ctx, "k", "a", []byte("v"), 0); err != nil {
			t.Fatal(err)
		}
	})
	if r := books(t, s); r.Enqueued != 4 || r.Removed != 1 || r.Counts[queue.StateReady] != 2 || r.Counts[queue.StateSucceeded] != 1 {
		t.Fatalf("in the end: %+v", r)
	}
}

// SCRIPT FLUSH and CLIENT KILL at any moment cost nobody anything, also not who blocks.
func TestFlushedScriptsAndKilledClients(t *testing.T) { inBothModes(t, flushedScriptsAndKilledClients) }

func flushedScriptsAndKilledClients(t *testing.T, m mode) {
	server := own(t)
	s := open(t, redisq.Options{URL: m.of(server)})
	admin := client(t, server.Addr())
	for _, trouble := range []string{"script flush", "client kill type normal skipme yes"} {
		cause := func() {
			args := []any{}
			for _, w := range strings.Fields(trouble) {
				args = append(args, w)
			}
			if err := admin.Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 20 {
			cause()
			put(t, s, mail(fmt.Sprint(i)))
			cause()
			j := take(t, s, 1, time.Minute)
			cause()
			if out, err := s.Extend(t.Context(), []queue.Ref{ref(j[0])}, time.Minute); err != nil || out[0].Status != queue.ExtendOK {
				t.Fatalf("%s: extend %v %v", trouble, out, err)
			}
			cause()
			settle(t, s, queue.VerbAck, j...)
		}
	}
	if r := books(t, s); r.Enqueued != 40 || r.Counts[queue.StateSucceeded] != 40 {
		t.Fatalf("in the end: %+v", r)
	}
}

// A full Redis refuses new jobs whole, lets the backlog drain, and takes new ones again.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	server := own(t, "--maxmemory", "8mb", "--maxmemory-policy", "noeviction")
	s := open(t, redisq.Options{URL: server.URL("x:")})
	if err := s.Configure(t.Context(), queue.Scheduling{Retention: queue.Retention{Succeeded: -1}}); err != nil {
		t.Fatal(err)
	}
	spec := mail("")
	spec.Payload = make([]byte, 2000)
	created := int64(0)
	for full := false; !full; {
		out, err := s.Enqueue(t.Context(), []queue.JobSpec{spec, spec, spec, spec})
		switch {
		case err == nil:
			for _, o := range out {
				if o.Status != queue.EnqueueCreated {
					t.Fatalf("outcome %+v", o)
				}
			}
			created += int64(len(out))
		case errors.Is(err, queue.ErrUnavailable):
			full = true
		default:
			t.Fatal(err)
		}
		if created > 100_000 {
			t.Fatal("Redis never gets full")
		}
	}
	if r := books(t, s); r.Enqueued != created || r.Counts[queue.StateReady] != created {
		t.Fatalf("%d created, but %+v", created, r)
	}
	for left := created; left > 0; left -= 10 {
		n := min(10, int(left))
		settle(t, s, queue.VerbAck, take(t, s, n, time.Minute)...)
	}
	if r := books(t, s); r.Removed != created {
		t.Fatalf("%d created, but %+v", created, r)
	}
	put(t, s, spec)
}

// After Redis was away, running jobs get their lease once more. Who comes back goes on; what is reclaimed was interrupted, not
// crashed.
func TestLeasesAfterARestart(t *testing.T) { inBothModes(t, leasesAfterARestart) }

func leasesAfterARestart(t *testing.T, m mode) {
	const lease = 400 * time.Millisecond
	server := own(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, redisq.Options{URL: m.of(server)})
	if _, err := s.Maintain(t.Context()); err != nil { // remembers the run of the server
		t.Fatal(err)
	}
	ids := put(t, s, mail("a"), mail("b"))
	a, b := take(t, s, 1, lease)[0], take(t, s, 1, lease)[0]
	ended := a.LeaseUntil
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reserve(t.Context(), queue.ReserveParams{Max: 1, Lease: lease}); !errors.Is(err, queue.ErrUnavailable) {
		t.Fatalf("reserve while Redis is away: %v", err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, s, ended)
	if r, err := s.Maintain(t.Context()); err != nil || r.Reaped != 0 {
		t.Fatalf("the first maintenance after the restart: %+v %v, want nothing reaped", r, err)
	}
	if out, err := s.Extend(t.Context(), []queue.Ref{ref(a)}, time.Minute); err != nil || out[0].Status != queue.ExtendOK {
		t.Fatalf("the holder that came back: %+v %v", out, err)
	}
	for reaped := 0; reaped == 0; {
		if err := s.WaitDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := s.Maintain(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reaped = r.Reaped
	}
	got, err := s.GetJob(t.Context(), "acme", ids[1])
	if err != nil || got.State != queue.StateReady || got.Crashes != 0 || got.Interruptions != 1 || got.Attempt != 0 {
		t.Fatalf("the job whose holder did not come back: %+v %v, want ready with one interruption", got, err)
	}
	if out, err := s.Extend(t.Context(), []queue.Ref{ref(b)}, time.Minute); err != nil || out[0].Status != queue.ExtendLost {
		t.Fatalf("its old token: %+v %v", out, err)
	}
	settle(t, s, queue.VerbAck, a)
}

// until waits for a moment of store time.
func until(t *testing.T, s *redisq.Store, at time.Time) {
	t.Helper()
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(at.Sub(now) + 10*time.Millisecond)
}

const workerEnv = "REDISQ_TEST_WORKER"

// runWorker is the life of the process that TestKilledWorker kills: it reserves a job, says so and hangs.
func runWorker() {
	s, err := redisq.Open(context.Background(), redisq.Options{URL: os.Getenv(workerEnv)})
	if err == nil {
		var jobs []*queue.Job
		jobs, err = s.Reserve(context.Background(), queue.ReserveParams{Worker: "doomed", Max: 1, Lease: time.Second})
		if err == nil && len(jobs) == 1 {
			fmt.Println(jobs[0].ID)
			select {}
		}
	}
	fmt.Fprintln(os.Stderr, "no job:", err)
	os.Exit(1)
}

// The job of a host that is killed comes back within its lease and two seconds, also when that host led maintenance.
func TestKilledWorker(t *testing.T) { inBothModes(t, killedWorker) }

func killedWorker(t *testing.T, m mode) {
	url := m.url(t)
	s := open(t, redisq.Options{URL: url})
	id := put(t, s, mail("a"))[0]
	ctx, stop := context.WithCancel(t.Context())
	maintained := make(chan error, 1)
	go func() {
		for {
			if err := s.WaitDue(ctx); err != nil {
				maintained <- nil
				return
			}
			if _, err := s.Maintain(ctx); err != nil && ctx.Err() == nil {
				maintained <- err
				return
			}
		}
	}()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+url)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len(id))
	if _, err := out.Read(line); err != nil || string(line) != id {
		t.Fatalf("the worker printed %q, %v", line, err)
	}
	killed := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	if err := s.Wait(t.Context(), queue.View{}); err != nil {
		t.Fatal(err)
	}
	j := take(t, s, 1, time.Minute)[0]
	if took := time.Since(killed); j.ID != id || j.Crashes != 1 || took > 3*time.Second {
		t.Errorf("%s came back after %s with %d crashes, want %s within its lease of 1s and 2s, with one crash", j.ID, took, j.Crashes, id)
	}
	stop()
	if err := <-maintained; err != nil {
		t.Error(err)
	}
}

// Ten hosts wait, one job comes: one wakes, the one that waited longest; the others stay blocked. Three more jobs in one call
// wake three.
func TestOneJobWakesOneHost(t *testing.T) { inBothModes(t, oneJobWakesOneHost) }

func oneJobWakesOneHost(t *testing.T, m mode) {
	server := own(t)
	producer := open(t, redisq.Options{URL: m.of(server)})
	admin := client(t, server.Addr())
	const hosts = 10
	woken := make(chan int, hosts)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{}, hosts)
	for i := range hosts {
		s := open(t, redisq.Options{URL: m.of(server) + "&client_name=" + hostName})
		s.SetGuardDelay(never) // who woke does not come to reserve
		go func() {
			if s.Wait(ctx, queue.View{}) == nil {
				woken <- i
			}
			done <- struct{}{}
		}()
		waitBlocked(t, admin, i+1)
	}
	put(t, producer, mail("a"))
	if first := <-woken; first != 0 {
		t.Errorf("host %d woke, want the one that waited longest", first)
	}
	if n := blockedClients(t, admin); n != hosts-1 {
		t.Errorf("%d hosts stay blocked, want %d", n, hosts-1)
	}
	put(t, producer, mail("b"), mail("c"), mail("d"))
	for range 3 {
		<-woken
	}
	if n := blockedClients(t, admin); n != hosts-4 {
		t.Errorf("%d hosts stay blocked after three more jobs, want %d", n, hosts-4)
	}
	stop()
	for range hosts {
		<-done
	}
}

// hostName is the name of the connections that waitBlocked counts.
const hostName = "host"

// waitBlocked waits until n connections named hostName block.
func waitBlocked(t *testing.T, c *redis.Client, n int) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for blockedClients(t, c) != n {
		select {
		case <-look.C:
		case <-t.Context().Done():
			t.Fatal("nobody blocks")
		}
	}
}

func blockedClients(t *testing.T, c *redis.Client) int {
	t.Helper()
	text, err := c.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, " name="+hostName+" ") && strings.Contains(line, " flags=b ") {
			n++
		}
	}
	return n
}
