// A handler for TestReactorExports.
package main

import (
	"context"

	"github.com/taskhost/taskhost/sdk/go/guest"
)

func init() {
	guest.HandleJSON(func(_ context.Context, _ *guest.Job, in string) (string, error) { return "Hello, " + in, nil })
}

func main() {}
