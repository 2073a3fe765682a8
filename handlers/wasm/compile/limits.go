package compile

import "time"

// Limits bound one compile child. A zero field means its default.
type Limits struct {
	CPU  time.Duration // processor time, rounded up to seconds; default 60 s
	Data int64         // RLIMIT_DATA, bytes; default 1.5 GiB
	Wall time.Duration // from start to SIGKILL; default 90 s
}

func (l Limits) withDefaults() Limits {
	if l.CPU == 0 {
		l.CPU = 60 * time.Second
	}
	if l.Data == 0 {
		l.Data = 3 << 29
	}
	if l.Wall == 0 {
		l.Wall = 90 * time.Second
	}
	return l
}

func (l Limits) cpuSeconds() uint64 { return uint64((l.CPU + time.Second - 1) / time.Second) }
