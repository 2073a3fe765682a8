package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers/wasm/child"
	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// fate is why the pool ends a runner. The first one counts.
type fate int

const (
	fateNone      fate = iota // it lives
	fateDied                  // it died by itself
	fateKilled                // an attempt did not end
	fateViolation             // it broke the protocol
	fateStopped               // it is not needed any more
)

// runner is one runner process as the pool sees it.
type runner struct {
	opts    *Options
	log     *slog.Logger
	proc    *process
	stderr  *stderrLog
	client  *grpc.ClientConn
	closing sync.Once // of client
	engine  string
	sandbox string // the level it says it reached
	since   time.Time

	ctx              context.Context // of the streams; ends with the process
	cancel           context.CancelFunc
	readers, senders sync.WaitGroup // of the streams
	work             *link.Outbox[*pluginpb.HostFrame]
	calls            *link.Outbox[*pluginpb.Reply]
	logs             logProgress
	dead             chan struct{} // closed when the process is gone and all attempts have their outcome

	mu      sync.Mutex
	flights map[uint64]*flight
	lastID  uint64
	landed  int // attempts that ended by themselves
	fate    fate
	why     error // of the fate
	ended   bool  // no attempt may begin

	slots slots // guarded by the pool's mutex
}

// startRunner starts a process and shakes hands with it. The runner is ready when it returns.
func startRunner(ctx context.Context, o *Options, s *child.Spawner, args []string) (*runner, error) {
	stderr := &stderrLog{log: o.Logger}
	proc, err := startProcess(s, o.Lockdown.Namespaces, append(append([]string{}, o.Command...), args...), stderr)
	if err != nil {
		return nil, err
	}
	stderr.mu.Lock()
	stderr.log = o.Logger.With("pid", proc.cmd.Process.Pid)
	stderr.mu.Unlock()
	r := &runner{
		opts: o, log: stderr.log, proc: proc, stderr: stderr, since: time.Now(),
		work:    link.NewOutbox(func(f *pluginpb.HostFrame) int { return proto.Size(f) }),
		calls:   link.NewOutbox(func(f *pluginpb.Reply) int { return proto.Size(f) }),
		dead:    make(chan struct{}),
		flights: map[uint64]*flight{},
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	exited := make(chan error, 1)
	go func() { exited <- proc.cmd.Wait() }()
	if err := r.handshake(ctx); err != nil {
		r.cancel()
		if r.client != nil {
			err = errors.Join(err, r.client.Close())
		}
		err = errors.Join(err, proc.kill())
		exit := <-exited
		r.readers.Wait()
		r.senders.Wait()
		return nil, startError(err, exit, stderr.firstLine())
	}
	go r.reap(exited)
	return r, nil
}

// startError says why a runner did not start; what it printed says most.
func startError(err, exit error, line string) error {
	if line != "" {
		return fmt.Errorf("runner failed to start: %s (%w)", line, errors.Join(err, exit))
	}
	return fmt.Errorf("runner failed to start: %w", errors.Join(err, exit))
}

func (r *runner) handshake(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.opts.StartTimeout, fmt.Errorf("no answer within %s", r.opts.StartTimeout))
	defer cancel()
	if r.client, err = link.Dial(r.proc.conn); err != nil {
		return err
	}
	api := pluginpb.NewHandlerClient(r.client)
	d, err := api.Describe(ctx, &pluginpb.DescribeRequest{Abi: pluginpb.ABI})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("describe: %w", err)
	case d.GetAbi() != pluginpb.ABI:
		return fmt.Errorf("it speaks version %d of the handler protocol, this host %d", d.GetAbi(), pluginpb.ABI)
	case int(d.GetSlots()) != r.opts.Slots:
		return fmt.Errorf("it has %d slots, %d were asked for", d.GetSlots(), r.opts.Slots)
	}
	r.engine, r.sandbox = d.GetEngine(), d.GetSandbox()
	work, err := api.Work(r.ctx)
	if err != nil {
		return fmt.Errorf("work stream: %w", err)
	}
	calls, err := api.Calls(r.ctx)
	if err != nil {
		return fmt.Errorf("calls stream: %w", err)
	}
	logs, err := api.Logs(r.ctx, &pluginpb.LogsRequest{})
	if err != nil {
		return fmt.Errorf("logs stream: %w", err)
	}
	r.senders.Go(func() { r.sendWork(work) })
	r.readers.Go(func() { r.receive(func() error { return r.receiveWork(work) }) })
	r.senders.Go(func() { r.sendReplies(calls) })
	r.readers.Go(func() { r.receive(func() error { return r.receiveCall(calls) }) })
	r.readers.Go(func() { r.receive(func() error { return r.receiveLogs(logs) }) })
	return nil
}

// end ends the process for a reason. The first reason counts; kill says not to wait for it to go by itself.
func (r *runner) end(f fate, why error, kill bool) {
	r.mu.Lock()
	r.ended = true
	if r.fate == fateNone {
		r.fate, r.why = f, why
	}
	r.mu.Unlock()
	if !kill {
		r.cancel() // the streams end, and with them the runner
		return
	}
	if err := r.proc.kill(); err != nil {
		r.log.Error("cannot kill a runner", "error", err)
	}
}

// reap waits for the end of the process, then gives every attempt in flight its outcome. What the process said before its end counts: the
// readers come to the end of the connection first.
func (r *runner) reap(exited <-chan error) {
	defer close(r.dead)
	var exit error
	select {
	case exit = <-exited:
	case <-r.ctx.Done(): // asked to go; it has a moment
		r.disconnect()
		timer := time.NewTimer(stopTimeout)
		select {
		case exit = <-exited:
		case <-timer.C:
			if err := r.proc.kill(); err != nil {
				r.log.Error("cannot kill a runner", "error", err)
			}
			exit = <-exited
		}
		timer.Stop()
	}
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.awaitReaders()
	died := deathError(exit, r.stderr.firstLine())
	r.mu.Lock()
	if r.fate == fateNone {
		r.fate, r.why = fateDied, died
	}
	f, why := r.fate, r.why
	flights := r.flights
	r.flights = nil
	r.mu.Unlock()
	for _, fl := range flights {
		fl.lost(f, why)
	}
}

// stopTimeout is how long a runner that was asked to go may take.
const stopTimeout = 2 * time.Second

// awaitReaders waits until everything the dead process has sent was read.
func (r *runner) awaitReaders() {
	done := make(chan struct{})
	go func() {
		r.readers.Wait()
		close(done)
	}()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	r.cancel()
	r.disconnect()
	<-done
	r.senders.Wait()
}

// disconnect closes the connection, unless that was done before.
func (r *runner) disconnect() {
	r.closing.Do(func() {
		if err := r.client.Close(); err != nil {
			r.log.Error("close the connection to a runner", "error", err)
		}
	})
}

func deathError(exit error, line string) error {
	what := "exited"
	if exit != nil {
		what = exit.Error()
	}
	if line != "" {
		return fmt.Errorf("runner died (%s): %s", what, line)
	}
	return fmt.Errorf("runner died (%s)", what)
}

// death tells how and why the runner ended, and whether it had been of use; only after dead.
func (r *runner) death() (how fate, why error, useful bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fate, r.why, r.landed > 0
}
