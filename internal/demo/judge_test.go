package demo

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The judges refuse what is wrong.
func TestJudgeOfCounts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("one two\nthree"), 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := countWithWC(t.Context(), file)
	if err != nil || want != (counts{3, 1, 13}) {
		t.Fatalf("wc: %+v, %v", want, err)
	}
	for result, fault := range map[string]string{
		`{"words":3,"lines":1,"bytes":13}`: "",
		`{"words":4,"lines":1,"bytes":13}`: "wc says 3 words",
		`{}`:                               "wc says",
		``:                                 "result",
	} {
		if _, err := want.judge([]byte(result)); (err == nil) != (fault == "") || (err != nil && !strings.Contains(err.Error(), fault)) {
			t.Errorf("%q: got %v, want %q", result, err, fault)
		}
	}
	if _, err := countWithWC(t.Context(), file+".absent"); err == nil {
		t.Error("a file that is not there has been counted")
	}
}

func TestJudgeOfPictures(t *testing.T) {
	t.Parallel()
	if got := (size{150, 103}).scaled(128); got != (size{128, 88}) {
		t.Errorf("150 x 103 scaled to 128 is %v", got)
	}
	if got := (size{150, 103}).scaled(150); got != (size{150, 103}) {
		t.Errorf("150 x 103 scaled to 150 is %v", got)
	}
	m := image.NewNRGBA(image.Rect(0, 0, 4, 3))
	encode := func() []byte {
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	empty := encode()
	m.Set(1, 1, color.White)
	good := encode()
	for _, c := range []struct {
		result []byte
		want   size
		fault  string
	}{
		{good, size{4, 3}, ""},
		{good, size{3, 4}, "got 4 x 3 pixels, want 3 x 4"},
		{empty, size{4, 3}, "empty"},
		{good[:len(good)-20], size{4, 3}, "no PNG"},
		{nil, size{4, 3}, "no PNG"},
	} {
		if _, err := c.want.judge(c.result); (err == nil) != (c.fault == "") || (err != nil && !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%d bytes: got %v, want %q", len(c.result), err, c.fault)
		}
	}
}
