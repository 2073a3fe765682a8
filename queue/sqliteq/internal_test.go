package sqliteq

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func testIDs(t testing.TB) idCodec {
	t.Helper()
	c, err := newIDCodec([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func FuzzIDCodec(f *testing.F) {
	f.Add(int64(1), int64(1)<<60)
	f.Add(int64(seqMax), int64(1_790_000_000_000)<<tickBits)
	f.Fuzz(func(t *testing.T, seq, b int64) {
		if seq < 0 || seq > seqMax || b < 0 {
			t.Skip()
		}
		c := testIDs(t)
		id := c.id(birth(b), seq)
		gotBirth, gotSeq, ok := c.parse(id)
		if !ok || gotBirth != birth(b) || gotSeq != seq {
			t.Errorf("parse(id(%d, %d)) = %d, %d, %t", b, seq, gotBirth, gotSeq, ok)
		}
	})
}

func FuzzParseID(f *testing.F) {
	f.Add("job_00000000000000000000000000")
	f.Add(testIDs(f).id(1<<60, 7))
	f.Fuzz(func(t *testing.T, id string) {
		c := testIDs(t)
		if b, seq, ok := c.parse(id); ok && c.id(b, seq) != id {
			t.Errorf("%q parses to %d, %d, which is %q", id, b, seq, c.id(b, seq))
		}
	})
}

// Ids rise with creation, also within a millisecond and when one is full.
func TestIDsRise(t *testing.T) {
	t.Parallel()
	c := testIDs(t)
	random := rand.New(rand.NewPCG(1, 1))
	now := time.UnixMilli(1_790_000_000_000)
	var last birth
	before := ""
	for seq := range int64(600_000) {
		last = nextBirth(last, now, random)
		if id := c.id(last, seq); id <= before {
			t.Fatalf("id %d is %s after %s", seq, id, before)
		} else {
			before = id
		}
	}
	if ahead := last.time().Sub(now); ahead < time.Millisecond || ahead > 5*time.Millisecond {
		t.Errorf("600,000 ids of one millisecond ran %s ahead", ahead)
	}
}

func FuzzRecord(f *testing.F) {
	rec, _ := encodeRecord(&queue.JobSpec{Type: "t", Payload: []byte("p"), Headers: map[string]string{"a": "b"}, Unique: queue.Unique{Key: "k"}, IdempotencyKey: "i"})
	f.Add(rec)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		sp, err := decodeRecord(b)
		if err != nil {
			return
		}
		sp.job.Payload = sp.payload
		if sp.flags&recordLarge == 0 && len(sp.payload) <= inlineMax {
			again, _ := encodeRecord(&sp.job)
			if _, err := decodeRecord(again); err != nil {
				t.Errorf("a decoded record does not encode: %v", err)
			}
		}
	})
}

func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, inlineMax, inlineMax + 1, 100_000} {
		s := queue.JobSpec{Type: "type", Payload: bytes.Repeat([]byte{0xff}, size), PayloadJSON: true,
			Headers: map[string]string{"h": "1", "": ""}, Labels: map[string]string{"l": "2"}, Timeout: time.Hour, MaxAttempts: 7,
			Backoff: queue.Backoff{Base: 1, Max: 2, Jitter: queue.JitterNone}, IdempotencyKey: "i", RetriedFrom: "job_x",
			Unique: queue.Unique{Key: "u", Until: queue.UniqueUntilStarted, OnConflict: queue.UniqueExisting}}
		rec, large := encodeRecord(&s)
		got, err := decodeRecord(rec)
		if err != nil {
			t.Fatal(err)
		}
		payload := got.payload
		if got.flags&recordLarge != 0 {
			payload = large
		}
		if !bytes.Equal(payload, s.Payload) || recordPayloadBytes(rec) != size || (large != nil) != (size > inlineMax) {
			t.Errorf("payload of %d bytes: got %d, large %d", size, len(payload), len(large))
		}
		want := s
		want.Payload = nil
		if !reflect.DeepEqual(got.job, want) {
			t.Errorf("got  %+v\nwant %+v", got.job, want)
		}
		for i := range rec { // every flipped bit is noticed
			bad := slices.Clone(rec)
			bad[i] ^= 1 << (i % 8)
			if _, err := decodeRecord(bad); err == nil {
				t.Fatalf("a flipped bit at byte %d of %d is not noticed", i, len(rec))
			}
			if i > 200 {
				break
			}
		}
	}
}

