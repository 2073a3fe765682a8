module github.com/taskhost/taskhost/wasm-examples

go 1.26.0

require (
	github.com/taskhost/taskhost/sdk/go v0.0.0
	golang.org/x/image v0.48.0
)

// The examples are built with the SDK beside them.
replace github.com/taskhost/taskhost/sdk/go => ../sdk/go
