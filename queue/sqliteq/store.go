package sqliteq

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// Store is the embedded engine. See the package documentation for how its parts work together.
type Store struct {
	path    string
	clock   queue.Clock
	limits  queue.Limits
	log     *slog.Logger
	fatal   func(error)
	ids     idCodec
	epoch   int64
	lock    *fileLock
	w       *writer
	readers chan *conn // lists and look-ups
	fetch   *fetcher   // records for Reserve

	// mu guards everything below. It is never held over input or output. Only the writer changes what is durable, and
	// only after the commit; Reserve and Extend change leases.
	mu         sync.Mutex
	closed     chan struct{} // closed by Close
	closing    bool
	health     error // why the store takes no work; nil = healthy
	broken     bool  // health is for good
	scheduling queue.Scheduling

	tenants     map[string]*tenantState
	tenantsByID map[int64]*tenantState
	queuesByID  map[int64]*queueState
	lostQueue   *queueState // stands for the queue of a damaged finished row
	lastTenant  int64
	lastQueue   int64
	views       map[string]*view

	cache     cache
	gone      map[int64]struct{} // tombstones in lines
	fetching  map[int64]int64    // being read by a Reserve, and not reserved since the reading with this number
	lastFetch int64
	sidesteps map[int64]*sidestep // ready jobs that stepped aside or came back
	lastAside int64               // places of jobs that step aside rise …
	lastFront int64               // … and those of jobs that enter at the front fall
	limbo     map[int64]struct{}  // taken out of a line to be expired or set aside

	running  map[int64]*running
	batches  batchHeap
	lastRow  int64 // of batches
	reserved int64 // reservations ever, in this process

	scheduled     timeHeap
	unscheduled   map[int64]struct{} // tombstones in scheduled
	expiry        timeHeap
	expires       map[int64]int64 // when waiting jobs that never started expire
	rateTimers    timeHeap        // of queues, by their number, that their rates hold back; some no longer count
	rateChanged   chan struct{}   // closed when a rate holds a queue back that ends earlier; nil while nobody waits
	rateAnnounced int64           // the time that those who wait know of
	retainAt      int64           // when retention has something to do
	forgetAt      int64           // when idempotency keys are to be swept
	dueChanged    chan struct{}   // closed when something became due earlier; nil while nobody waits
	dueAnnounced  int64           // the time WaitDue waits for
	watches       map[int64]map[*watch]struct{}
	leases        map[string]namedLease
	tokens        *rand.ChaCha8
	listWork      int              // what a page of a list may look at, per source
	listNow       func() time.Time // the time that pages take, which is not that of the store
	finishedCount [2]int64         // finished rows: others, dead; -1 = not counted, because no bound needs it
	finishedFirst [2]int64         // finish time of the oldest finished row: others, dead
}

// The parts of the contract.
var (
	_ queue.Queue        = (*Store)(nil)
	_ queue.Jobs         = (*Store)(nil)
	_ queue.Bulk         = (*Store)(nil)
	_ queue.Explainer    = (*Store)(nil)
	_ queue.Notes        = (*Store)(nil)
	_ queue.Queues       = (*Store)(nil)
	_ queue.Configurable = (*Store)(nil)
	_ queue.DeadLetters  = (*Store)(nil)
	_ queue.Leaser       = (*Store)(nil)
	_ queue.Records      = (*Store)(nil)
	_ queue.Auditor      = (*Store)(nil)
)

// enter begins a call: the context's cause when it has ended, else ErrClosed, else why the store cannot answer.
func (s *Store) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return queue.ErrClosed
	}
	if s.broken {
		return s.health
	}
	return nil
}

// Err says why the store takes no work: an error wrapping queue.ErrUnavailable after a commit failed, until one succeeds
// again; for good after an input/output error or damage, of which Options.Fatal was told. nil when healthy.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health
}

// Path is the database file.
func (s *Store) Path() string { return s.path }

func (s *Store) now() time.Time { return queue.Millis(s.clock.Now()) }

// Now implements queue.Queue.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, err
	}
	return s.now(), nil
}

// Capabilities implements queue.Queue.
func (s *Store) Capabilities() queue.Capabilities {
	return queue.Capabilities{
		Name:       "sqlite",
		Durability: "an acknowledged enqueue is on the disk (WAL, synchronous=FULL): it survives the death of the process and of the machine",
	}
}
