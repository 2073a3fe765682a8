package sqliteq

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// seqMax is the largest job number an id can carry: three years at ten thousand jobs a second.
const seqMax = 1<<40 - 1

// birth is when a job was created: milliseconds, and a number that rises within each, so that births, ids and job numbers
// all rise together. That number begins anywhere and rises by steps of any size, so it does not count the jobs of a
// millisecond.
type birth int64

const tickBits = 20

func (b birth) time() time.Time { return time.UnixMilli(int64(b) >> tickBits).UTC() }

// nextBirth is the birth that follows last, at now.
func nextBirth(last birth, now time.Time, random *rand.Rand) birth {
	if ms := now.UnixMilli(); ms > int64(last)>>tickBits {
		return birth(ms<<tickBits | int64(random.Uint32N(1<<(tickBits-2))))
	}
	return last + 1 + birth(random.Uint32N(4)) // a full millisecond runs over into the next one
}

// idCodec makes job ids that carry the job's number, so that finding a job by its id needs no index. The 74 free bits of the
// version 7 UUID are the low 20 bits of the birth, a 14-bit check, and the masked number:
//
//	check  = PRF(0, birth, seq)
//	masked = seq xor PRF(1, birth, check)
//
// PRF is AES-128 under a key of the store, cut to length. Whoever looks a job up compares its birth and its tenant as well; the
// check only saves the look-up of most ids that are not ours.
type idCodec struct {
	block cipher.Block
	pool  *sync.Pool // of *prfBlocks: a block given to cipher.Block would be allocated for every call
}

type prfBlocks struct{ in, out [aes.BlockSize]byte }

func newIDCodec(key []byte) (idCodec, error) {
	if len(key) != aes.BlockSize {
		return idCodec{}, fmt.Errorf("the id key has %d bytes instead of %d", len(key), aes.BlockSize)
	}
	block, err := aes.NewCipher(key)
	return idCodec{block: block, pool: &sync.Pool{New: func() any { return new(prfBlocks) }}}, err
}

func (c idCodec) prf(domain byte, b birth, n int64) uint64 {
	p := c.pool.Get().(*prfBlocks)
	defer c.pool.Put(p)
	binary.BigEndian.PutUint64(p.in[0:], uint64(b))
	binary.BigEndian.PutUint64(p.in[8:], uint64(n))
	p.in[8] = domain
	c.block.Encrypt(p.out[:], p.in[:])
	return binary.BigEndian.Uint64(p.out[:])
}

func (c idCodec) check(b birth, seq int64) uint64 { return c.prf(0, b, seq) & (1<<14 - 1) }

func (c idCodec) mask(b birth, check uint64) uint64 { return c.prf(1, b, int64(check)) & seqMax }

// id is the id of job seq.
func (c idCodec) id(b birth, seq int64) string {
	check := c.check(b, seq)
	masked := uint64(seq) ^ c.mask(b, check)
	tick := uint64(b) & (1<<tickBits - 1)
	low := [10]byte{byte(tick >> 16), byte(tick >> 8), byte(tick >> 2), byte(tick<<6) | byte(check>>8), byte(check),
		byte(masked >> 32), byte(masked >> 24), byte(masked >> 16), byte(masked >> 8), byte(masked)}
	low[2] &= 0x3f
	return queue.FormatID(queue.JobIDPrefix, queue.NewUUID(b.time(), low))
}

// parse returns the job number an id carries; false for an id this store never made (and a few guessed ones).
func (c idCodec) parse(id string) (birth, int64, bool) {
	u, ok := queue.ParseID(queue.JobIDPrefix, id)
	if !ok || u[6]>>4 != 7 || u[8]>>6 != 2 {
		return 0, 0, false
	}
	ms := int64(u[0])<<40 | int64(u[1])<<32 | int64(u[2])<<24 | int64(u[3])<<16 | int64(u[4])<<8 | int64(u[5])
	tick := int64(u[6]&0x0f)<<16 | int64(u[7])<<8 | int64(u[8]&0x3f)<<2 | int64(u[9]>>6)
	check := uint64(u[9]&0x3f)<<8 | uint64(u[10])
	masked := uint64(u[11])<<32 | uint64(u[12])<<24 | uint64(u[13])<<16 | uint64(u[14])<<8 | uint64(u[15])
	if ms >= 1<<(63-tickBits) {
		return 0, 0, false
	}
	b := birth(ms<<tickBits | tick)
	seq := int64(masked ^ c.mask(b, check))
	return b, seq, c.check(b, seq) == check
}
