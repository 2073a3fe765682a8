package queuetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func recordsCases() []testCase {
	return []testCase{
		{name: "records are compared and set", run: recordsCompareAndSet},
		{name: "records are listed by key", run: recordsList},
		{name: "values are the caller's own", run: recordsOwn},
		{name: "a named lease has one holder", run: leaserOneHolder},
		{name: "a named lease ends", run: leaserEnds},
	}
}

func (f *fixture) putRecord(kind, key, value string, ifRevision int64) int64 {
	f.Helper()
	rev, err := f.records.PutRecord(f.ctx, kind, key, []byte(value), ifRevision)
	if err != nil {
		f.Fatalf("PutRecord(%s, %s, revision %d): %v", kind, key, ifRevision, err)
	}
	return rev
}

func recordsCompareAndSet(f *fixture) {
	if _, err := f.records.GetRecord(f.ctx, "version", "a"); !errors.Is(err, queue.ErrNotFound) {
		f.Errorf("GetRecord of nothing = %v, want ErrNotFound", err)
	}
	conflict := func(ifRevision int64) {
		f.Helper()
		if _, err := f.records.PutRecord(f.ctx, "version", "a", []byte("x"), ifRevision); !errors.Is(err, queue.ErrConflict) {
			f.Errorf("PutRecord with revision %d = %v, want ErrConflict", ifRevision, err)
		}
	}
	conflict(7)
	first := f.putRecord("version", "a", "1", 0)
	conflict(0)
	elsewhere := f.putRecord("module", "a", "other kind", 0)
	second := f.putRecord("version", "a", "2", first)
	conflict(first)
	third := f.putRecord("version", "a", "3", queue.AnyRevision)
	if 0 >= first || first >= elsewhere || elsewhere >= second || second >= third {
		f.Errorf("revisions %d %d %d %d do not rise", first, elsewhere, second, third)
	}
	r, err := f.records.GetRecord(f.ctx, "version", "a")
	if err != nil || string(r.Value) != "3" || r.Revision != third || r.Key != "a" {
		f.Errorf("GetRecord = %+v, %v, want 3 at revision %d", r, err, third)
	}
	if err := f.records.DeleteRecord(f.ctx, "version", "a"); err != nil {
		f.Errorf("DeleteRecord: %v", err)
	}
	if err := f.records.DeleteRecord(f.ctx, "version", "a"); !errors.Is(err, queue.ErrNotFound) {
		f.Errorf("the second DeleteRecord = %v, want ErrNotFound", err)
	}
	if again := f.putRecord("version", "a", "4", 0); again <= third {
		f.Errorf("revision %d after a delete, want more than %d", again, third)
	}
	_, err = f.records.PutRecord(f.ctx, "", "a", nil, 0)
	f.wantInvalid("PutRecord without kind", err)
	_, err = f.records.PutRecord(f.ctx, "version", "", nil, 0)
	f.wantInvalid("PutRecord without key", err)
}

func recordsList(f *fixture) {
	for _, key := range []string{"b/2", "a", "b/1", "c", "b/10", "b%", "B"} {
		f.putRecord("k", key, key, 0)
	}
	f.putRecord("other", "b/3", "", 0)
	cases := []struct {
		prefix, after string
		limit         int
		want          string
	}{
		{"", "", 0, "[B a b% b/1 b/10 b/2 c]"},
		{"b/", "", 0, "[b/1 b/10 b/2]"},
		{"b/", "b/1", 0, "[b/10 b/2]"},
		{"b%", "", 0, "[b%]"},
		{"", "a", 2, "[b% b/1]"},
		{"x", "", 0, "[]"},
	}
	for _, c := range cases {
		list, err := f.records.ListRecords(f.ctx, "k", c.prefix, c.after, c.limit)
		keys := []string{}
		for _, r := range list {
			keys = append(keys, r.Key)
			if string(r.Value) != r.Key || r.Revision == 0 {
				f.Errorf("record %+v lacks its value or revision", r)
			}
		}
		if got := fmt.Sprint(keys); err != nil || got != c.want {
			f.Errorf("ListRecords(%q, after %q, limit %d) = %s, %v, want %s", c.prefix, c.after, c.limit, got, err, c.want)
		}
	}
	_, err := f.records.ListRecords(f.ctx, "k", "", "", -1)
	f.wantInvalid("ListRecords with limit -1", err)
}

func recordsOwn(f *fixture) {
	value := []byte("kept")
	if _, err := f.records.PutRecord(f.ctx, "k", "a", value, 0); err != nil {
		f.Fatalf("PutRecord: %v", err)
	}
	value[0] = 'X'
	if r, err := f.records.GetRecord(f.ctx, "k", "a"); err != nil || string(r.Value) != "kept" {
		f.Fatalf("GetRecord = %q, %v, want kept", r.Value, err)
	}
	empty := f.putRecord("k", "empty", "", 0)
	if r, err := f.records.GetRecord(f.ctx, "k", "empty"); err != nil || len(r.Value) != 0 || r.Revision != empty {
		f.Errorf("an empty value came back as %q, %v", r.Value, err)
	}
}

func (f *fixture) acquire(name, holder string, ttl time.Duration) bool {
	f.Helper()
	ok, err := f.leaser.AcquireLease(f.ctx, name, holder, ttl)
	if err != nil {
		f.Fatalf("AcquireLease: %v", err)
	}
	return ok
}

func (f *fixture) release(name, holder string) {
	f.Helper()
	if err := f.leaser.ReleaseLease(f.ctx, name, holder); err != nil {
		f.Fatalf("ReleaseLease: %v", err)
	}
}

func leaserOneHolder(f *fixture) {
	if !f.acquire("maintenance", "a", time.Minute) || f.acquire("maintenance", "b", time.Minute) {
		f.Fatalf("the lease went to a second holder or not to the first")
	}
	if !f.acquire("maintenance", "a", time.Minute) || !f.acquire("other", "b", time.Minute) {
		f.Fatalf("renewing, or another lease, was refused")
	}
	f.release("maintenance", "b") // not its own
	if f.acquire("maintenance", "b", time.Minute) {
		f.Fatalf("b released the lease of a")
	}
	f.release("maintenance", "a")
	if !f.acquire("maintenance", "b", time.Minute) {
		f.Fatalf("the released lease was refused")
	}
	for _, c := range []struct {
		name, holder string
		ttl          time.Duration
	}{{"", "a", time.Minute}, {"n", "", time.Minute}, {"n", "a", 0}} {
		_, err := f.leaser.AcquireLease(f.ctx, c.name, c.holder, c.ttl)
		f.wantInvalid(fmt.Sprintf("AcquireLease(%q, %q, %s)", c.name, c.holder, c.ttl), err)
	}
}

func leaserEnds(f *fixture) {
	f.acquire("n", "a", 10*time.Second)
	f.Advance(6 * time.Second)
	f.acquire("n", "a", 10*time.Second) // renewed
	f.Advance(9 * time.Second)
	if f.acquire("n", "b", time.Second) {
		f.Fatalf("a renewed lease was taken over early")
	}
	f.Advance(time.Second)
	if !f.acquire("n", "b", time.Minute) || f.acquire("n", "a", time.Minute) {
		f.Fatalf("an ended lease was refused, or taken twice")
	}
}
