package queue

import (
	"crypto/sha256"
	"encoding/hex"
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
