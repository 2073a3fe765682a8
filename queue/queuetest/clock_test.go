package queuetest_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taskhost/taskhost/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFakeClock(t *testing.T) {
	t.Parallel()
	c := queuetest.NewFakeClock()
	start := c.Now()
	at := func(d time.Duration) (fired func() bool, stop func() bool) {
		timer, stop := c.NewTimer(d)
		return func() bool {
			select {
			case <-timer:
				return true
			default:
				return false
			}
		}, stop
	}
	now, _ := at(0)
	second, stopSecond := at(time.Second)
	minute, stopMinute := at(time.Minute)
	if !now() || second() || minute() {
		t.Fatal("only the timer of 0 fires by itself")
	}
	c.Advance(time.Second)
	if !second() || second() || minute() {
		t.Fatal("after 1 s its timer fires, once, and no other")
	}
	if stopSecond() || !stopMinute() || stopMinute() {
		t.Fatal("stop says whether it stopped the timer")
	}
	c.Advance(time.Hour)
	if minute() {
		t.Fatal("a stopped timer fired")
	}
	if got := c.Now().Sub(start); got != time.Hour+time.Second {
		t.Fatalf("the clock moved by %s", got)
	}
}