func TestStateRoundTrip(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_790_000_000_123).UTC()
	s := &state{flags: stateCancel | stateLogs, run: 2, attempt: 3, crashes: 1, interruptions: 4, returns: 9, reason: queue.ReasonRetry,
		startedAt: at, lastError: &queue.JobError{Kind: "k", Message: "m", Retryable: true},
		attempts: []queue.Attempt{{Run: 1, Attempt: 1, Outcome: queue.AttemptFailed, Error: &queue.JobError{Kind: "x"}, StartedAt: at, DurationMS: 5,
			Fuel: 6, PeakMemoryBytes: 7, Worker: "w", Handler: queue.Handler{Runtime: "wasm", Version: 8}}},
		progress: &queue.Progress{Done: 1, Total: 2, Message: "half", At: at}, handler: queue.Handler{Runtime: "wasm", Version: 3},
		resultBytes: 2, result: []byte("ok"), logSeq: 11, cutRun: 2, cutAttempt: 3}
	got, err := decodeState(s.encode())
	if err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("got  %+v %v\nwant %+v", got, err, s)
	}
	for _, result := range [][]byte{nil, {}} {
		got, err := decodeState((&state{run: 1, result: result}).encode())
		if err != nil || (got.result == nil) != (result == nil) {
			t.Errorf("result %v comes back as %v, %v", result, got.result, err)
		}
	}
}

func FuzzState(f *testing.F) {
	f.Add(fresh.encode())
	f.Add((&state{run: 1, attempts: []queue.Attempt{{Run: 1}}, progress: &queue.Progress{}, result: []byte("r")}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		// The checksum keeps the fuzzer out; give it a valid one.
		e := encoder{b: append([]byte{stateFormat}, b...)}
		if s, err := decodeState(e.seal()); err == nil {
			if again, err := decodeState(s.encode()); err != nil || !reflect.DeepEqual(s.attempts, again.attempts) {
				t.Errorf("%+v comes back as %+v, %v", s, again, err)
			}
		}
	})
}

func openTest(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Dir == "" && o.Path == "" {
		o.Dir = t.TempDir()
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func specs(n int, size int) []queue.JobSpec {
	list := make([]queue.JobSpec, n)
	for i := range list {
		list[i] = queue.JobSpec{Tenant: "acme", Queue: "q", Type: "t", Payload: make([]byte, size), MaxAttempts: 3}
	}
	return list
}

// A full disk fails whole groups, stores nothing of them, keeps what is reserved, and ends when there is room again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openTest(t, Options{Fatal: func(err error) { t.Errorf("a full disk is not fatal: %v", err) }})
	if _, err := s.Enqueue(ctx, specs(20, 100)); err != nil {
		t.Fatal(err)
	}
	held, err := s.Reserve(ctx, queue.ReserveParams{Worker: "w", Max: 5, Lease: time.Minute})
	if err != nil || len(held) != 5 {
		t.Fatalf("reserve: %d %v", len(held), err)
	}
	setPages := func(n string) {
		if err := s.step(ctx, func(g *group, _ *step) error {
			return g.query("PRAGMA max_page_count = "+n, func([]driver.Value) error { return nil })
		}); err != nil {
			t.Fatal(err)
		}
	}
	setPages("1") // SQLite takes the present size: the file cannot grow
	if _, err := s.Enqueue(ctx, specs(200, 1000)); !errors.Is(err, queue.ErrUnavailable) {
		t.Fatalf("enqueue on a full disk: %v, want ErrUnavailable", err)
	}
	if err := s.Err(); !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), s.Path()) {
		t.Errorf("Err() = %v", err)
	}
	s.w.c.exec(ctx, "SELECT 1") // no transaction is left open
	setPages("1000000")
	if _, err := s.Reserve(ctx, queue.ReserveParams{Worker: "w", Max: 1, Lease: time.Minute}); err != nil {
		t.Errorf("reserve with room again: %v", err)
	}
	if err := s.Err(); err != nil {
		t.Errorf("Err() with room again: %v", err)
	}
	list := make([]queue.Settlement, len(held))
	for i, j := range held {
		list[i] = queue.Settlement{Ref: queue.Ref{ID: j.ID, Token: j.Token}, Verb: queue.VerbAck}
	}
	out, err := s.Settle(ctx, list)
	if err != nil || out[0].Status != queue.SettleOK {
		t.Errorf("settle: %+v %v", out, err)
	}
	report, err := s.Audit(ctx)
	if err != nil || len(report.Faults) > 0 || report.Enqueued != 20 {
		t.Errorf("audit: %+v %v, want 20 jobs", report, err)
	}
}

