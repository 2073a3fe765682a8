package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// ErrEnded says that a session takes no new attempts.
var ErrEnded = errors.New("the connection to the handler has ended")

// Violation is a breach of the handler protocol by the far side.
type Violation struct{ Text string }

func (v *Violation) Error() string { return "it broke the handler protocol: " + v.Text }

func violated(format string, args ...any) error { return &Violation{fmt.Sprintf(format, args...)} }

// Options of a Session. All are required.
type Options struct {
	Client pluginpb.HandlerClient
	// Fault is told of a breach of the protocol, at most once for each stream. It must not block.
	Fault func(*Violation)
}

// Session is one connection. Close ends it.
type Session struct {
	fault  func(*Violation)
	ctx    context.Context // of the streams
	cancel context.CancelFunc

	readers, senders sync.WaitGroup
	work             *link.Outbox[*pluginpb.HostFrame]
	calls            *link.Outbox[*pluginpb.Reply]
	logs             logProgress
	gone             chan struct{} // closed when nothing can come any more

	mu       sync.Mutex
	attempts map[uint64]*Attempt
	lastID   uint64
	landed   int
	ended    bool
}

// Open opens the streams. The far side must have been described before: see pluginpb.HandlerClient.Describe.
func Open(o Options) (*Session, error) {
	s := &Session{
		fault:    o.Fault,
		work:     link.NewOutbox(func(f *pluginpb.HostFrame) int { return proto.Size(f) }),
		calls:    link.NewOutbox(func(f *pluginpb.Reply) int { return proto.Size(f) }),
		gone:     make(chan struct{}),
		attempts: map[uint64]*Attempt{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.open(o.Client); err != nil {
		s.Close(nil)
		return nil, err
	}
	return s, nil
}

func (s *Session) open(client pluginpb.HandlerClient) error {
	work, err := client.Work(s.ctx)
	if err != nil {
		return fmt.Errorf("work stream: %w", err)
	}
	calls, err := client.Calls(s.ctx)
	if err != nil {
		return fmt.Errorf("calls stream: %w", err)
	}
	logs, err := client.Logs(s.ctx, &pluginpb.LogsRequest{})
	if err != nil {
		return fmt.Errorf("logs stream: %w", err)
	}
	s.senders.Go(func() { s.sendWork(work) })
	s.readers.Go(func() { s.receive(func() error { return s.receiveWork(work) }) })
	s.senders.Go(func() { s.sendReplies(calls) })
	s.readers.Go(func() { s.receive(func() error { return s.receiveCall(calls) }) })
	s.readers.Go(func() { s.receive(func() error { return s.receiveLogs(logs) }) })
	return nil
}

// Hang ends the streams, which tells the far side to go. No attempt may begin any more.
func (s *Session) Hang() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.cancel()
}

// closeWithin is how long Close reads what is left on a connection whose far side is gone.
const closeWithin = 2 * time.Second

// Close ends the session when the process behind it is gone. What it had sent before its end still counts; every attempt that is without
// an outcome after that gets the one that lost returns. It returns when no goroutine of the session is left.
func (s *Session) Close(lost func(*Attempt) handlers.Outcome) {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	read := make(chan struct{})
	go func() {
		s.readers.Wait()
		close(read)
	}()
	timer := time.NewTimer(closeWithin)
	defer timer.Stop()
	if s.ctx.Err() == nil {
		select {
		case <-read:
		case <-timer.C:
		}
	}
	s.cancel()
	<-read
	s.senders.Wait()
	close(s.gone)
	s.mu.Lock()
	attempts := s.attempts
	s.attempts = nil
	s.mu.Unlock()
	for _, a := range attempts {
		if a.done == nil {
			a.outcome <- lost(a)
		}
	}
}

// Landed is how many attempts ended by themselves.
func (s *Session) Landed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.landed
}

// Begin sends an attempt. It fails with ErrEnded when the session is on its way out. The caller must Close the attempt.
func (s *Session) Begin(ctx context.Context, inv *handlers.Invocation, version *pluginpb.Version) (*Attempt, error) {
	meta, err := proto.Marshal(&pluginpb.Metadata{
		JobId: inv.JobID, Tenant: inv.Tenant, Queue: inv.Queue, Type: inv.Type,
		Attempt: uint32(inv.Attempt), MaxAttempts: uint32(inv.MaxAttempts), Headers: inv.Headers, Config: inv.Version.Config,
	})
	if err != nil {
		return nil, fmt.Errorf("metadata of job %s: %w", inv.JobID, err)
	}
	a := &Attempt{s: s, inv: inv, began: time.Now(), announced: -1, outcome: make(chan handlers.Outcome, 1)}
	a.ctx, a.cancel = context.WithCancel(ctx)
	start := &pluginpb.Start{
		Version: version,
		Limits: &pluginpb.Limits{MemoryBytes: uint64(inv.Limits.MemoryBytes), ResultBytes: uint32(inv.Limits.ResultBytes),
			LogBytes: uint32(inv.Limits.LogBytes), CheckpointBytes: uint32(inv.Limits.CheckpointBytes), Fuel: uint64(max(inv.Limits.Fuel, 0))},
		DeadlineUnixNano: inv.Deadline.UnixNano(),
		MetadataBytes:    uint32(len(meta)), PayloadBytes: uint32(len(inv.Payload)), CheckpointBytes: uint32(len(inv.Checkpoint)),
		HasCheckpoint: inv.Checkpoint != nil,
	}
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		a.cancel()
		return nil, ErrEnded
	}
	s.lastID++
	a.id = s.lastID
	s.attempts[a.id] = a
	s.mu.Unlock()
	s.work.Add(&startItem{id: a.id, start: start, parts: link.NewParts(meta, inv.Payload, inv.Checkpoint)})
	return a, nil
}
