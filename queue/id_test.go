package queue

import (
	"strings"
	"testing"
	"time"
)

func TestNewUUID(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(0x0123456789ab)
	u := NewUUID(at, [10]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	want := UUID{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0x7f, 0xff, 0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	if u != want {
		t.Errorf("NewUUID = %x, want %x: version 7, variant 10", u, want)
	}
	earlier, later := FormatID("job", NewUUID(at, [10]byte{0xff})), FormatID("job", NewUUID(at.Add(time.Millisecond), [10]byte{}))
	if earlier >= later {
		t.Errorf("%s of an earlier time sorts behind %s", earlier, later)
	}
}

func TestParseIDRefuses(t *testing.T) {
	t.Parallel()
	good := FormatID("job", UUID{1, 2, 3})
	if _, ok := ParseID("job", good); !ok {
		t.Fatalf("ParseID refuses %s", good)
	}
	for _, id := range []string{
		"", "job", "job_", good[:len(good)-1], good + "0", strings.ToUpper(good), "op_" + good[4:], "job-" + good[4:],
		"job_8" + good[5:], // more than 128 bits
		"job_" + strings.Repeat("u", IDLen), "job_" + strings.Repeat("\xff", IDLen),
	} {
		if _, ok := ParseID("job", id); ok {
			t.Errorf("ParseID accepts %q", id)
		}
	}
}

func FuzzID(f *testing.F) {
	f.Add("job_00000000000000000000000000", []byte{0})
	f.Add("job_7zzzzzzzzzzzzzzzzzzzzzzzzz", []byte("0123456789abcdef"))
	f.Fuzz(func(t *testing.T, id string, raw []byte) {
		if u, ok := ParseID("job", id); ok && FormatID("job", u) != id {
			t.Fatalf("%q is read as %x, which is written %q", id, u, FormatID("job", u))
		}
		var u UUID
		copy(u[:], raw)
		if back, ok := ParseID("op", FormatID("op", u)); !ok || back != u {
			t.Fatalf("%x is written %q and read as %x, %t", u, FormatID("op", u), back, ok)
		}
	})
}