// Every kind of request is undone in memory when its commit fails: nothing changes.
func TestFailedCommitChangesNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openTest(t, Options{})
	mixed := specs(8, 10)
	mixed[1].Delay, mixed[2].ExpiresIn, mixed[3].Delay = time.Hour, time.Hour, time.Millisecond
	mixed[4].Unique.Key = "u"
	out, err := s.Enqueue(ctx, mixed)
	if err != nil {
		t.Fatal(err)
	}
	id := func(i int) string { return out[i].ID }
	held, err := s.Reserve(ctx, queue.ReserveParams{Worker: "w", Max: 2, Lease: 10 * time.Millisecond})
	if err != nil || len(held) != 2 {
		t.Fatal(len(held), err)
	}
	dump := func() string {
		r, err := s.Audit(ctx)
		if err != nil || len(r.Faults) > 0 {
			t.Fatalf("audit: %+v %v", r, err)
		}
		var b strings.Builder
		fmt.Fprintln(&b, r.Counts, r.Enqueued, r.Removed)
		infos, err := s.ListQueues(ctx, "acme")
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range infos {
			i.OldestAge = 0
			fmt.Fprintf(&b, "%+v\n", i)
		}
		for i := range out {
			j, err := s.GetJob(ctx, "acme", id(i))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%+v\n", *j)
		}
		return b.String()
	}
	ref := queue.Ref{ID: held[0].ID, Token: held[0].Token}
	before := dump()
	for name, call := range map[string]func() error{
		"enqueue": func() error { _, err := s.Enqueue(ctx, specs(3, 10)); return err },
		"settle": func() error {
			_, err := s.Settle(ctx, []queue.Settlement{{Ref: ref, Verb: queue.VerbRelease}, {Ref: queue.Ref{ID: held[1].ID, Token: held[1].Token}, Verb: queue.VerbAck}})
			return err
		},
		"cancel waiting":   func() error { _, err := s.CancelJob(ctx, "acme", id(5)); return err },
		"cancel scheduled": func() error { _, err := s.CancelJob(ctx, "acme", id(1)); return err },
		"cancel running":   func() error { _, err := s.CancelJob(ctx, "acme", held[0].ID); return err },
		"delete":           func() error { return s.DeleteJob(ctx, "acme", id(2)) },
		"pause": func() error {
			paused := true
			_, err := s.SetQueue(ctx, "acme", "q", queue.QueueChange{Set: queue.QueueSettings{Paused: &paused}})
			return err
		},
		"progress":   func() error { return s.SetProgress(ctx, ref, queue.Progress{Done: 1}) },
		"checkpoint": func() error { return s.PutCheckpoint(ctx, ref, []byte("c")) },
		"log":        func() error { return s.AppendLogs(ctx, ref, []queue.LogLine{{Message: "m"}}) },
		"configure":  func() error { return s.Configure(ctx, queue.Scheduling{MaxCrashes: 9}) },
		"maintain":   func() error { _, err := s.Maintain(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			// The transaction fails at its end, whatever is in it.
			poison := &step{done: make(chan error, 1), size: 1, run: func(g *group) error { return g.exec("INSERT INTO meta (one) VALUES (1)") }}
			running, hold := make(chan struct{}), make(chan struct{})
			gate := &step{done: make(chan error, 1), size: 1, run: func(*group) error { close(running); <-hold; return nil }}
			s.w.submit(gate)
			<-running
			result := make(chan error, 1)
			go func() { result <- call() }()
			for waiting := 0; waiting == 0; {
				s.w.mu.Lock()
				waiting = len(s.w.pending)
				s.w.mu.Unlock()
			}
			s.w.submit(poison)
			close(hold)
			if err := <-result; !errors.Is(err, queue.ErrUnavailable) {
				t.Fatalf("answer %v, want ErrUnavailable", err)
			}
			if after := dump(); after != before {
				t.Errorf("before %s\nafter  %s", before, after)
			}
		})
	}
}

