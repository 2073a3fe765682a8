package redisq_test

import (
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
)

// Who watches a kind of records learns of every change by another host, and of none of another kind.
func TestWatchRecords(t *testing.T) { inBothModes(t, watchRecords) }

func watchRecords(t *testing.T, m mode) {
	url := m.url(t)
	a, b := open(t, redisq.Options{URL: url}), open(t, redisq.Options{URL: url})
	w, err := a.WatchRecords(t.Context(), "handler")
	if err != nil {
		t.Fatal(err)
	}
	signal := func(why string) (open bool) {
		t.Helper()
		select {
		case _, open = <-w.C:
		case <-time.After(patience):
			t.Fatalf("no signal %s", why)
		}
		return open
	}
	signal("at first")
	put := func(kind string) {
		t.Helper()
		if _, err := b.PutRecord(t.Context(), kind, "k", []byte("v"), queue.AnyRevision); err != nil {
			t.Fatal(err)
		}
	}
	put("handler")
	signal("after a change")
	if err := b.DeleteRecord(t.Context(), "handler", "k"); err != nil {
		t.Fatal(err)
	}
	signal("after a removal")
	put("handler2")
	// What is published on one connection arrives in order: a second watch has seen the other kind when it sees this one.
	other, err := a.WatchRecords(t.Context(), "handler2")
	if err != nil {
		t.Fatal(err)
	}
	<-other.C
	put("handler2")
	<-other.C
	select {
	case <-w.C:
		t.Error("a signal after a change of another kind")
	default:
	}
	other.Stop()
	other.Stop()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if signal("at the end") {
		t.Error("the store is closed, the watch is not")
	}
}
