package jsonin

import "slices"

// keySet remembers the keys of one object: a slice while there are few, as nearly always, so that an object costs no map.
type keySet struct {
	few  []string
	many map[string]struct{}
}

// fewKeys is up to how many keys a linear search is cheaper than a map.
const fewKeys = 16

// add reports whether key is new.
func (k *keySet) add(key string) bool {
	if k.many != nil {
		_, seen := k.many[key]
		k.many[key] = struct{}{}
		return !seen
	}
	if slices.Contains(k.few, key) {
		return false
	}
	k.few = append(k.few, key)
	if len(k.few) > fewKeys {
		k.many = make(map[string]struct{}, 2*len(k.few))
		for _, seen := range k.few {
			k.many[seen] = struct{}{}
		}
	}
	return true
}
