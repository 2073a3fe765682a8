package guest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/taskhost/taskhost/sdk/go/guest"
	"github.com/taskhost/taskhost/sdk/go/guest/guesttest"
)

func Example() {
	type resize struct{ Width int }
	handler := guest.JSON(func(_ context.Context, job *guest.Job, in resize) (map[string]int, error) {
		if in.Width <= 0 {
			return nil, guest.Permanent(fmt.Errorf("bad width %d", in.Width))
		}
		job.Logger().Info("resizing", "width", in.Width)
		return map[string]int{"width": in.Width}, nil
	})

	ok := guesttest.Run(handler, guesttest.Job{Payload: []byte(`{"width":200}`)})
	fmt.Println(ok.Outcome, string(ok.Output), ok.Log[0].Message)
	bad := guesttest.Run(handler, guesttest.Job{Payload: []byte(`{"width":0}`)})
	fmt.Println(bad.Outcome, bad.Message)
	// Output:
	// done {"width":200} resizing width=200
	// permanent bad width 0
}

func ExampleRetryAfter() {
	handler := func(context.Context, *guest.Job) ([]byte, error) {
		return nil, guest.RetryAfter(30*time.Second, errors.New("mirror busy"))
	}
	got := guesttest.Run(handler, guesttest.Job{})
	fmt.Println(got.Outcome, got.RetryAfter, got.Message)
	// Output: retry 30s mirror busy
}
