package queuetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// describe writes every visible field of a job in one line, so that two jobs can be compared and a difference be read.
func describe(j *queue.Job) string {
	if j == nil {
		return "no job"
	}
	var b strings.Builder
	add := func(name string, value any) {
		if s := fmt.Sprint(value); s != "" && s != "0" && s != "false" && s != "0s" {
			fmt.Fprintf(&b, " %s=%s", name, s)
		}
	}
	fmt.Fprintf(&b, "%s %s/%s %s %s", j.ID, j.Tenant, j.Queue, j.Type, j.State)
	add("reason", j.Reason)
	add("priority", j.Priority)
	add("payload", quoted(j.Payload))
	add("json", j.PayloadJSON)
	add("bytes", j.PayloadBytes)
	add("headers", table(j.Headers))
	add("labels", table(j.Labels))
	add("timeout", j.Timeout)
	add("max", j.MaxAttempts)
	if j.Backoff != (queue.Backoff{}) {
		add("backoff", j.Backoff)
	}
	add("idem", j.IdempotencyKey)
	if j.Unique != (queue.Unique{}) {
		add("unique", j.Unique)
	}
	add("key", j.ConcurrencyKey)
	add("run", j.Run)
	add("attempt", j.Attempt)
	add("crashes", j.Crashes)
	add("interruptions", j.Interruptions)
	for _, t := range [...]struct {
		name string
		at   time.Time
	}{{"created", j.CreatedAt}, {"next", j.NextRunAt}, {"started", j.StartedAt}, {"finished", j.FinishedAt}, {"expires", j.ExpiresAt}, {"lease", j.LeaseUntil},
		{"erased", j.ErasedAt}} {
		add(t.name, stamp(t.at))
	}
	add("cancel", j.CancelRequested)
	add("result", quoted(j.Result))
	add("result_bytes", j.ResultBytes)
	add("error", fault(j.LastError))
	if j.Progress != nil {
		add("progress", fmt.Sprintf("%d/%d %q@%s", j.Progress.Done, j.Progress.Total, j.Progress.Message, stamp(j.Progress.At)))
	}
	add("from", j.RetriedFrom)
	add("worker", j.Worker)
	if j.Handler != (queue.Handler{}) {
		add("handler", j.Handler)
	}
	add("checkpoint", quoted(j.Checkpoint))
	add("token", j.Token != "")
	for _, a := range j.Attempts {
		fmt.Fprintf(&b, " [%d.%d %s %s@%s %dms fuel=%d peak=%d %s %v]", a.Run, a.Attempt, a.Outcome, fault(a.Error), stamp(a.StartedAt),
			a.DurationMS, a.Fuel, a.PeakMemoryBytes, a.Worker, a.Handler)
	}
	return b.String()
}

// waits writes what a job waits for.
func waits(list []queue.WaitReason) string {
	var parts []string
	for _, r := range list {
		text := "waits " + string(r.Code)
		if !r.Until.IsZero() {
			text += " until " + stamp(r.Until)
		}
		if r.Limit != 0 || r.Running != 0 {
			text += fmt.Sprintf(" %d of %d", r.Running, r.Limit)
		}
		if r.Key != "" {
			text += " " + r.Key
		}
		if r.AtMost != 0 {
			text += fmt.Sprintf(" %d", r.AtMost)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func quoted(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > 40 {
		return fmt.Sprintf("%q…%d", b[:40], len(b))
	}
	return fmt.Sprintf("%q", b)
}

func table(m map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%q:%q", k, m[k]))
	}
	return strings.Join(parts, ",")
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("02T15:04:05.000Z07")
}

func fault(e *queue.JobError) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf("%s:%q:%t", e.Kind, e.Message, e.Retryable)
}
