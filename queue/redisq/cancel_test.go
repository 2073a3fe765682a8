package redisq_test

import (
	"context"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
)

// A wait that is cancelled ends at once, at whatever moment: also between the take of a connection and the command that blocks on it,
// when there is nothing to cut yet.
func TestCancelledWaitEnds(t *testing.T) {
	t.Parallel()
	s := open(t, redisq.Options{URL: own(t).URL("x:")})
	for round := range 60 {
		// A wait that is served leaves a connection that the next one takes without asking whether it is there.
		served := make(chan error, 1)
		go func() { served <- s.Wait(t.Context(), queue.View{}) }()
		put(t, s, mail("a"))
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		settle(t, s, queue.VerbAck, take(t, s, 1, time.Minute)...)

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Wait(ctx, queue.View{}) }()
		<-time.After(time.Duration(round) * 20 * time.Microsecond) // not a wait for something: the moment is what is tried
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatalf("round %d: the wait goes on %s after it was cancelled", round, patience)
		}
	}
}
