package jsonin_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/taskhost/taskhost/host/httpapi/jsonin"
)

// fields reads an object as its raw values.
func fields(r io.Reader, limit int) (map[string]string, error) {
	s := jsonin.New(r)
	got := map[string]string{}
	err := s.Object(func(key string) error {
		raw, err := s.Value(limit)
		got[key] = string(raw)
		return err
	})
	if err != nil {
		return nil, err
	}
	return got, s.End()
}

func TestValueIsKeptByteForByte(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`1`, `-0`, `1e400`, `9007199254740993`, `1.0`, `true`, `false`, `null`, `""`, `"a\"]}\\"`, `"\u00e9é\/"`, `{}`, `[]`,
		`{ "a" : [ 1 ,{"b":"}"} ] , "a":2 }`, "[\n\t1 ,\r\n2]", strings.Repeat("[", jsonin.DepthMax) + strings.Repeat("]", jsonin.DepthMax),
		`"` + strings.Repeat("x", 100_000) + `"`,
	} {
		body := "{ \"k\" :\n" + value + " ,\t\"z\":0 } "
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(body), "byte by byte": iotest.OneByteReader(strings.NewReader(body))} {
			got, err := fields(r, 1<<20)
			if err != nil || got["k"] != value || got["z"] != "0" {
				t.Errorf("%s: %.60q became %.60q (%v)", name, value, got["k"], err)
			}
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		at   int64
	}{
		{``, 0},
		{`  `, 2},
		{`[]`, 0},
		{`{`, 1},
		{`{"a"`, 4},
		{`{"a":`, 5},
		{`{"a":1`, 6},
		{`{"a":1,`, 7},
		{`{"a":1,}`, 7},
		{`{"a" 1}`, 5},
		{`{a:1}`, 1},
		{`{"a":1 "b":2}`, 7},
		{`{"a":1,"a":2}`, 7},
		{`{"a":1,"\u0061":2}`, 7},
		{`{"a":01}`, 6},
		{`{"a":nul}`, 8},
		{`{"a":"x}`, 8},
		{"{\"a\":\"\x01\"}", 6},
		{"{\"a\":\"x\xc3\"}", 7},
		{`{"a":[1,,2]}`, 8},
		{`{"a":]}`, 5},
		{`{"a":,}`, 5},
		{`{"a":1}}`, 7},
		{`{"a":` + strings.Repeat("[", jsonin.DepthMax+1), 5 + jsonin.DepthMax},
		{`{"` + strings.Repeat("k", jsonin.KeyBytesMax) + `":1}`, 1},
	} {
		_, err := fields(strings.NewReader(c.body), 1<<20)
		syntax := (*jsonin.SyntaxError)(nil)
		if !errors.As(err, &syntax) || syntax.Offset != c.at {
			t.Errorf("%.60q: %v, want a syntax error at byte %d", c.body, err, c.at)
		}
	}
}

func TestValueOverItsLimit(t *testing.T) {
	t.Parallel()
	s := jsonin.New(strings.NewReader(`["` + strings.Repeat("a", 98) + `",["x"],2]`))
	var sizes []int64
	err := s.Array(func(int) error {
		_, err := s.Value(5)
		if size := (*jsonin.SizeError)(nil); errors.As(err, &size) {
			sizes = append(sizes, size.Got)
			return nil // and on behind it
		}
		return err
	})
	if err != nil || len(sizes) != 1 || sizes[0] != 100 {
		t.Errorf("%v %v", sizes, err)
	}
}

func TestReadErrorIsPassedOn(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for _, head := range []string{``, `{`, `{"a`, `{"a":`, `{"a":[1`, `{"a":1`} {
		if _, err := fields(io.MultiReader(strings.NewReader(head), iotest.ErrReader(boom)), 100); !errors.Is(err, boom) {
			t.Errorf("%q: %v", head, err)
		}
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`""`: "", `"a"`: "a", `"\u00e9\/\n"`: "é/\n", `"\ud83d\ude00"`: "😀", `"\ufffd"`: "\ufffd", "\"\ufffd\\n\"": "\ufffd\n", `"\\ud800"`: `\ud800`,
	} {
		if got, err := jsonin.String([]byte(raw)); err != nil || got != want {
			t.Errorf("%s: %q %v", raw, got, err)
		}
	}
	for _, raw := range []string{`1`, `null`, ``, `"\ud800"`, `"\udc00"`, `"\ud800x"`, `"\ud800\u0041"`} {
		if got, err := jsonin.String([]byte(raw)); err == nil {
			t.Errorf("%s: %q", raw, got)
		}
	}
}

// What the scanner takes is JSON, and its values are parts of the body; what encoding/json takes, it takes, but for its
// own rules: an object, no key twice, UTF-8, depth.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":{"b":[1,"x\"",null]},"c":"é"}`, `{"a":1e400, "b" : "\ud83d\ude00"}`, `{`, `{"a":]}`, "{\"a\":\"\xff\"}", `{"a":tru e}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		whole, err := fields(bytes.NewReader(body), 1<<20)
		bytewise, err2 := fields(iotest.OneByteReader(bytes.NewReader(body)), 1<<20)
		if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Fatalf("whole: %v, byte by byte: %v", err, err2)
		}
		if err != nil {
			if syntax := (*jsonin.SyntaxError)(nil); errors.As(err, &syntax) && (syntax.Offset < 0 || syntax.Offset > int64(len(body))) {
				t.Fatalf("offset %d of %d", syntax.Offset, len(body))
			}
			return
		}
		if !json.Valid(body) || !utf8.Valid(body) {
			t.Fatalf("took %q", body)
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		for k, v := range want {
			if whole[k] != string(v) || bytewise[k] != string(v) {
				t.Fatalf("%q: %q, want %q", k, whole[k], v)
			}
		}
	})
}

func BenchmarkValue(b *testing.B) {
	body := []byte(`{"type":"a","payload":{"text":"` + strings.Repeat("lorem ipsum ", 1000) + `"}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fields(bytes.NewReader(body), 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}
