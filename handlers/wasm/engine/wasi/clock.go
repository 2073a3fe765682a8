package wasi

import (
	"encoding/binary"
	"math"
	"time"
)

// Clocks of the specification.
const (
	clockRealtime       = 0
	clockMonotonic      = 1
	clockProcessCPUTime = 2
	clockThreadCPUTime  = 3
)

// epoch is where the monotonic clocks of all guests begin.
var epoch = time.Now()

// clock reads a clock, in nanoseconds. A guest is charged for wall time only, so its processor time is not told.
func clock(id uint32) (uint64, errno) {
	switch id {
	case clockRealtime:
		return uint64(time.Now().UnixNano()), ok
	case clockMonotonic:
		return uint64(time.Since(epoch)) + 1, ok
	case clockProcessCPUTime, clockThreadCPUTime:
		return 0, eNOTSUP
	}
	return 0, eINVAL
}

func clockTimeGet(c *call) errno {
	now, e := clock(c.u32(0))
	if e != ok {
		return e
	}
	return c.mem.put64(c.u32(2), now)
}

func clockResGet(c *call) errno {
	if _, e := clock(c.u32(0)); e != ok {
		return e
	}
	return c.mem.put64(c.u32(1), uint64(time.Microsecond))
}

// Layout of poll_oneoff: subscriptions of 48 bytes (user data, tag, union), events of 32 (user data, error, type, bytes ready, flags).
const (
	subscriptionSize = 48
	eventSize        = 32
	eventClock       = 0
	eventRead        = 1
	eventWrite       = 2
	clockAbsolute    = 1
)

// maxSubscriptions bounds what one call may ask for.
const maxSubscriptions = 4096

// pollOneoff waits for the first of the events asked for. The three streams are memory and therefore always ready, so only a call with
// nothing but clocks sleeps, and that sleep ends with the attempt at the latest.
func pollOneoff(c *call) errno {
	in, out, n, count := c.u32(0), c.u32(1), c.u32(2), c.u32(3)
	if n == 0 || n > maxSubscriptions {
		return eINVAL
	}
	c.ChargeItems(n)
	subs, found := c.mem.records(in, n, subscriptionSize)
	if !found {
		return eFAULT
	}
	events, found := c.mem.records(out, n, eventSize)
	if !found {
		return eFAULT
	}
	var few [4 * subscriptionSize]byte // what is asked for most often makes no garbage
	subs = append(few[:0], subs...)    // the guest may have the two overlap
	fired := 0
	emit := func(sub []byte, typ byte, e errno, ready uint64) {
		ev := events[fired*eventSize : (fired+1)*eventSize]
		clear(ev)
		copy(ev, sub[:8])
		binary.LittleEndian.PutUint16(ev[8:], uint16(e))
		ev[10] = typ
		binary.LittleEndian.PutUint64(ev[16:], ready)
		fired++
	}
	shortest := time.Duration(math.MaxInt64)
	var fewTimes [4]time.Duration
	timeouts := append(fewTimes[:0], make([]time.Duration, n)...) // of the clocks
	for i := range int(n) {
		sub := subs[i*subscriptionSize : (i+1)*subscriptionSize]
		switch typ := sub[8]; typ {
		case eventClock:
			if d, e := timeout(sub); e != ok {
				emit(sub, typ, e, 0)
			} else {
				timeouts[i], shortest = d, min(shortest, d)
			}
		case eventRead, eventWrite:
			fd := binary.LittleEndian.Uint32(sub[16:])
			switch {
			case !c.open(fd) || (fd == stdin) != (typ == eventRead):
				emit(sub, typ, eBADF, 0)
			case typ == eventRead:
				emit(sub, typ, ok, uint64(len(c.Payload)-c.Stdin))
			default:
				emit(sub, typ, ok, writeRoom)
			}
		default:
			return eINVAL
		}
	}
	if fired == 0 {
		c.Sleep(shortest)
		for i := range int(n) {
			if timeouts[i] == shortest {
				emit(subs[i*subscriptionSize:], eventClock, ok, 0)
			}
		}
	}
	return c.mem.put32(count, uint32(fired))
}

// writeRoom is what an output stream says it takes without blocking.
const writeRoom = 64 << 10

// timeout is how long a clock subscription has to wait from now; not negative.
func timeout(sub []byte) (time.Duration, errno) {
	id := binary.LittleEndian.Uint32(sub[16:])
	t := binary.LittleEndian.Uint64(sub[24:])
	flags := binary.LittleEndian.Uint16(sub[40:])
	now, e := clock(id)
	if e != ok {
		return 0, e
	}
	if flags&clockAbsolute != 0 {
		if t <= now {
			return 0, ok
		}
		t -= now
	}
	return time.Duration(min(t, math.MaxInt64)), ok
}
