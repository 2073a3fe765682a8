package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// dataMax bounds what --data reads, so that a mistaken file is an error and not a full memory. The server's own limit is smaller.
const dataMax = 256 << 20 // bytes

const dataHelp = `The data is TEXT, @FILE, or @- for standard input. Data that is one JSON value is sent as JSON, as it stands but for the white
space around it; other data is sent as bytes. --raw sends bytes in any case, exactly as they are.`

// readData resolves TEXT, @FILE and @-.
func (a *App) readData(arg string) ([]byte, error) {
	name, isFile := strings.CutPrefix(arg, "@")
	if !isFile {
		return []byte(arg), nil
	}
	in, from := a.In, "standard input"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usagef("--data: %w", err)
		}
		defer f.Close()
		in, from = f, name
	}
	data, err := io.ReadAll(io.LimitReader(in, dataMax+1))
	if err != nil {
		return nil, fmt.Errorf("--data: read %s: %w", from, err)
	}
	if len(data) > dataMax {
		return nil, usagef("--data: %s has more than %d bytes", from, dataMax)
	}
	return data, nil
}

// payloadField is the field of a request that carries data: payload with the very bytes of a JSON value, or payload_base64.
// (A json.RawMessage would be compacted by the encoder.)
func payloadField(data []byte, raw bool) []byte {
	if value, ok := jsonValue(data); ok && !raw {
		return append([]byte(`"payload":`), value...)
	}
	return fmt.Appendf(nil, `"payload_base64":%q`, base64.StdEncoding.EncodeToString(data))
}

// jsonValue returns the one JSON value that data is, without the white space around it.
func jsonValue(data []byte) ([]byte, bool) {
	trimmed := bytes.Trim(data, " \t\r\n")
	return trimmed, json.Valid(trimmed) && utf8.Valid(trimmed)
}

// asSent is what a handler gets of data that is enqueued without --raw.
func asSent(data []byte) []byte {
	if value, ok := jsonValue(data); ok {
		return value
	}
	return data
}

// withPayload adds a payload to the JSON object of a request.
func withPayload(object []byte, field []byte) []byte {
	out := bytes.TrimSuffix(object, []byte("}"))
	if len(out) > 1 {
		out = append(out, ',')
	}
	return append(append(out, field...), '}')
}
