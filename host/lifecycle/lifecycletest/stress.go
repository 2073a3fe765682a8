// Package lifecycletest checks the discipline of package lifecycle on a service.
package lifecycletest

import (
	"errors"
	"sync"
	"testing"

	"github.com/taskhost/taskhost/host/lifecycle"
)

// Stress starts and stops services made by fresh in every order the discipline allows, from several goroutines. Run it
// under the race detector and with goleak.
func Stress(t *testing.T, fresh func(t *testing.T) lifecycle.Service) {
	t.Helper()
	t.Run("stop before start", func(t *testing.T) {
		s := fresh(t)
		s.Stop()
		s.Stop()
		if err := s.Start(t.Context()); !errors.Is(err, lifecycle.ErrStopped) {
			t.Fatalf("start after stop: got %v, want ErrStopped", err)
		}
	})
	t.Run("start twice", func(t *testing.T) {
		s := fresh(t)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer s.Stop()
		if err := s.Start(t.Context()); !errors.Is(err, lifecycle.ErrStarted) {
			t.Fatalf("second start: got %v, want ErrStarted", err)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		for range 50 {
			s := fresh(t)
			var wg sync.WaitGroup
			for i := range 6 {
				wg.Go(func() {
					if i%2 == 0 {
						err := s.Start(t.Context())
						if err != nil && !errors.Is(err, lifecycle.ErrStarted) && !errors.Is(err, lifecycle.ErrStopped) {
							t.Errorf("start: %v", err)
						}
						return
					}
					s.Stop()
				})
			}
			wg.Wait()
			s.Stop()
		}
	})
}
