package httpapi

import (
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// timestampLayout is RFC 3339 with milliseconds, always three digits, so that answers sort and compare as text.
const timestampLayout = "2006-01-02T15:04:05.000Z07:00"

// Timestamp is a time in an answer: UTC with milliseconds, or null for the zero time.
type Timestamp struct{ time.Time }

// MarshalJSON writes the time, or null.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	b := make([]byte, 0, len(timestampLayout)+2)
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, timestampLayout)
	return append(b, '"'), nil
}

// Schema describes the type in the OpenAPI document.
func (Timestamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Nullable: true, Examples: []any{"2026-11-30T03:00:00.000Z"}}
}

// Text is a string in an answer that is null when it is empty.
type Text string

// MarshalJSON writes the string, or null.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return marshalPlain(string(t))
}

// Schema describes the type in the OpenAPI document.
func (Text) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Nullable: true}
}

// Value is a JSON value in an answer, shown as it is; null when there is none.
type Value []byte

// MarshalJSON returns the value.
func (v Value) MarshalJSON() ([]byte, error) {
	if len(v) == 0 {
		return []byte("null"), nil
	}
	return v, nil
}

// UnmarshalJSON keeps the value as it is.
func (v *Value) UnmarshalJSON(b []byte) error {
	*v = append((*v)[:0], b...)
	return nil
}

// Schema describes the type in the OpenAPI document: any JSON value.
func (Value) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "any JSON value"}
}

// Base64 is bytes in an answer, in standard base64 with padding.
type Base64 []byte

// Schema describes the type in the OpenAPI document.
func (Base64) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: "standard base64 with padding; empty for no bytes"}
}
