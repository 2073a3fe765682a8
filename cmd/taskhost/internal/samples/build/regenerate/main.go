// Command regenerate builds the sample handlers anew; go generate runs it in the folder of package samples.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/taskhost/taskhost/cmd/taskhost/internal/samples/build"
)

func main() {
	record, err := build.Write(context.Background(), "../../../..", ".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "regenerate:", err)
		os.Exit(1)
	}
	fmt.Printf("%s %s, built by %s\n", build.ModuleFile, record.Module[:12], record.Compiler)
}
