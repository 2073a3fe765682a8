// A module with the test handler of the scenarios.
package main

import (
	"github.com/taskhost/taskhost/sdk/go/guest"
	"github.com/taskhost/taskhost/sdk/go/guest/testdata/scenarios"
)

func init() { guest.Handle(scenarios.Handle) }

func main() {}
