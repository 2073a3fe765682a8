package compile

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/admission"
	"github.com/taskhost/taskhost/handlers/wasm/lockdown"
)

// header precedes the module on the child's stdin, as JSON after its length in four bytes, big endian.
type header struct {
	ModuleBytes int    `json:"module_bytes"`
	MemoryBytes int64  `json:"memory_bytes"` // what the module is admitted under
	CPUSeconds  uint64 `json:"cpu_seconds"`
	DataBytes   int64  `json:"data_bytes"`
	// Lockdown is how the child is locked down before it reads the module.
	Lockdown lockdown.Plan `json:"lockdown"`
}

// verdict is the child's answer on stdout, as JSON. Exactly one of the first three is set.
type verdict struct {
	Report  *admission.Report `json:"report,omitempty"`
	Refusal *refusal          `json:"refusal,omitempty"`
	Fault   string            `json:"fault,omitempty"`  // of the host, not of the module
	Unsafe  bool              `json:"unsafe,omitempty"` // the fault is that the child could not be locked down
}

type refusal struct {
	Reason  string   `json:"reason"`
	Details []string `json:"details,omitempty"`
}

// Bounds of what the supervisor believes.
const (
	maxHeader  = 4 << 10
	maxVerdict = 2 << 20
	maxStderr  = 16 << 10
	maxLine    = 4 << 10 // one string of a verdict
	maxItems   = 600     // strings in one list of a verdict
	maxMemory  = 4 << 30
)

func writeHeader(w io.Writer, h header) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
	return err
}

func readHeader(r io.Reader) (h header, err error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return h, fmt.Errorf("no request on stdin: %w", err)
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxHeader {
		return h, fmt.Errorf("a request of %d bytes; at most %d are read", n, maxHeader)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return h, fmt.Errorf("request: %w", err)
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("request: %w", err)
	}
	if most := (admission.Limits{}).WithDefaults().SizeBytes; h.ModuleBytes < 0 || h.ModuleBytes > most {
		return h, fmt.Errorf("request: a module of %d bytes; at most %d are read", h.ModuleBytes, most)
	}
	return h, nil
}

// decodeVerdict examines what a child answered. The child may have been taken over by the module: nothing in here is believed
// beyond its form, no string is passed on unescaped, and an error means that the child did not keep to the protocol.
func decodeVerdict(data []byte, moduleBytes int) (*verdict, error) {
	var v verdict
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	set := 0
	for _, is := range []bool{v.Report != nil, v.Refusal != nil, v.Fault != ""} {
		if is {
			set++
		}
	}
	if set != 1 {
		return nil, fmt.Errorf("it holds %d results in place of one", set)
	}
	v.Fault = line(v.Fault)
	if v.Refusal != nil {
		if v.Refusal.Reason = line(v.Refusal.Reason); v.Refusal.Reason == "" {
			return nil, errors.New("it refuses without a reason")
		}
		return &v, lines(v.Refusal.Details)
	}
	if v.Report != nil {
		return &v, checkReport(v.Report, moduleBytes)
	}
	return &v, nil
}

func checkReport(r *admission.Report, moduleBytes int) error {
	if r.Kind != handlers.KindCommand && r.Kind != handlers.KindReactor {
		return fmt.Errorf("it says the kind is %.20q", r.Kind)
	}
	if r.SizeBytes != int64(moduleBytes) {
		return fmt.Errorf("it says the module has %d bytes; %d were sent", r.SizeBytes, moduleBytes)
	}
	for _, m := range []handlers.Memory{r.DeclaredMemory, r.Memory} {
		if m.MinBytes < 0 || m.MinBytes > m.MaxBytes || m.MaxBytes > maxMemory {
			return fmt.Errorf("it says the memory has %d to %d bytes", m.MinBytes, m.MaxBytes)
		}
	}
	for _, list := range [][]string{r.Imports, r.Exports, r.Features, r.Warnings, r.MemoryWarnings} {
		if err := lines(list); err != nil {
			return err
		}
	}
	return nil
}

// lines makes the strings of a list fit to show, in place.
func lines(list []string) error {
	if len(list) > maxItems {
		return fmt.Errorf("it has a list of %d strings; at most %d are read", len(list), maxItems)
	}
	for i := range list {
		list[i] = line(list[i])
	}
	return nil
}

// line cuts a string to a bounded length and escapes what a terminal or a log would take for a command.
func line(s string) string {
	if len(s) > maxLine {
		s = strings.ToValidUTF8(s[:maxLine], "") + "…"
	}
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return s
	}
	q := strconv.QuoteToASCII(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
