package queue

import (
	"strings"
	"time"
)

// Alphabet of ids: Crockford's base 32, lower case, so that ids sort like the numbers they encode.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// IDLen is the number of characters after the prefix of an id.
const IDLen = 26

// UUID is the 128-bit number behind an id: version 7 (RFC 9562 §5.7), so that ids of one clock sort by time.
type UUID [16]byte

// NewUUID builds a version 7 UUID from a time and 74 bits; the bits are taken from the 80 of low, and version and variant
// overwrite the top ones where RFC 9562 puts them.
func NewUUID(at time.Time, low [10]byte) UUID {
	var u UUID
	ms := at.UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (8 * (5 - i)))
	}
	copy(u[6:], low[:])
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	return u
}

// FormatID writes an id: prefix, "_" and 26 characters.
func FormatID(prefix string, u UUID) string {
	b := make([]byte, len(prefix)+1+IDLen)
	n := copy(b, prefix)
	b[n] = '_'
	out := b[n+1:]
	// 128 bits are 26 groups of five with two leading zero bits.
	hi := uint64(u[0])<<56 | uint64(u[1])<<48 | uint64(u[2])<<40 | uint64(u[3])<<32 | uint64(u[4])<<24 | uint64(u[5])<<16 | uint64(u[6])<<8 | uint64(u[7])
	lo := uint64(u[8])<<56 | uint64(u[9])<<48 | uint64(u[10])<<40 | uint64(u[11])<<32 | uint64(u[12])<<24 | uint64(u[13])<<16 | uint64(u[14])<<8 | uint64(u[15])
	for i := IDLen - 1; i >= 0; i-- {
		out[i] = idAlphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(b)
}

// ParseID reads an id written by FormatID with the same prefix; false for anything else.
func ParseID(prefix, id string) (UUID, bool) {
	var u UUID
	if len(id) != len(prefix)+1+IDLen || !strings.HasPrefix(id, prefix) || id[len(prefix)] != '_' {
		return u, false
	}
	var hi, lo uint64
	for i, c := range []byte(id[len(prefix)+1:]) {
		v := strings.IndexByte(idAlphabet, c)
		if v < 0 || i == 0 && v > 7 {
			return u, false
		}
		hi = hi<<5 | lo>>59
		lo = lo<<5 | uint64(v)
	}
	for i := range 8 {
		u[i] = byte(hi >> (8 * (7 - i)))
		u[8+i] = byte(lo >> (8 * (7 - i)))
	}
	return u, true
}
