package queuetest

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

func notesCases() []testCase {
	return []testCase{
		{name: "progress", run: notesProgress},
		{name: "log lines are numbered and paged", run: notesLogs},
		{name: "control characters are escaped", run: notesEscape},
		{name: "the log of an attempt is capped", run: notesLogCap},
		{name: "a checkpoint is there for the next attempt", run: notesCheckpoint},
		{name: "notes are fenced", run: notesFenced},
		{name: "whose logs are kept", run: notesLogRetention},
	}
}

func (f *fixture) log(j *queue.Job, messages ...string) {
	f.Helper()
	var lines []queue.LogLine
	for _, m := range messages {
		lines = append(lines, queue.LogLine{Message: m})
	}
	if err := f.notes.AppendLogs(f.ctx, ref(j), lines); err != nil {
		f.Fatalf("AppendLogs: %v", err)
	}
}

func (f *fixture) logs(id string, after int64, limit int) queue.LogPage {
	f.Helper()
	page, err := f.notes.JobLogs(f.ctx, "acme", id, after, limit)
	if err != nil {
		f.Fatalf("JobLogs: %v", err)
	}
	return page
}

func messages(page queue.LogPage) string {
	var m []string
	for _, l := range page.Lines {
		m = append(m, l.Message)
	}
	return strings.Join(m, " ")
}

func notesProgress(f *fixture) {
	id := f.put("q", "a")
	j := f.takeOne()
	f.Advance(time.Second)
	for _, p := range []queue.Progress{{Done: 1, Total: 10, Message: "one"}, {Done: 2, Total: 10, Message: "two", At: time.Unix(1, 0)}} {
		if err := f.notes.SetProgress(f.ctx, ref(j), p); err != nil {
			f.Fatalf("SetProgress: %v", err)
		}
		got := f.get(id).Progress
		if got == nil || got.Done != p.Done || got.Total != p.Total || got.Message != p.Message || got.At.Before(j.StartedAt.Add(time.Second)) {
			f.Fatalf("progress = %+v, want %+v at store time", got, p)
		}
	}
	f.ack(j)
	if got := f.get(id).Progress; got == nil || got.Done != 2 {
		f.Errorf("progress of the finished job = %+v, want the last report", got)
	}
}

func notesLogs(f *fixture) {
	f.configure(queue.Scheduling{Retention: queue.Retention{Logs: queue.LogsOfAll}})
	id := f.put("q", "a")
	j := f.takeOne()
	at := f.now().Add(-1500 * time.Microsecond)
	if err := f.notes.AppendLogs(f.ctx, ref(j), []queue.LogLine{{At: at, Level: "warn", Message: "a", Seq: 99}, {Message: "b"}}); err != nil {
		f.Fatalf("AppendLogs: %v", err)
	}
	f.log(j, "c")
	f.settle(settlement(j, queue.VerbNack), queue.StateReady)
	j = f.takeOne()
	f.log(j, "d", "e")
	page := f.logs(id, 0, 0)
	if messages(page) != "a b c d e" || page.Truncated {
		f.Fatalf("log = %q, truncated %t", messages(page), page.Truncated)
	}
	for i, l := range page.Lines {
		if l.Seq != int64(i+1) || l.Run != 1 || l.Attempt != 1+i/3 {
			f.Errorf("line %d = %+v, want seq %d, run 1, attempt %d", i, l, i+1, 1+i/3)
		}
	}
	if l := page.Lines[0]; l.Level != "warn" || !l.At.Equal(queue.Millis(at)) {
		f.Errorf("line = %+v, want level warn at %s", l, queue.Millis(at))
	}
	if l := page.Lines[1]; l.Level != "info" || l.At.IsZero() {
		f.Errorf("line = %+v, want the defaults: info, now", l)
	}
	if got := messages(f.logs(id, 2, 2)); got != "c d" {
		f.Errorf("two lines after 2 = %q, want c d", got)
	}
	if got := messages(f.logs(id, 5, 10)); got != "" {
		f.Errorf("lines after the last = %q", got)
	}
	f.wantInvalid("a bad level", f.notes.AppendLogs(f.ctx, ref(j), []queue.LogLine{{Level: "shout"}}))
	_, err := f.notes.JobLogs(f.ctx, "acme", id, 0, -1)
	f.wantInvalid("limit -1", err)
	f.ack(j)
	if got := messages(f.logs(id, 0, 0)); got != "a b c d e" {
		f.Errorf("log of the finished job = %q", got)
	}
}

func notesEscape(f *fixture) {
	id := f.put("q", "a")
	f.log(f.takeOne(), "one\ntwo\x1b[31mred\x00\xff\u202e ü")
	if got, want := messages(f.logs(id, 0, 0)), `one\ntwo\x1b[31mred\x00\xff\u202e ü`; got != want {
		f.Errorf("stored %q, want %q", got, want)
	}
}

