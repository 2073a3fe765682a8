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
	"github.com/taskhost/taskhost/host/schedules"
	"github.com/taskhost/taskhost/queue"
)

func loadText(t *testing.T, text string) (*config.Loaded, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(config.Source{File: file, Cron: CheckCron})
}

func TestSchedulesAreTranslated(t *testing.T) {
	t.Parallel()
	l, err := loadText(t, `schedules: [{name: a, cron: "0 3 * * *", tz: Europe/Rome, type: x, queue: low, payload: {n: 1}, priority: 2, catch_up: all, paused: true,
  timeout: 5s, max_attempts: 3, unique: {key: k, until: started, on_conflict: existing}, labels: {l: m}}, {name: b, tenant: acme, cron: "@daily", type: y}]`)
	if err != nil {
		t.Fatal(err)
	}
	want := []schedules.Definition{
		{
			Tenant: "default", Name: "a", Cron: "0 3 * * *", TZ: "Europe/Rome", CatchUp: schedules.CatchUpAll, Paused: true,
			Job: schedules.Job{
				Type: "x", Queue: "low", Payload: []byte(`{"n":1}`), PayloadJSON: true, Priority: new(2), Timeout: 5 * time.Second, MaxAttempts: 3,
				Unique: queue.Unique{Key: "k", Until: queue.UniqueUntilStarted, OnConflict: queue.UniqueExisting}, Labels: map[string]string{"l": "m"},
			},
		},
		{Tenant: "acme", Name: "b", Cron: "@daily", Job: schedules.Job{Type: "y"}},
	}
	if got := configuredSchedules(l.Config.Schedules); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if configuredSchedules(nil) != nil || configuredSchedules([]config.Schedule{}) == nil {
		t.Error("no key and an empty list are not told apart")
	}
}

// The largest payload is the same on both sides; config may not import the host.
func TestPayloadBoundsAgree(t *testing.T) {
	t.Parallel()
	for size, good := range map[int]bool{schedules.PayloadMax: true, schedules.PayloadMax + 1: false} {
		_, err := loadText(t, fmt.Sprintf("schedules: [{name: a, cron: '@daily', type: x, payload: %q}]", strings.Repeat("x", size-2)))
		if (err == nil) != good {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestCheckCron(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ spec, tz, field string }{{"TZ=0", "", "cron"}, {"@daily", "Mars", "tz"}, {"0 0 30 2 *", "", "cron"}} {
		if field, err := CheckCron(c.spec, c.tz); err == nil || field != c.field || strings.HasPrefix(err.Error(), field+":") {
			t.Errorf("CheckCron(%q, %q) = %q, %v", c.spec, c.tz, field, err)
		}
	}
	if _, err := CheckCron("0 3 * * *", "Europe/Rome"); err != nil {
		t.Error(err)
	}
}
