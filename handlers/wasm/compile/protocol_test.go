package compile

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestDecodeVerdict(t *testing.T) {
	t.Parallel()
	report := func(edit string) string {
		return `{"report":{"kind":"command","size_bytes":8,"declared_memory":{"min_bytes":1,"max_bytes":2}` + edit + `}}`
	}
	for name, tc := range map[string]struct{ data, fault string }{
		"report":                {report(""), ""},
		"refusal":               {`{"refusal":{"reason":"no","details":["a"]}}`, ""},
		"nothing":               {``, "not JSON"},
		"no result":             {`{}`, "0 results"},
		"two results":           {`{"fault":"x","refusal":{"reason":"no"}}`, "2 results"},
		"no reason":             {`{"refusal":{}}`, "without a reason"},
		"unknown kind":          {report(`,"kind":"shell"`), `kind is "shell"`},
		"other size":            {report(`,"size_bytes":9`), "9 bytes; 8 were sent"},
		"memory of 2^62":        {report(`,"memory":{"min_bytes":0,"max_bytes":4611686018427387904}`), "memory has 0 to"},
		"negative memory":       {report(`,"declared_memory":{"min_bytes":-1,"max_bytes":1}`), "memory has -1"},
		"minimum over maximum":  {report(`,"declared_memory":{"min_bytes":3,"max_bytes":1}`), "memory has 3 to 1"},
		"too many imports":      {report(`,"imports":[` + strings.Repeat(`"a",`, maxItems) + `"a"]`), "list of 601"},
		"number for a string":   {report(`,"imports":[1]`), "not JSON"},
		"something after it":    {report("") + "x", "not JSON"},
		"a list for everything": {`[]`, "not JSON"},
	} {
		v, err := decodeVerdict([]byte(tc.data), 8)
		if tc.fault == "" && (err != nil || v == nil) || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) {
			t.Errorf("%s: %v; want %q", name, err, tc.fault)
		}
	}
}

func TestLinesAreFitToShow(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain “text” → done":           "plain “text” → done",
		"\x1b[31mred\r\n":               `\x1b[31mred\r\n`,
		"bad \xff":                      `bad \xff`,
		`say "hi"` + "\x00":             `say "hi"\x00`,
		strings.Repeat("x", 5000):       strings.Repeat("x", maxLine) + "…",
		strings.Repeat("x", 4095) + "ß": strings.Repeat("x", 4095) + "…",
	} {
		if got := line(in); got != want {
			t.Errorf("line(%.40q) is %.80q; want %.80q", in, got, want)
		}
	}
}

func TestHeaderRoundTrip(t *testing.T) {
	t.Parallel()
	want := header{ModuleBytes: 5, MemoryBytes: 1 << 40, CPUSeconds: 60, DataBytes: 3 << 29}
	var buf bytes.Buffer
	if err := writeHeader(&buf, want); err != nil {
		t.Fatal(err)
	}
	buf.WriteString("rest")
	if got, err := readHeader(&buf); err != nil || got != want || buf.String() != "rest" {
		t.Errorf("read %+v, %v, then %q", got, err, buf.String())
	}
	for _, bad := range []string{"", "abc", "\xff\xff\xff\xff", "\x00\x00\x00\x05{}", "\x00\x00\x00\x02{]", "\x00\x00\x00\x13{\"module_bytes\":-1}"} {
		if h, err := readHeader(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read as %+v", bad, h)
		}
	}
}

// FuzzDecodeVerdict: whatever a child answers, nothing panics, and what is accepted is fit to show and to store.
func FuzzDecodeVerdict(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"fault":"x"}`, `{"refusal":{"reason":"a\u001b[0m","details":["\n"]}}`,
		`{"report":{"kind":"reactor","size_bytes":8,"imports":["a.b"],"declared_memory":{"min_bytes":0,"max_bytes":65536}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := decodeVerdict(data, 8)
		if err != nil {
			return
		}
		var all []string
		switch {
		case v.Refusal != nil:
			all = append(v.Refusal.Details, v.Refusal.Reason)
		case v.Report != nil:
			all = append(append(v.Report.Imports, v.Report.Exports...), v.Report.Warnings...)
		default:
			all = []string{v.Fault}
		}
		for _, s := range all {
			if len(s) > 12*maxLine || strings.ContainsAny(s, "\n\r\x00\x1b") {
				t.Errorf("%.100q came through", s)
			}
		}
		if _, err := json.Marshal(v); err != nil {
			t.Error(err)
		}
	})
}
