package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/taskhost/taskhost/handlers"
)

// testCase is one file of cases/: a payload and what the handler must make of it.
type testCase struct {
	name string

	Payload       json.RawMessage `json:"payload"`
	PayloadText   *string         `json:"payload_text"`
	PayloadBase64 *string         `json:"payload_base64"`

	Want       json.RawMessage `json:"want"` // compared by value
	WantText   *string         `json:"want_text"`
	WantBase64 *string         `json:"want_base64"`
	WantError  *wantError      `json:"want_error"`

	Attempt int               `json:"attempt"` // default 1
	Headers map[string]string `json:"headers"`
	Config  map[string]string `json:"config"`
}

// wantError is a failure that is expected. Empty fields match anything.
type wantError struct {
	Kind    string `json:"kind"`
	Message string `json:"message"` // a part of it
}

// readCases reads the cases of a project, by name.
func readCases(dir string) ([]*testCase, error) {
	names, err := filepath.Glob(filepath.Join(dir, "cases", "*.json"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, failf(ExitUsage, "there are no cases: %s has no *.json", filepath.Join(dir, "cases"))
	}
	slices.Sort(names)
	cases := make([]*testCase, 0, len(names))
	for _, name := range names {
		c, err := readCase(name)
		if err != nil {
			return nil, usagef("%s: %w", name, err)
		}
		c.name, _ = filepath.Rel(dir, name)
		cases = append(cases, c)
	}
	return cases, nil
}

func readCase(name string) (*testCase, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var c testCase
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return nil, fmt.Errorf("not a case: %w", err)
	}
	if dec.More() {
		return nil, errors.New("not a case: there is something after the object")
	}
	if n := given(c.Payload != nil, c.PayloadText != nil, c.PayloadBase64 != nil); n != 1 {
		return nil, fmt.Errorf("give one of payload, payload_text, payload_base64; got %d", n)
	}
	if n := given(c.Want != nil, c.WantText != nil, c.WantBase64 != nil, c.WantError != nil); n != 1 {
		return nil, fmt.Errorf("give one of want, want_text, want_base64, want_error; got %d", n)
	}
	if c.Attempt == 0 {
		c.Attempt = 1
	}
	if c.Attempt < 0 || c.Attempt > 1000 {
		return nil, fmt.Errorf("attempt must be between 1 and 1000, got %d", c.Attempt)
	}
	return &c, nil
}

func given(flags ...bool) (n int) {
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

func (c *testCase) payload() ([]byte, error) {
	switch {
	case c.PayloadText != nil:
		return []byte(*c.PayloadText), nil
	case c.PayloadBase64 != nil:
		return base64.StdEncoding.DecodeString(*c.PayloadBase64)
	}
	return c.Payload, nil
}

// check returns what is not as expected, "" when all is.
func (c *testCase) check(out *handlers.Outcome) (string, error) {
	if c.WantError != nil {
		switch {
		case out.Kind == handlers.OutcomeSucceeded:
			return fmt.Sprintf("succeeded with %s, want an error", clip(string(out.Result))), nil
		case out.Error == nil:
			return fmt.Sprintf("ended %s without an error", out.Kind), nil
		case c.WantError.Kind != "" && c.WantError.Kind != out.Error.Kind:
			return fmt.Sprintf("failed with %s, want the kind %s", failureText(out), c.WantError.Kind), nil
		case !strings.Contains(out.Error.Message, c.WantError.Message):
			return fmt.Sprintf("failed with %s, want a message with %q", failureText(out), c.WantError.Message), nil
		}
		return "", nil
	}
	if out.Kind != handlers.OutcomeSucceeded {
		return failureText(out), nil
	}
	if c.Want != nil {
		return sameJSON(out.Result, c.Want), nil
	}
	var want []byte
	if c.WantText != nil {
		want = []byte(*c.WantText)
	} else {
		var err error
		if want, err = base64.StdEncoding.DecodeString(*c.WantBase64); err != nil {
			return "", fmt.Errorf("want_base64: %w", err)
		}
	}
	if !bytes.Equal(out.Result, want) {
		return fmt.Sprintf("got  %q\nwant %q", clip(string(out.Result)), clip(string(want))), nil
	}
	return "", nil
}

// sameJSON compares two JSON values: objects without order, numbers digit by digit.
func sameJSON(got, want []byte) string {
	read := func(b []byte) (v any, err error) {
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		if err = dec.Decode(&v); err == nil && dec.More() {
			err = errors.New("more than one value")
		}
		return v, err
	}
	w, _ := read(want) // was read once already
	g, err := read(got)
	if err != nil {
		return fmt.Sprintf("got %q, which is not JSON: %s", clip(string(got)), err)
	}
	if !reflect.DeepEqual(g, w) {
		var compact bytes.Buffer
		_ = json.Compact(&compact, want) // was read as JSON
		return fmt.Sprintf("got  %s\nwant %s", clip(string(got)), clip(compact.String()))
	}
	return ""
}