func notesLogCap(f *fixture) {
	id := f.put("q", "a")
	j := f.takeOne()
	big := strings.Repeat("x", f.Limits.LogBytes-10)
	f.log(j, big, "0123456789") // exactly full
	if page := f.logs(id, 0, 0); len(page.Lines) != 2 || page.Truncated {
		f.Fatalf("a full log has %d lines, truncated %t: the limit is inclusive", len(page.Lines), page.Truncated)
	}
	f.log(j, "y", "")
	if page := f.logs(id, 0, 0); len(page.Lines) != 2 || !page.Truncated {
		f.Fatalf("a log over its limit has %d lines, truncated %t", len(page.Lines), page.Truncated)
	}
	f.settle(settlement(j, queue.VerbNack), queue.StateReady)
	j = f.takeOne()
	f.log(j, "again")
	page := f.logs(id, 0, 0)
	if len(page.Lines) != 3 || page.Lines[2].Message != "again" || page.Lines[2].Seq != 3 || !page.Truncated {
		f.Errorf("the next attempt's line: %d lines, truncated %t", len(page.Lines), page.Truncated)
	}
}

func notesCheckpoint(f *fixture) {
	id := f.put("q", "a")
	j := f.takeOne()
	if j.Checkpoint != nil {
		f.Errorf("the first attempt has a checkpoint: %q", j.Checkpoint)
	}
	for _, data := range [][]byte{[]byte("one"), []byte("\x00two\xff")} {
		if err := f.notes.PutCheckpoint(f.ctx, ref(j), data); err != nil {
			f.Fatalf("PutCheckpoint: %v", err)
		}
	}
	err := f.notes.PutCheckpoint(f.ctx, ref(j), make([]byte, f.Limits.CheckpointBytes+1))
	var limit *queue.LimitError
	if !errors.As(err, &limit) || limit.Field != "checkpoint" {
		f.Errorf("a checkpoint over its limit = %v, want a LimitError", err)
	}
	f.pass(lease) // its host dies
	j = f.takeOne()
	if !bytes.Equal(j.Checkpoint, []byte("\x00two\xff")) {
		f.Errorf("the next attempt finds %q", j.Checkpoint)
	}
	f.ack(j)
	if got := f.get(id).Checkpoint; got != nil {
		f.Errorf("the finished job keeps the checkpoint %q", got)
	}
}

func notesFenced(f *fixture) {
	id := f.put("q", "a")
	old := f.takeOne()
	f.pass(lease)
	f.takeOne()
	for what, r := range map[string]queue.Ref{"stale": ref(old), "unknown": {ID: "job_x", Token: old.Token}, "empty": {}} {
		for call, err := range map[string]error{
			"SetProgress":   f.notes.SetProgress(f.ctx, r, queue.Progress{Done: 1}),
			"AppendLogs":    f.notes.AppendLogs(f.ctx, r, []queue.LogLine{{Message: "late"}}),
			"PutCheckpoint": f.notes.PutCheckpoint(f.ctx, r, []byte("late")),
		} {
			if !errors.Is(err, queue.ErrLeaseLost) {
				f.Errorf("%s by a %s ref = %v, want ErrLeaseLost", call, what, err)
			}
		}
	}
	if got := f.get(id); got.Progress != nil || got.Checkpoint != nil || len(f.logs(id, 0, 0).Lines) != 0 {
		f.Errorf("a stale note changed the job: %+v", got)
	}
}

func notesLogRetention(f *fixture) {
	cases := []struct {
		keep                   queue.LogRetention
		clean, retried, buried int // lines left
	}{
		{"", 0, 2, 1}, {queue.LogsOfFailed, 0, 2, 1}, {queue.LogsOfAll, 1, 2, 1}, {queue.LogsOfNone, 0, 0, 0},
	}
	for _, c := range cases {
		f.configure(queue.Scheduling{Retention: queue.Retention{Logs: c.keep}})
		clean := f.put("q", "clean")
		j := f.takeOne()
		f.log(j, "line")
		f.ack(j)
		retried := f.put("q", "retried")
		j = f.takeOne()
		f.log(j, "line")
		f.settle(settlement(j, queue.VerbNack), queue.StateReady)
		j = f.takeOne()
		f.log(j, "line")
		f.ack(j)
		buried := f.put("q", "buried")
		j = f.takeOne()
		f.log(j, "line")
		f.settle(settlement(j, queue.VerbDead), queue.StateDead)
		for id, want := range map[string]int{clean: c.clean, retried: c.retried, buried: c.buried} {
			if got := len(f.logs(id, 0, 0).Lines); got != want {
				f.Errorf("logs %q: %s has %d lines left, want %d", c.keep, f.get(id).Payload, got, want)
			}
		}
	}
}
