package wire

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/config"
	"github.com/taskhost/taskhost/host"
	"github.com/taskhost/taskhost/queue"
)

func TestSpecialValuesAreTranslated(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Retention.Succeeded, c.Retention.Dead, c.Worker.Drain = 0, config.RetentionForever, 0
	c.Queues = map[string]config.Queue{"low": {Weight: new(2.0), Priority: new(3), Paused: new(true), MaxRunning: new(7), MaxPerKey: new(2),
		Rate: &config.Rate{Count: 5, Per: time.Minute}}}
	c.Tenants = map[string]config.Tenant{"acme": {Weight: new(4.0), MaxRunning: new(9)}, "other": {}}
	s := scheduling(&c)
	if age, forever := s.Retention.Age(queue.StateSucceeded); age != 0 || forever {
		t.Errorf("none: %s, %v", age, forever)
	}
	if _, forever := s.Retention.Age(queue.StateDead); !forever {
		t.Error("forever is not for ever")
	}
	if got := queue.Effective(queue.QueueSettings{}, s.Queues["low"]); got != (queue.EffectiveSettings{Weight: 2, Priority: 3, Paused: true, MaxRunning: 7, MaxPerKey: 2,
		Rate: queue.Rate{Count: 5, Per: time.Minute}}) {
		t.Errorf("got %+v", got)
	}
	if !reflect.DeepEqual(s.Tenants, map[string]queue.TenantSettings{"acme": {Weight: new(4.0), MaxRunning: new(9)}, "other": {}}) {
		t.Errorf("got %v", s.Tenants)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	if o := hostOptions(&c); o.Drain >= 0 || o.NoWorker {
		t.Errorf("drain %s, no worker %v", o.Drain, o.NoWorker)
	}
	if v := view(&c); len(v.Queues) != 0 {
		t.Errorf("* is all queues, got %v", v)
	}
}

// The defaults of the configuration are those of the parts, so that what config show prints is what happens.
func TestDefaultsAgree(t *testing.T) {
	t.Parallel()
	c := config.Default()
	if got, want := hostOptions(&c).Defaults, host.StandardDefaults(); got != want {
		t.Errorf("host defaults:\n got %+v\nwant %+v", got, want)
	}
	if limits(c.Defaults) != queue.DefaultLimits() {
		t.Errorf("limits %+v", limits(c.Defaults))
	}
	if c.Worker.Lease != host.LeaseDefault || c.Worker.Drain != host.DrainDefault || c.Worker.HandlerWait != host.HandlerWaitDefault {
		t.Errorf("worker %+v", c.Worker)
	}
	if c.Retention.Succeeded != queue.RetentionSucceededDefault || c.Retention.Dead != queue.RetentionDeadDefault || c.Retention.Logs != string(queue.LogsOfFailed) {
		t.Errorf("retention %+v", c.Retention)
	}
}

// The ranges of the configuration are those of the queue: config may not import it, so this compares at the edges.
func TestRangesAgree(t *testing.T) {
	t.Parallel()
	accepted := func(text string) bool {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(config.Source{File: file})
		return err == nil
	}
	for _, w := range []float64{queue.WeightMin, queue.WeightMin / 2, queue.WeightMax, queue.WeightMax * 1.01, 0, -1, 1} {
		text := fmt.Sprintf("queues: {a: {weight: %v}}", w)
		if got, want := accepted(text), queue.ValidWeight("", w) == nil; got != want {
			t.Errorf("%s: config says %v, queue %v", text, got, want)
		}
	}
	for _, p := range []int{queue.PriorityMin, queue.PriorityMin - 1, queue.PriorityMax, queue.PriorityMax + 1} {
		text := fmt.Sprintf("queues: {a: {priority: %d}}", p)
		if got, want := accepted(text), queue.ValidPriority("", p) == nil; got != want {
			t.Errorf("%s: config says %v, queue %v", text, got, want)
		}
	}
	for _, name := range []string{"a", "A.b_c-9", strings.Repeat("x", queue.NameMax), strings.Repeat("x", queue.NameMax+1), "", "-a", "é", "a b", "a/b"} {
		text := fmt.Sprintf("queues: {%q: {}}", name)
		if got, want := accepted(text), queue.ValidName("", name) == nil; got != want {
			t.Errorf("%s: config says %v, queue %v", text, got, want)
		}
	}
	for _, n := range []int{queue.MaxAttemptsMax, queue.MaxAttemptsMax + 1} {
		text := fmt.Sprintf("defaults: {max_attempts: %d}", n)
		if got, want := accepted(text), n <= queue.MaxAttemptsMax; got != want {
			t.Errorf("%s: config says %v, queue %v", text, got, want)
		}
	}
	if !accepted("defaults: {timeout: 7d}") || queue.TimeoutMax != 7*24*time.Hour {
		t.Error("the longest timeout differs")
	}
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]bool{
		"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "127.9.9.9:1": true, ":1": false, "0.0.0.0:1": false, "[::]:1": false,
		"10.0.0.1:1": false, "example.com:1": false, "localhost.example.com:1": false, "": false, "127.0.0.1": false,
	} {
		if got := IsLoopback(listen); got != want {
			t.Errorf("%q: got %v", listen, got)
		}
	}
}
