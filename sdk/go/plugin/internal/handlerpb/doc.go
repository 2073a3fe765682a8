// Package handlerpb is the handler protocol as generated from abi/pluginpb/handler.proto, for this module; scripts/proto.sh makes it.
package handlerpb
