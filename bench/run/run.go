// Package run holds what every benchmark row is made of: a workload, the sides that run it, and the count of jobs that
// makes a figure valid.
package run

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"
)

// Workload says what every side of a row has to do.
type Workload struct {
	Jobs      int
	Payload   int // bytes, ≥ 4: the first four hold the job's number
	Producers int // goroutines that each enqueue one job at a time and wait for the answer
	Workers   int // handlers at once

	Backlog bool // all jobs are enqueued before the clock starts: only processing is measured
	Store   bool // nothing is processed: only enqueueing is measured; sides count what is stored
	Bulk    int  // jobs of one enqueue call where a side has such calls; 0 = 1
	Queues  int  // busy queues of each tenant; 0 = 1
	Tenants int  // busy tenants; 0 = 1. Sides without tenants ignore it
}

// Side is one contestant: it enqueues and processes the whole workload, and returns when every job was handled.
type Side struct {
	Name string
	// Run calls seen once per handled job with its payload.
	Run func(ctx context.Context, w Workload, seen func(payload []byte)) (Measure, error)
}

// Measure is what one side took.
type Measure struct {
	Elapsed  time.Duration // first enqueue to last handled job, settled
	StoreCPU time.Duration // of a store in another process; 0 = none
}

// PayloadFor builds the payload of job i.
func PayloadFor(w Workload, i int) []byte {
	p := make([]byte, w.Payload)
	binary.LittleEndian.PutUint32(p, uint32(i))
	return p
}

// Counted runs a side and checks that every job was handled exactly once; otherwise the figure is void and an error.
func Counted(ctx context.Context, s Side, w Workload) (Measure, error) {
	counts := make([]atomic.Int32, w.Jobs)
	var strange atomic.Int64
	m, err := s.Run(ctx, w, func(payload []byte) {
		if len(payload) == w.Payload {
			if i := binary.LittleEndian.Uint32(payload); int(i) < w.Jobs {
				counts[i].Add(1)
				return
			}
		}
		strange.Add(1)
	})
	if err != nil {
		return m, fmt.Errorf("%s: %w", s.Name, err)
	}
	if w.Store {
		return m, nil
	}
	lost, doubled := 0, 0
	for i := range counts {
		switch n := counts[i].Load(); {
		case n == 0:
			lost++
		case n > 1:
			doubled++
		}
	}
	if lost+doubled+int(strange.Load()) > 0 {
		return m, fmt.Errorf("%s: figure void: of %d jobs %d lost, %d doubled, %d foreign", s.Name, w.Jobs, lost, doubled, strange.Load())
	}
	return m, nil
}
