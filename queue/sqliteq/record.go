package sqliteq

import (
	"time"

	"github.com/taskhost/taskhost/queue"
)

// inlineMax is how large a payload or result may be to live in its job's row. Larger ones are rows of blobs, which no
// change of state rewrites and no list reads.
const inlineMax = 2048

// Kinds of blobs: a blob's key is 4 * seq + kind.
const (
	blobPayload = iota
	blobResult
	blobCheckpoint
)

const recordFormat = 1

// Flags of a record.
const (
	recordJSON    = 1 << iota // JobSpec.PayloadJSON
	recordLarge               // the payload is a blob
	recordUnique              // has a unique key
	recordStarted             // whose key is freed by the first reservation
	recordIdempotent
	recordKeyed  // has a concurrency key
	recordErased // payload and result were erased
	recordWindow // whose unique key is held for a time
)

// spec is a decoded record: what the producer asked for.
type spec struct {
	flags        byte
	payloadBytes int
	payload      []byte // nil when it is a blob
	job          queue.JobSpec
	erasedAt     time.Time // zero = not erased
}

// erase returns the record without the payload.
func (s *spec) erase(at time.Time) []byte {
	s.job.Payload, s.job.PayloadJSON = nil, false
	record, _ := encode(&s.job, at)
	return record
}

// encodeRecord writes a record and returns the payload separately when it is to be a blob.
func encodeRecord(s *queue.JobSpec) (record, large []byte) { return encode(s, time.Time{}) }

func encode(s *queue.JobSpec, erasedAt time.Time) (record, large []byte) {
	var flags byte
	if !erasedAt.IsZero() {
		flags |= recordErased
	}
	inline := s.Payload
	if len(s.Payload) > inlineMax {
		flags |= recordLarge
		inline, large = nil, s.Payload
	}
	if s.PayloadJSON {
		flags |= recordJSON
	}
	if s.Unique.Key != "" {
		flags |= recordUnique
		if s.Unique.Until == queue.UniqueUntilStarted {
			flags |= recordStarted
		}
		if s.Unique.Until == queue.UniqueUntilWindow {
			flags |= recordWindow
		}
	}
	if s.IdempotencyKey != "" {
		flags |= recordIdempotent
	}
	if s.ConcurrencyKey != "" {
		flags |= recordKeyed
	}
	e := newEncoder(recordFormat, 64+len(s.Type)+len(inline))
	e.byte(flags)
	e.int(int64(len(s.Payload)))
	e.string(s.Type)
	e.table(s.Headers)
	e.table(s.Labels)
	e.duration(s.Timeout)
	e.int(int64(s.MaxAttempts))
	e.duration(s.Backoff.Base)
	e.duration(s.Backoff.Max)
	e.string(string(s.Backoff.Jitter))
	if flags&recordIdempotent != 0 {
		e.string(s.IdempotencyKey)
	}
	if flags&recordUnique != 0 {
		e.string(s.Unique.Key)
		e.string(string(s.Unique.Until))
		e.string(string(s.Unique.OnConflict))
		if flags&recordWindow != 0 {
			e.duration(s.Unique.Window)
		}
	}
	if flags&recordKeyed != 0 {
		e.string(s.ConcurrencyKey)
	}
	e.string(s.RetriedFrom)
	if flags&recordErased != 0 {
		e.time(erasedAt)
	}
	e.bytes(inline)
	return e.seal(), large
}

func decodeRecord(b []byte) (spec, error) {
	d := open(b, recordFormat)
	var s spec
	s.flags = d.byte()
	s.payloadBytes = int(d.int())
	s.job.PayloadJSON = s.flags&recordJSON != 0
	s.job.Type = d.string()
	s.job.Headers = d.table()
	s.job.Labels = d.table()
	s.job.Timeout = d.duration()
	s.job.MaxAttempts = int(d.int())
	s.job.Backoff = queue.Backoff{Base: d.duration(), Max: d.duration(), Jitter: queue.Jitter(d.string())}
	if s.flags&recordIdempotent != 0 {
		s.job.IdempotencyKey = d.string()
	}
	if s.flags&recordUnique != 0 {
		s.job.Unique = queue.Unique{Key: d.string(), Until: queue.UniqueUntil(d.string()), OnConflict: queue.UniqueConflict(d.string())}
		if s.flags&recordWindow != 0 {
			s.job.Unique.Window = d.duration()
		}
	}
	if s.flags&recordKeyed != 0 {
		s.job.ConcurrencyKey = d.string()
	}
	s.job.RetriedFrom = d.string()
	if s.flags&recordErased != 0 {
		s.erasedAt = d.time()
	}
	s.payload = d.bytes()
	if s.flags&recordLarge == 0 && len(s.payload) != s.payloadBytes {
		d.fail()
	}
	return s, d.close()
}

// recordFlags and recordPayloadBytes read the head of a record that is known to be sound.
func recordFlags(b []byte) byte { return b[1] }

// recordKey is the concurrency key in a record that is known to be sound; "" without one.
func recordKey(b []byte) string {
	if recordFlags(b)&recordKeyed == 0 {
		return ""
	}
	sp, err := decodeRecord(b)
	if err != nil {
		return ""
	}
	return sp.job.ConcurrencyKey
}

// recordHasType reports whether a record may be of a job of that type, without decoding it: true for one that is damaged in its head.
func recordHasType(b []byte, typ string) bool {
	if len(b) < 2 {
		return true
	}
	d := decoder{b: b[2:]}
	d.int()
	got := d.bytes()
	return d.err != nil || string(got) == typ
}

func recordPayloadBytes(b []byte) int {
	d := decoder{b: b[2:]}
	return int(d.int())
}
