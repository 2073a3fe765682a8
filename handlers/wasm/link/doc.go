// Package link is what both ends of the handler protocol need to carry it over one connected socket: gRPC over a single descriptor, and an
// outbox that sends the bytes of many jobs in turns.
package link
