// Package httpapi is the HTTP face of a host: the routes of /v1, the probes, the OpenAPI document and the page that shows
// it. It turns requests into calls of the queue contract and of the few interfaces in ports.go, and answers into JSON; it
// decides nothing about jobs itself.
//
// # Conventions
//
// Names are snake_case. Times are RFC 3339 in UTC with milliseconds; durations are given as "90s" and answered as
// whole milliseconds in fields that end in _ms; sizes are in fields that end in _bytes. A field whose value is not
// known (yet) is null. Unknown fields and unknown query parameters are refused. Lists take limit (50 unless given, at most
// 500) and cursor, and answer next_cursor, null on the last page.
//
// Every error, from whatever depth, is application/problem+json and is made by one function: problemOf in problem.go.
//
// # Payloads
//
// A payload given as JSON is stored byte for byte as it stands in the body, white space inside it included: decode.go
// never builds a value from it. Answers show it as JSON again; the exact bytes are at /v1/jobs/{id}/payload.
//
// # Waiting
//
// wait (≤ 55 s) holds a request open until the job is finished; the answer has the same status whatever the state is.
// Waiting subscribes to the store's change signal and never polls. Nothing is cancelled when the caller hangs up, and
// every waiting request is answered at once when the server stops.
package httpapi
