package queue

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// ErrorFingerprint groups failures that differ only in numbers: 4 bytes, in hex, of the SHA-256 of kind and message
// with every run of digits replaced by "0".
func ErrorFingerprint(e *JobError) string {
	if e == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(e.Kind)
	b.WriteByte(0)
	digits := false
	for _, c := range []byte(e.Message) {
		if c >= '0' && c <= '9' {
			if !digits {
				b.WriteByte('0')
			}
			digits = true
			continue
		}
		digits = false
		b.WriteByte(c)
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:4])
}

// SpecFingerprint is the SHA-256 of everything a producer asked for, by which a repeated idempotency key is told from a
// different request. Every part is written with its length, so that no two specs share an encoding; nil and empty are
// the same, a nil priority and 0 are not.
func SpecFingerprint(s JobSpec) [32]byte {
	h := sha256.New()
	num := func(n int64) { _ = binary.Write(h, binary.BigEndian, n) } // a hash never fails to write
	str := func(v string) {
		num(int64(len(v)))
		h.Write([]byte(v))
	}
	table := func(m map[string]string) {
		num(int64(len(m)))
		for _, k := range slices.Sorted(maps.Keys(m)) {
			str(k)
			str(m[k])
		}
	}
	flag := func(b bool) {
		if b {
			num(1)
		} else {
			num(0)
		}
	}
	str(s.Tenant)
	str(s.Queue)
	str(s.Type)
	num(int64(len(s.Payload)))
	h.Write(s.Payload)
	flag(s.PayloadJSON)
	table(s.Headers)
	table(s.Labels)
	flag(s.Priority != nil)
	if s.Priority != nil {
		num(int64(*s.Priority))
	}
	num(int64(s.Delay))
	num(int64(s.ExpiresIn))
	num(int64(s.Timeout))
	num(int64(s.MaxAttempts))
	num(int64(s.Backoff.Base))
	num(int64(s.Backoff.Max))
	str(string(s.Backoff.Jitter))
	str(s.IdempotencyKey)
	str(s.Unique.Key)
	str(string(s.Unique.Until))
	str(string(s.Unique.OnConflict))
	str(s.RetriedFrom)
	if s.ConcurrencyKey != "" { // absent without one, so that older fingerprints stay what they were
		str(s.ConcurrencyKey)
	}
	if s.Unique.Window != 0 { // the same
		num(int64(s.Unique.Window))
	}
	var sum [32]byte
	copy(sum[:], h.Sum(nil))
	return sum
}
