#!/usr/bin/env bash
# Generates the gRPC code of the handler protocol with pinned plugins. protoc comes from Debian's protobuf-compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v protoc >/dev/null; then
	echo "proto: protoc is missing; install it with: sudo apt-get install -y protobuf-compiler" >&2
	exit 1
fi
tools=$PWD/bin/tools
GOBIN=$tools go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN=$tools go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
proto=abi/pluginpb/handler.proto
PATH=$tools:$PATH protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative "$proto"

# The SDK for native plugins is a module of its own, so it has its own copy of the same messages; so has the Python example.
sdk=github.com/taskhost/taskhost/sdk/go/plugin
PATH=$tools:$PATH protoc -I abi/pluginpb --go_out=sdk/go/plugin --go_opt="module=$sdk,Mhandler.proto=$sdk/internal/handlerpb;handlerpb" \
	--go-grpc_out=sdk/go/plugin --go-grpc_opt="module=$sdk,Mhandler.proto=$sdk/internal/handlerpb;handlerpb" handler.proto
protoc -I abi/pluginpb --python_out=sdk/python-example handler.proto
