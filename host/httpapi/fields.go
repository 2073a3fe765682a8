package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taskhost/taskhost/host/httpapi/jsonin"
	"github.com/taskhost/taskhost/queue"
)

// scalarBytesMax bounds a string, number or other small value as it is written in a body: the longest key with every
// character escaped.
const scalarBytesMax = 8 << 10

// fieldReader reads the value of one named field; every method names the field in its error.
type fieldReader struct {
	s    *jsonin.Scanner
	path string // of the object, "" or "jobs[2]"
}

// at is the full name of a field.
func (f fieldReader) at(field string) string {
	if f.path == "" {
		return field
	}
	return f.path + "." + field
}

// in reads an object inside a field.
func (f fieldReader) in(field string) fieldReader { return fieldReader{s: f.s, path: f.at(field)} }

// raw returns a small value as it is written.
func (f fieldReader) raw(field string) ([]byte, error) {
	raw, err := f.s.Value(scalarBytesMax)
	if size := (*jsonin.SizeError)(nil); errors.As(err, &size) {
		return nil, invalid(f.at(field), "is too long: %d bytes in the body, at most %d are read", size.Got, size.Max)
	}
	return raw, err
}

// str reads a string.
func (f fieldReader) str(field string) (string, error) {
	raw, err := f.raw(field)
	if err != nil {
		return "", err
	}
	v, err := jsonin.String(raw)
	if err != nil {
		return "", invalid(f.at(field), "%s", err)
	}
	return v, nil
}

// filled reads a string that may not be empty, of at most limit bytes.
func (f fieldReader) filled(field string, limit int) (string, error) {
	v, err := f.str(field)
	if err == nil && (v == "" || len(v) > limit) {
		return "", invalid(f.at(field), "must be 1 to %d bytes, got %d", limit, len(v))
	}
	return v, err
}

// name reads the name of a queue or a type.
func (f fieldReader) name(field string) (string, error) {
	v, err := f.str(field)
	if err != nil {
		return "", err
	}
	return v, queue.ValidName(f.at(field), v)
}

// oneOf reads a string out of a list.
func (f fieldReader) oneOf(field string, allowed ...string) (string, error) {
	v, err := f.str(field)
	if err == nil && !slices.Contains(allowed, v) {
		return "", invalid(f.at(field), "must be one of %s; got %.80q", strings.Join(allowed, ", "), v)
	}
	return v, err
}

// integer reads a whole number within [least, most].
func (f fieldReader) integer(field string, least, most int) (int, error) {
	raw, err := f.raw(field)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < int64(least) || n > int64(most) {
		return 0, invalid(f.at(field), "must be a whole number in [%d, %d], got %.40s", least, most, raw)
	}
	return int(n), nil
}

// number reads a number.
func (f fieldReader) number(field string) (float64, error) {
	raw, err := f.raw(field)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0, invalid(f.at(field), "must be a number, got %.40s", raw)
	}
	return n, nil
}

// boolean reads true or false.
func (f fieldReader) boolean(field string) (bool, error) {
	raw, err := f.raw(field)
	if err != nil {
		return false, err
	}
	switch string(raw) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, invalid(f.at(field), "must be true or false, got %.40s", raw)
}

// null consumes the value when it is null.
func (f fieldReader) null() (bool, error) {
	b, err := f.s.Peek()
	if err != nil || b != 'n' {
		return false, err
	}
	_, err = f.s.Value(scalarBytesMax) // "null" is the only value that begins with n
	return err == nil, err
}

// duration reads a string such as "90s" within [least, most].
func (f fieldReader) duration(field string, least, most time.Duration) (time.Duration, error) {
	raw, err := f.raw(field)
	if err != nil {
		return 0, err
	}
	text, err := jsonin.String(raw)
	if err != nil {
		return 0, invalid(f.at(field), `must be a duration such as "90s" or "5m", got %.40s`, raw)
	}
	return parseDuration(f.at(field), text, least, most)
}

// parseDuration reads a duration within [least, most].
func parseDuration(field, text string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, invalid(field, `must be a duration such as "90s" or "5m", got %.40q`, text)
	}
	if d < least || d > most {
		return 0, invalid(field, "must be between %s and %s, got %s", least, most, text)
	}
	return d, nil
}

