package samples

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/taskhost/taskhost/abi"
)

// FuzzHello compares the reader of the C samples with encoding/json: both take and refuse the same payloads, and find the same name.
// The samples are stricter in two points: text must be UTF-8, and nesting ends at 64.
func FuzzHello(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"name":"Ada"}`, `{"name":null}`, `{"n\u0061me":"\ud83d\ude00"}`, `{"name":"a","name":"b"}`, `{"a":[1,{"b":-0.5e-7}],"name":"x"}`,
		`{"a":01}`, `{"a":.5}`, `{"a":1.}`, `{"a":-}`, `{"a":1e}`, `{"a":tru}`, `{"name":"\u12G4"}`, "{\"name\":\"\xed\xa0\x80\"}",
		`[]`, `1`, ` {"name" : "x" } `, `{"name":"x"},`, `{,}`, `{"a"}`, `[[[[`, "{\"a\":\"\x00\"}", `{"":""}`, "\ufeff{}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) > 64<<10 || !utf8.Valid(payload) || depth(payload) > 60 {
			return
		}
		h := run(t, Module(), "hello", "1", string(payload), false)
		if len(payload) == 0 {
			payload = []byte("{}")
		}
		var members map[string]json.RawMessage
		err := json.Unmarshal(payload, &members)
		object := err == nil && members != nil
		name, has := members["name"]
		isText := has && name[0] == '"'
		switch {
		case !object || (has && !isText && !bytes.Equal(name, []byte("null"))):
			if h.code != abi.HandlePermanent {
				t.Errorf("%q: got %d %q, encoding/json says %v", payload, h.code, h.output, err)
			}
		case isText:
			want := `{"greeting":"Hello, ` + string(name[1:]) + `}`
			if h.code != abi.HandleDone || string(h.output) != want {
				t.Errorf("%q: got %d %q %q, want %s", payload, h.code, h.output, h.message, want)
			}
		default:
			if h.code != abi.HandleDone || string(h.output) != `{"greeting":"Hello, world"}` {
				t.Errorf("%q: got %d %q %q", payload, h.code, h.output, h.message)
			}
		}
		if h.code == abi.HandleDone && !json.Valid(h.output) {
			t.Errorf("%q: result %q is not JSON", payload, h.output)
		}
	})
}

// depth is at least the nesting of a payload.
func depth(payload []byte) int {
	return bytes.Count(payload, []byte("[")) + bytes.Count(payload, []byte("{"))
}
