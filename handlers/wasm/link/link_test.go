package link

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/taskhost/taskhost/abi/pluginpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parts is an item that sends bytes in parts.
type parts struct {
	id   uint64
	rest Parts
	sent int
}

func (p *parts) Next() (*pluginpb.HostFrame, bool, bool) {
	part, last := p.rest.Next()
	p.sent++
	return &pluginpb.HostFrame{Id: p.id, Kind: &pluginpb.HostFrame_Body{Body: part}}, !last, true
}

// Items are sent in turns, so a small one does not wait for a large one; messages keep to their bound, and nothing is lost or reordered.
func TestOutboxTakesTurns(t *testing.T) {
	t.Parallel()
	o := NewOutbox(func(f *pluginpb.HostFrame) int { return proto.Size(f) })
	large := bytes.Repeat([]byte("0123456789"), 30_000)
	sizes := map[uint64][]byte{1: large, 2: []byte("small"), 3: nil, 4: large[:100_000]}
	for id := range uint64(4) {
		o.Add(&parts{id: id + 1, rest: NewParts(sizes[id+1])})
	}
	got := map[uint64][]byte{}
	var order []uint64
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := o.Run(ctx, func(frames []*pluginpb.HostFrame) error {
		msg, err := proto.Marshal(&pluginpb.HostFrames{Frames: frames})
		if err != nil {
			return err
		}
		if len(msg) > pluginpb.MaxMessage {
			t.Errorf("a message of %d bytes", len(msg))
		}
		for _, f := range frames {
			order = append(order, f.GetId())
			got[f.GetId()] = append(got[f.GetId()], f.GetBody()...)
		}
		if len(got[1]) == len(large) && len(got[4]) == 100_000 {
			cancel(stop)
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Error(err)
	}
	for id, want := range sizes {
		if !bytes.Equal(got[id], want) {
			t.Errorf("item %d: %d bytes, want %d", id, len(got[id]), len(want))
		}
	}
	if !slices.Equal(order[:6], []uint64{1, 2, 3, 4, 1, 4}) {
		t.Errorf("order %v", order)
	}
}

func TestOutboxWaitsAndFails(t *testing.T) {
	t.Parallel()
	o := NewOutbox(func(f *pluginpb.HostFrame) int { return proto.Size(f) })
	broken := errors.New("broken pipe")
	sent := make(chan int, 1)
	done := make(chan error, 1)
	go func() {
		n := 0
		done <- o.Run(t.Context(), func(frames []*pluginpb.HostFrame) error {
			if n += len(frames); n > 1 {
				return broken
			}
			sent <- n
			return nil
		})
	}()
	o.Add(&parts{id: 1})
	<-sent
	o.Add(&parts{id: 2})
	if err := <-done; !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, pluginpb.MaxPart, pluginpb.MaxPart + 1, 3 * pluginpb.MaxPart} {
		p := NewParts(make([]byte, n/2), nil, make([]byte, n-n/2))
		total, count := 0, 0
		for last := false; !last; count++ {
			var part []byte
			if part, last = p.Next(); len(part) > pluginpb.MaxPart {
				t.Errorf("a part of %d bytes", len(part))
			}
			total += len(part)
		}
		if total != n || count != max(1, (n+pluginpb.MaxPart-1)/pluginpb.MaxPart) || p.Len() != 0 {
			t.Errorf("%d bytes: %d in %d parts", n, total, count)
		}
	}
}

func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []*net.Conn{&a, &b} {
		if *c, err = FileConn(os.NewFile(uintptr(fds[i]), "pair")); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

type describer struct {
	pluginpb.UnimplementedHandlerServer
}

func (describer) Describe(_ context.Context, r *pluginpb.DescribeRequest) (*pluginpb.DescribeResponse, error) {
	return &pluginpb.DescribeResponse{Abi: r.GetAbi(), Slots: 3}, nil
}

// pipes is a pair as there is one where processes cannot inherit sockets.
func pipes(t *testing.T) (a, b net.Conn) {
	t.Helper()
	var ends [4]*os.File
	for i := range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ends[2*i], ends[2*i+1] = r, w
	}
	return PipeConn(ends[0], ends[3]), PipeConn(ends[2], ends[1])
}

// One connection carries the calls; when it ends, both sides know, and nobody dials again.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string]func(*testing.T) (net.Conn, net.Conn){"sockets": pair, "pipes": pipes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			oneConnection(t, pair)
		})
	}
}

func oneConnection(t *testing.T, pair func(*testing.T) (net.Conn, net.Conn)) {
	a, b := pair(t)
	listener := Listen(b)
	server := NewServer()
	pluginpb.RegisterHandlerServer(server, describer{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	client, err := Dial(a)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	api := pluginpb.NewHandlerClient(client)
	if d, err := api.Describe(t.Context(), &pluginpb.DescribeRequest{Abi: 1}); err != nil || d.GetSlots() != 3 {
		t.Fatalf("%v, %v", d, err)
	}
	server.Stop()
	<-served
	<-listener.Ended()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := api.Describe(ctx, &pluginpb.DescribeRequest{Abi: 1}); err == nil || ctx.Err() != nil {
		t.Errorf("a call after the end: %v", err)
	}
}
