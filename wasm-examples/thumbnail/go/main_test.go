package main

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"strings"
	"testing"
)

func TestPayloadGivesWhatIsWanted(t *testing.T) {
	t.Parallel()
	photo, err := os.Open("../payload.jpg")
	if err != nil {
		t.Fatal(err)
	}
	defer photo.Close()
	text, err := os.ReadFile("../want.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Format        string
		Width, Height int
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(photo, &out, ""); err != nil {
		t.Fatal(err)
	}
	got, format, err := image.DecodeConfig(&out)
	if err != nil || format != want.Format || got.Width != want.Width || got.Height != want.Height {
		t.Errorf("got %s %d x %d (%v), want %+v", format, got.Width, got.Height, err, want)
	}
}

func TestThumbnail(t *testing.T) {
	t.Parallel()
	photo, err := os.ReadFile("../payload.jpg")
	if err != nil {
		t.Fatal(err)
	}
	tiny := &bytes.Buffer{}
	if err := png.Encode(tiny, image.NewGray(image.Rect(0, 0, 3, 500))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name          string
		data          []byte
		setting       string
		width, height int
		code          int
		message       string
	}{
		{"default size", photo, "", 128, 85, 0, ""},
		{"asked size", photo, "32", 32, 21, 0, ""},
		{"never larger", photo, "4096", 480, 320, 0, ""},
		{"at least one pixel wide", tiny.Bytes(), "50", 1, 50, 0, ""},
		{"no picture", []byte("hello"), "", 0, 0, exitDataError, "not a picture"},
		{"cut off", photo[:len(photo)/2], "", 0, 0, exitDataError, "not a picture"},
		{"size 0", photo, "0", 0, 0, exitConfig, "from 1 to 4096"},
		{"size is no number", photo, "big", 0, 0, exitConfig, `"big"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := run(bytes.NewReader(c.data), &out, c.setting)
			if c.code != 0 {
				if err == nil || exitCode(err) != c.code || !strings.Contains(err.Error(), c.message) {
					t.Errorf("got %v, want exit code %d and %q", err, c.code, c.message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := png.DecodeConfig(&out)
			if err != nil || got.Width != c.width || got.Height != c.height {
				t.Errorf("got %d x %d (%v), want %d x %d", got.Width, got.Height, err, c.width, c.height)
			}
		})
	}
}
