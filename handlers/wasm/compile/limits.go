package compile

import (
	"fmt"
	"time"
)

// Limits bound one compile child. A zero field means its default.
type Limits struct {
	CPU  time.Duration // processor time, rounded up to seconds; default 60 s
	Data int64         // RLIMIT_DATA, bytes; default 1.5 GiB, at least 128 MiB
	Wall time.Duration // from start to SIGKILL; default 3 min: children have the lowest priority, and may have to wait
}

func (l Limits) withDefaults() Limits {
	if l.CPU == 0 {
		l.CPU = 60 * time.Second
	}
	if l.Data == 0 {
		l.Data = 3 << 29
	}
	if l.Wall == 0 {
		l.Wall = 3 * time.Minute
	}
	return l
}

// minData is what the engine needs to begin: with less it is denied executable memory, and would interpret in silence.
const minData = 128 << 20

func (l Limits) validate() error {
	switch {
	case l.CPU < 0 || l.Wall < 0:
		return fmt.Errorf("compile: limits of %v of processor time and %v from start to end; neither may be negative", l.CPU, l.Wall)
	case l.Data < minData:
		return fmt.Errorf("compile: a memory limit of %d bytes; at least %d are needed", l.Data, int64(minData))
	}
	return nil
}

func (l Limits) cpuSeconds() uint64 { return uint64((l.CPU + time.Second - 1) / time.Second) }
