package redisq

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync"
)

// lanes number the calls of this store that change something, so that one whose reply was lost can be sent again: in a lane one
// call follows the other, and Redis keeps the last number with its answer (answered in lua/lib/base.lua).
type lanes struct {
	name string // of this store, random

	mu   sync.Mutex
	free []*lane
	made int
}

type lane struct {
	name   string
	number int64
}

func newLanes() (*lanes, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	return &lanes{name: hex.EncodeToString(b[:])}, nil
}

// take returns a lane nobody else uses, with its next number.
func (l *lanes) take() *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	var a *lane
	if n := len(l.free); n > 0 {
		a = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		l.made++
		a = &lane{name: l.name + "-" + strconv.Itoa(l.made)}
	}
	a.number++
	return a
}

func (l *lanes) give(a *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, a)
}
