package main

import (
	"testing"

	"github.com/taskhost/taskhost/sdk/go/guest/guesttest"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                        `{"words":0,"lines":0,"bytes":0}`,
		"one":                     `{"words":1,"lines":0,"bytes":3}`,
		" one\ttwo\r\n\v three\f": `{"words":3,"lines":1,"bytes":18}`,
		"naïve żółw\n\n":          `{"words":2,"lines":2,"bytes":16}`,
	} {
		got := guesttest.Run(handle, guesttest.Job{Payload: []byte(text)})
		if string(got.Output) != want {
			t.Errorf("%q: got %s, want %s", text, got.Output, want)
		}
	}
}
