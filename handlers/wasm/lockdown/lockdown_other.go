//go:build !linux || !(amd64 || arm64)

package lockdown

import "runtime"

// Apply has no layer to put on here; the level is Off.
func Apply(rules Rules) (Report, error) {
	r := Report{Level: Off.String()}
	for _, name := range []string{LayerNamespaces, LayerRlimits, LayerCapabilities, LayerNoNewPrivs, LayerLandlock, LayerSeccomp} {
		r.Layers = append(r.Layers, Layer{Name: name, Detail: "not on " + runtime.GOOS + "/" + runtime.GOARCH, Remedy: "run taskhost on Linux, on amd64 or arm64"})
	}
	if rules.Apply && rules.Least > Off {
		return r, &BelowError{rules.Least, r}
	}
	return r, nil
}

// outside: no namespaces here.
func outside() ([]string, error) { return nil, nil }