// instant reads a time in RFC 3339.
func (f fieldReader) instant(field string) (time.Time, error) {
	text, err := f.str(field)
	if err != nil {
		return time.Time{}, err
	}
	return parseInstant(f.at(field), text)
}

func parseInstant(field, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, invalid(field, `must be a time in RFC 3339 such as "2026-11-30T03:00:00Z", got %.60q`, text)
	}
	return at.UTC(), nil
}

// table reads an object whose values are strings, of at most limit bytes as it is written.
func (f fieldReader) table(field string, limit int) (map[string]string, error) {
	// Six bytes are the longest a byte of text becomes (\u00XX); the store's own limit counts the text.
	raw, err := f.s.Value(6*limit + scalarBytesMax)
	if size := (*jsonin.SizeError)(nil); errors.As(err, &size) {
		return nil, &queue.LimitError{Field: f.at(field), Limit: "headers", Max: int64(limit), Got: size.Got, Unit: "bytes"}
	}
	if err != nil {
		return nil, err
	}
	if raw[0] != '{' {
		return nil, invalid(f.at(field), "must be an object of strings, got %s", jsonin.Kind(raw))
	}
	table := map[string]string{}
	inner := fieldReader{s: jsonin.New(bytes.NewReader(raw)), path: f.at(field)}
	err = inner.s.Object(func(key string) error {
		if key == "" {
			return invalid(f.at(field), "has an empty name")
		}
		v, err := inner.str(key)
		table[key] = v
		return err
	})
	if syntax := (*jsonin.SyntaxError)(nil); errors.As(err, &syntax) { // a name given twice: the rest was checked
		return nil, invalid(f.at(field), "%s", syntax.Reason)
	}
	return table, err
}

// names reads an array of strings.
func (f fieldReader) names(field string, most int) ([]string, error) {
	var list []string
	if b, err := f.s.Peek(); err != nil {
		return nil, err
	} else if b != '[' {
		raw, err := f.raw(field)
		if err != nil {
			return nil, err
		}
		return nil, invalid(f.at(field), "must be an array of strings, got %s", jsonin.Kind(raw))
	}
	err := f.s.Array(func(i int) error {
		if i >= most {
			return invalid(f.at(field), "must have at most %d entries", most)
		}
		v, err := f.str(fmt.Sprintf("%s[%d]", field, i))
		list = append(list, v)
		return err
	})
	return list, err
}

// base64 reads bytes in standard base64 with padding. limit bounds the decoded bytes.
func (f fieldReader) base64(field string, limit int) ([]byte, error) {
	// A string may escape '/' as '\/', so it can be twice as long as what it says.
	raw, err := f.s.Value(2*base64.StdEncoding.EncodedLen(limit) + 2)
	if size := (*jsonin.SizeError)(nil); errors.As(err, &size) {
		return nil, &queue.LimitError{Field: f.at(field), Limit: "payload", Max: int64(limit), Got: (size.Got - 2) / 4 * 3, Unit: "bytes"}
	}
	if err != nil {
		return nil, err
	}
	text, err := jsonin.String(raw)
	if err != nil {
		return nil, invalid(f.at(field), "%s", err)
	}
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if bad := base64.CorruptInputError(0); errors.As(err, &bad) {
		return nil, invalid(f.at(field), "must be standard base64 with padding; it is not at character %d", int64(bad))
	}
	return data, err
}

// unknown refuses a field. Fields of a later version are told apart from mistakes.
func (f fieldReader) unknown(field string, later []string, known ...string) error {
	if field == "" || len(field) > queue.NameMax { // not a name to repeat as it is
		field = fmt.Sprintf("%.40q", field)
	}
	if slices.Contains(later, field) {
		return invalid(f.at(field), "is not in this version")
	}
	return invalid(f.at(field), "is not a field; known: %s", strings.Join(known, ", "))
}

// isJSON reports whether b can be shown as a JSON value inside an answer.
func isJSON(b []byte) bool { return len(b) > 0 && json.Valid(b) && jsonin.IsText(b) }