func TestMigrations(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "old.db")
	files := fstest.MapFS{
		"m/001_first.sql":  {Data: []byte("CREATE TABLE a (x); INSERT INTO a VALUES ('kept');")},
		"m/002_second.sql": {Data: []byte("ALTER TABLE a ADD COLUMN y; UPDATE a SET y = 'new';")},
		"m/003_third.sql":  {Data: []byte("CREATE TABLE b (z);")},
	}
	list, err := migrations(files, "m")
	if err != nil {
		t.Fatal(err)
	}
	c, err := dial(ctx, path, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := migrate(ctx, c, path, list[:1]); err != nil {
		t.Fatal(err)
	}
	if err := migrate(ctx, c, path, list); err != nil {
		t.Fatal(err)
	}
	if v, err := schemaVersion(ctx, c); v != 3 || err != nil {
		t.Errorf("schema %d %v, want 3", v, err)
	}
	var got string
	if err := c.query(ctx, "SELECT x || y FROM a", func(row []driver.Value) error { got = asString(row[0]); return nil }); err != nil || got != "keptnew" {
		t.Errorf("the data after the migration: %q %v", got, err)
	}
	// The copy is the store as it was.
	old, err := dial(ctx, path+".schema1.bak", true, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer old.close()
	if v, err := schemaVersion(ctx, old); v != 1 || err != nil {
		t.Errorf("schema of the copy %d %v, want 1", v, err)
	}
	// A migration that fails changes nothing.
	broken := append(slices.Clone(list), migration{version: 4, text: "CREATE TABLE c (x); SELECT nonsense;"})
	if err := migrate(ctx, c, path, broken); err == nil || !strings.Contains(err.Error(), "004") {
		t.Errorf("a broken migration: %v", err)
	}
	if v, _ := schemaVersion(ctx, c); v != 3 {
		t.Errorf("schema after a broken migration %d, want 3", v)
	}
	if err := c.query(ctx, "SELECT count(*) FROM c", func([]driver.Value) error { return nil }); err == nil {
		t.Error("half a migration stayed")
	}
	if _, err := migrations(fstest.MapFS{"m/002_x.sql": {}}, "m"); err == nil {
		t.Error("a gap in the numbers was accepted")
	}
}

func TestFirstMigrationMakesNoCopy(t *testing.T) {
	t.Parallel()
	s := openTest(t, Options{})
	entries, err := os.ReadDir(filepath.Dir(s.path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), ".bak") {
			t.Errorf("a new store has a copy: %s", e.Name())
		}
	}
}

// A line against a slice, with jobs leaving from the middle.
func TestLine(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		l, front := &line{}, int64(0)
		gone := map[int64]struct{}{}
		var model []int64
		for seq := int64(1); seq < 3000; seq++ {
			switch op := random.IntN(10); {
			case op < 4 || op == 4 && random.IntN(40) > 0:
				l.pushBack(seq)
				model = append(model, seq)
			case op == 5:
				front--
				l.pushFront(seq, front)
				model = slices.Insert(model, 0, seq)
			case op < 9 && len(model) > 0:
				if got := l.front(gone); got != model[0] {
					t.Fatalf("front %d, want %d", got, model[0])
				}
				l.popFront()
				model = model[1:]
			case len(model) > 0:
				i := random.IntN(len(model))
				gone[model[i]] = struct{}{}
				l.bury(gone)
				model = slices.Delete(model, i, i+1)
			}
			if l.live != len(model) {
				t.Fatalf("live %d, want %d", l.live, len(model))
			}
		}
		for len(model) > 0 {
			if got := l.front(gone); got != model[0] {
				t.Fatalf("front %d, want %d", got, model[0])
			}
			l.popFront()
			model = model[1:]
		}
		for seq := range l.all() {
			if _, dead := gone[seq]; !dead {
				t.Fatalf("%d is left", seq)
			}
		}
	}
}
