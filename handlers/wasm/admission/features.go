package admission

import "sort"

// Value types, one byte each.
const (
	typeI32       = 0x7f
	typeI64       = 0x7e
	typeF32       = 0x7d
	typeF64       = 0x7c
	typeV128      = 0x7b
	typeFuncRef   = 0x70
	typeExternRef = 0x6f
)

// Kinds of imports and exports.
const (
	kindFunc   = 0
	kindTable  = 1
	kindMemory = 2
	kindGlobal = 3
	kindTag    = 4
)

// feature is a set of accepted extensions of the first version of WebAssembly.
type feature uint8

const (
	featureSignExtension feature = 1 << iota
	featureSatFloat
	featureMultiValue
	featureBulkMemory
	featureReferenceTypes
	featureSIMD
)

func (f feature) names() []string {
	out := []string{}
	for bit, name := range map[feature]string{
		featureSignExtension:  "sign-extension",
		featureSatFloat:       "saturating-float-to-int",
		featureMultiValue:     "multi-value",
		featureBulkMemory:     "bulk-memory",
		featureReferenceTypes: "reference-types",
		featureSIMD:           "simd",
	} {
		if f&bit != 0 {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

// unsupported refuses a feature by its name.
func (s *scan) unsupported(format string, args ...any) {
	s.refuse("the module needs "+format+", which is not accepted; build it for WebAssembly 2.0 without that feature", args...)
}
