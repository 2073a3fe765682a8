// Package pluginpb is the handler protocol generated from handler.proto, and the numbers that go with it.
//
// After a change of handler.proto run "make generate", that is
//
//	protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative abi/pluginpb/handler.proto
//
// in the root of the repository.
package pluginpb

// ABI is the major version of SPEC.md that this package speaks.
const ABI = 1

// Bounds of the protocol, in bytes. See handler.proto.
const (
	// MaxMessage bounds one message on the wire, either way.
	MaxMessage = 64 << 10
	// MaxPart bounds one part of a payload, result or checkpoint.
	MaxPart = 32 << 10
	// MaxErrorMessage bounds Done.error_message.
	MaxErrorMessage = 8 << 10
	// MaxLogMessage bounds LogLine.message.
	MaxLogMessage = 4 << 10
	// Window is the flow-control window of a stream and of a connection.
	Window = 4 << 20
)
