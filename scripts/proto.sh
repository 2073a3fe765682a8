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
PATH=$tools:$PATH protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative \
	abi/pluginpb/handler.proto
