// Package guesttest runs handlers in a plain `go test`, against an in-memory host that keeps the contract: the same limits,
// the same error numbers. The golden vectors of the contract are run against it.
//
//	func TestGreets(t *testing.T) {
//		got := guesttest.Run(guest.JSON(greet), guesttest.Job{Payload: []byte(`{"name":"Ada"}`)})
//		if got.Outcome != guesttest.Done || string(got.Output) != `{"greeting":"Hello, Ada"}` {
//			t.Errorf("got %+v", got)
//		}
//	}
//
// The sandbox itself (memory limit, fresh instance, deadline by force) is not there: `taskhost handler test` runs the built
// module in the real one.
package guesttest
