// Package client enqueues jobs on a taskhost server and waits for them. It needs nothing but the standard library.
//
//	c, err := client.New("http://127.0.0.1:7070")
//	job, err := c.Enqueue(ctx, client.NewJob{Type: "hello", Payload: map[string]string{"name": "Ada"}})
//	done, err := c.Wait(ctx, job.ID)
//	result, err := c.Result(ctx, done.ID)
//
// Names are those of the server's JSON. Every error that the server answers is an *Error.
//
// # What is retried
//
// A request whose outcome is not known (the connection broke, a proxy gave up, the store did not answer) and one that was
// refused for now (429, 503) is sent again, after a growing, jittered pause or what Retry-After asks for, up to
// WithRetries times and never beyond the context. That is safe for enqueueing because every job that has no idempotency
// key of its own gets one, so that it is stored once however often it is sent. Retry is the one call that is not repeated.
package client
