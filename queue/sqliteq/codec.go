package sqliteq

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Stored values are a format byte, fields in a fixed order (numbers as varints, strings with their length), and a CRC-32C
// of all that, little-endian. The checksum finds damage that would still parse.

var errDamaged = errors.New("the stored bytes are damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const checksumBytes = 4

type encoder struct{ b []byte }

func newEncoder(format byte, size int) encoder {
	return encoder{b: append(make([]byte, 0, size), format)}
}

func (e *encoder) byte(v byte)              { e.b = append(e.b, v) }
func (e *encoder) int(v int64)              { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) duration(d time.Duration) { e.int(int64(d)) }

// Times have millisecond precision; 0 is "not yet".
func (e *encoder) time(t time.Time) {
	if t.IsZero() {
		e.int(0)
		return
	}
	e.int(t.UnixMilli())
}

func (e *encoder) string(s string) {
	e.b = binary.AppendUvarint(e.b, uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) bytes(s []byte) {
	e.b = binary.AppendUvarint(e.b, uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) table(m map[string]string) {
	e.int(int64(len(m)))
	if len(m) == 0 {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		e.string(k)
		e.string(m[k])
	}
}

func (e *encoder) jobError(j *queue.JobError) {
	if j == nil {
		e.byte(0)
		return
	}
	e.byte(1)
	e.string(j.Kind)
	e.string(j.Message)
	e.bool(j.Retryable)
}

func (e *encoder) bool(v bool) {
	if v {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

func (e *encoder) seal() []byte {
	return binary.LittleEndian.AppendUint32(e.b, crc32.Checksum(e.b, castagnoli))
}

// decoder reads what encoder wrote. After a fault every read gives zero, and err says so.
type decoder struct {
	b   []byte
	err error
}

// open checks format and checksum.
func open(b []byte, format byte) decoder {
	if len(b) < 1+checksumBytes || b[0] != format {
		return decoder{err: errDamaged}
	}
	body, sum := b[:len(b)-checksumBytes], b[len(b)-checksumBytes:]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return decoder{err: errDamaged}
	}
	return decoder{b: body[1:]}
}

func (d *decoder) fail() {
	d.err, d.b = errDamaged, nil
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) bool() bool { return d.byte() != 0 }

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) duration() time.Duration { return time.Duration(d.int()) }

func (d *decoder) time() time.Time { return fromMillis(d.int()) }

// bytes shares memory with what is decoded.
func (d *decoder) bytes() []byte {
	size, n := binary.Uvarint(d.b)
	if n <= 0 || size > uint64(len(d.b)-n) {
		d.fail()
		return nil
	}
	end := n + int(size)
	v := d.b[n:end:end]
	d.b = d.b[end:]
	return v
}

func (d *decoder) string() string { return string(d.bytes()) }

// count reads the length of a list whose members take at least one byte each.
func (d *decoder) count() int {
	n := d.int()
	if n < 0 || n > int64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) table() map[string]string {
	n := d.count()
	if n == 0 {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		k := d.string()
		m[k] = d.string()
	}
	return m
}

func (d *decoder) jobError() *queue.JobError {
	if !d.bool() {
		return nil
	}
	return &queue.JobError{Kind: d.string(), Message: d.string(), Retryable: d.bool()}
}

// close reports a fault, also when bytes are left.
func (d *decoder) close() error {
	if d.err == nil && len(d.b) > 0 {
		return errDamaged
	}
	return d.err
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
