package handlers

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
)

// Registry answers which version serves a type. It is filled by the host and read at every job; reads take no lock.
// The zero value is an empty registry.
type Registry struct {
	mu   sync.Mutex // serialises writers
	live atomic.Pointer[map[registryKey]*Version]
}

type registryKey struct{ tenant, typ string }

// SetLive makes v the live version of its tenant and type.
func (r *Registry) SetLive(v *Version) {
	r.update(func(m map[registryKey]*Version) { m[registryKey{v.Tenant, v.Type}] = v })
}

// Remove takes the live version of a tenant's type away.
func (r *Registry) Remove(tenant, typ string) {
	r.update(func(m map[registryKey]*Version) { delete(m, registryKey{tenant, typ}) })
}

func (r *Registry) update(change func(map[registryKey]*Version)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := map[registryKey]*Version{}
	if old := r.live.Load(); old != nil {
		for k, v := range *old {
			next[k] = v
		}
	}
	change(next)
	r.live.Store(&next)
}

// Resolve returns the version that serves a tenant's type: the tenant's own before a host-wide one, an exact type before
// a pattern, a longer pattern before a shorter one. It returns an error wrapping ErrNoHandler when there is none.
func (r *Registry) Resolve(tenant, typ string) (*Version, error) {
	if m := r.live.Load(); m != nil {
		for _, owner := range []string{tenant, ""} {
			if v, ok := (*m)[registryKey{owner, typ}]; ok {
				return v, nil
			}
			if v := longestPattern(*m, owner, typ); v != nil {
				return v, nil
			}
		}
	}
	return nil, fmt.Errorf("%w for type %q", ErrNoHandler, typ)
}

func longestPattern(m map[registryKey]*Version, owner, typ string) *Version {
	for n := len(typ); n >= 0; n-- {
		if v, ok := m[registryKey{owner, typ[:n] + "*"}]; ok {
			return v
		}
	}
	return nil
}

// Types returns the types and patterns with a live version for a tenant, its own and host-wide ones, sorted.
func (r *Registry) Types(tenant string) []string {
	m := r.live.Load()
	if m == nil {
		return nil
	}
	seen := map[string]bool{}
	for k := range *m {
		if k.tenant == tenant || k.tenant == "" {
			seen[k.typ] = true
		}
	}
	types := make([]string, 0, len(seen))
	for t := range seen {
		types = append(types, t)
	}
	sort.Strings(types)
	return types
}

// ValidPattern reports whether typ is an exact type or a prefix followed by one "*".
func ValidPattern(typ string) bool {
	i := strings.IndexByte(typ, '*')
	return i < 0 || i == len(typ)-1
}
