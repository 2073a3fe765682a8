package queue

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// Every field of a spec, set to something, must change the fingerprint: also a field that is added later.
func TestSpecFingerprintCoversEveryField(t *testing.T) {
	t.Parallel()
	seen := map[[32]byte]string{SpecFingerprint(JobSpec{}): "the zero spec"}
	var visit func(path string, root JobSpec, index []int, typ reflect.Type)
	check := func(path string, s JobSpec) {
		sum := SpecFingerprint(s)
		if other, ok := seen[sum]; ok {
			t.Errorf("a spec with %s has the fingerprint of %s", path, other)
		}
		seen[sum] = path
	}
	visit = func(path string, root JobSpec, index []int, typ reflect.Type) {
		s := root
		v := reflect.ValueOf(&s).Elem().FieldByIndex(index)
		switch typ.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(7)
		case reflect.Slice:
			v.SetBytes([]byte("x"))
		case reflect.Map:
			v.Set(reflect.ValueOf(map[string]string{"x": "y"}))
		case reflect.Pointer:
			v.Set(reflect.New(typ.Elem())) // a priority of 0 is not "no priority"
		case reflect.Struct:
			for i := range typ.NumField() {
				visit(path+"."+typ.Field(i).Name, root, append(append([]int(nil), index...), i), typ.Field(i).Type)
			}
			return
		default:
			t.Fatalf("%s: a kind this test does not know: %s", path, typ)
		}
		check(path, s)
	}
	spec := reflect.TypeFor[JobSpec]()
	for i := range spec.NumField() {
		visit(spec.Field(i).Name, JobSpec{}, []int{i}, spec.Field(i).Type)
	}
}

func TestSpecFingerprintDoesNotRunTogether(t *testing.T) {
	t.Parallel()
	pairs := [][2]JobSpec{
		{{Tenant: "ab", Queue: "c"}, {Tenant: "a", Queue: "bc"}},
		{{Headers: map[string]string{"a": "b"}}, {Labels: map[string]string{"a": "b"}}},
		{{Labels: map[string]string{"a": "b", "c": "d"}}, {Labels: map[string]string{"a": "bcd"}}},
		{{Delay: time.Second}, {ExpiresIn: time.Second}},
	}
	for i, p := range pairs {
		if SpecFingerprint(p[0]) == SpecFingerprint(p[1]) {
			t.Errorf("pair %d: different specs share a fingerprint", i)
		}
	}
	many := map[string]string{}
	for i := range 20 {
		many[fmt.Sprint(i)] = "v"
	}
	first := SpecFingerprint(JobSpec{Labels: many})
	for range 20 { // the order of a map must not show
		if SpecFingerprint(JobSpec{Labels: many}) != first {
			t.Fatal("the same spec has two fingerprints")
		}
	}
	if SpecFingerprint(JobSpec{Payload: []byte{}, Labels: map[string]string{}}) != SpecFingerprint(JobSpec{}) {
		t.Error("empty and nil differ")
	}
}

func TestErrorFingerprint(t *testing.T) {
	t.Parallel()
	if ErrorFingerprint(nil) != "" {
		t.Error("no error has a fingerprint")
	}
	a := ErrorFingerprint(&JobError{Kind: "trap", Message: "bad width 12 at 7"})
	if b := ErrorFingerprint(&JobError{Kind: "trap", Message: "bad width 3 at 4096", Retryable: true}); a != b || len(a) != 8 {
		t.Errorf("fingerprints %q and %q, want the same 8 hex digits: only numbers differ", a, b)
	}
	for _, e := range []JobError{{Kind: "deadline", Message: "bad width 12 at 7"}, {Kind: "trap", Message: "bad width at 7"}} {
		if ErrorFingerprint(&e) == a {
			t.Errorf("%+v has the fingerprint of another failure", e)
		}
	}
}
