package redisq_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	evicting := own(t, "--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru")
	if _, err := redisq.Open(t.Context(), redisq.Options{URL: evicting.URL("x:")}); !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("a Redis that evicts: %v", err)
	}
	open(t, redisq.Options{URL: evicting.URL("x:"), AllowEviction: true})

	guarded := own(t, "--requirepass", "right")
	_, err := redisq.Open(t.Context(), redisq.Options{URL: "redis://:wrong-secret@" + guarded.Addr()})
	if !errors.Is(err, queue.ErrUnavailable) || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("a wrong password: %v", err)
	}
	open(t, redisq.Options{URL: guarded.URL("x:"), Password: "right"})

	if _, err := redisq.Open(t.Context(), redisq.Options{URL: "redis://127.0.0.1:1"}); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("nobody there: %v", err)
	}
}

func TestDurabilityIsTold(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"fsync always":       {"--appendonly", "yes", "--appendfsync", "always"},
		"fsync every second": {"--appendonly", "yes", "--appendfsync", "everysec"},
		"loses every job":    {},
	} {
		s := open(t, redisq.Options{URL: own(t, args...).URL("x:")})
		if got := s.Capabilities().Durability; !strings.Contains(got, want) {
			t.Errorf("with %v: %q, want %q", args, got, want)
		}
	}
}

// A record that cannot be read goes to the dead letters or is passed over, and hurts nobody else.
func TestDamagedRecord(t *testing.T) { inBothModes(t, damagedRecord) }

func damagedRecord(t *testing.T, m mode) {
	server := own(t)
	s := open(t, redisq.Options{URL: m.of(server)})
	admin := client(t, server.Addr())
	ids := put(t, s, mail("a"), mail("b"))
	key := "x:msg:" + strings.TrimPrefix(ids[0], "job_")
	text, err := admin.Get(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	// The version of the part that only clients read.
	damaged := strings.Replace(text, "\x01\x00\x04send", "\x07\x00\x04send", 1)
	if damaged == text {
		t.Fatal("the record is not laid out as this test thinks")
	}
	if err := admin.Set(t.Context(), key, damaged, 0).Err(); err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Reserve(t.Context(), queue.ReserveParams{Worker: "w", Max: 10, Lease: time.Minute})
	if err != nil || len(jobs) != 1 || jobs[0].ID != ids[1] {
		t.Fatalf("reserved %v, %v, want the sound job", jobs, err)
	}
	settle(t, s, queue.VerbAck, jobs...)
	if r := books(t, s); r.Counts[queue.StateDead] != 1 || r.Counts[queue.StateSucceeded] != 1 {
		t.Errorf("books: %+v", r)
	}
}

// A body of more than 4 KiB is whole again in a reservation, and gone with its job.
func TestLargeBodies(t *testing.T) { inBothModes(t, largeBodies) }

func largeBodies(t *testing.T, m mode) {
	server := own(t)
	s := open(t, redisq.Options{URL: m.of(server)})
	if err := s.Configure(t.Context(), queue.Scheduling{Retention: queue.Retention{Succeeded: -1}}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{4095, 4096, 4097, 1 << 20} {
		spec := mail(strings.Repeat("x", n))
		put(t, s, spec)
		j := take(t, s, 1, time.Minute)[0]
		if string(j.Payload) != string(spec.Payload) {
			t.Errorf("a payload of %d bytes came back as %d", n, len(j.Payload))
		}
		settle(t, s, queue.VerbAck, j)
	}
	keys, err := client(t, server.Addr()).Keys(t.Context(), "x:body:*").Result()
	if err != nil || len(keys) > 0 {
		t.Errorf("bodies left behind: %v %v", keys, err)
	}
}

// There is a bound to the number of different views.
func TestTooManyViews(t *testing.T) { inBothModes(t, tooManyViews) }

func tooManyViews(t *testing.T, m mode) {
	s := open(t, redisq.Options{URL: m.url(t)})
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		_, err = s.Reserve(t.Context(), queue.ReserveParams{View: queue.View{Queues: []string{"q" + strings.Repeat("x", n%100) + string(rune('a'+n/100))}}, Max: 1, Lease: time.Minute})
	}
	var limit *queue.LimitError
	if !errors.As(err, &limit) || n != 65 {
		t.Errorf("view %d: %v, want a limit at the 65th", n, err)
	}
}
