package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Prune removes the artifacts that were made by another rewriter or engine, or for another processor, than current has: versions that this
// host had before, whose keys nobody asks for any more. It returns how many. The sha256 of current does not matter. Artifacts whose
// manifest does not carry this host's signature stay: Open complains about them when they are asked for. Prune reads manifests only, and
// ends early with ctx, whose cause is then the error.
func (s *Store) Prune(ctx context.Context, current Identity) (removed int, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, fmt.Errorf("artifact store: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if err := context.Cause(ctx); err != nil {
			return removed, err
		}
		if key := e.Name(); ValidKey(key) && s.outdated(key, current) {
			if err := s.Remove(key); err != nil {
				errs = append(errs, err)
				continue
			}
			removed++
		}
	}
	return removed, errors.Join(errs...)
}

func (s *Store) outdated(key string, current Identity) bool {
	data, err := readSmall(filepath.Join(s.dir, key, manifestFile))
	if err != nil {
		return false
	}
	sum, err := readSmall(filepath.Join(s.dir, key, macFile))
	if err != nil {
		return false
	}
	m, err := decodeManifest(&s.key, data, sum)
	if err != nil {
		return false
	}
	current.SHA256 = m.Identity.SHA256
	return m.Identity != current
}
