package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mattn/go-isatty"
	"go.yaml.in/yaml/v3"
)

func (a *App) checkOutput() error {
	switch a.output {
	case "table", "json", "yaml", "id":
		return nil
	}
	bad := a.output
	a.output = "table"
	return usagef("--output must be table, json, yaml or id, got %q", bad)
}

// show prints an answer: raw is the server's JSON, ids what -o id prints, table what people read.
func (a *App) show(raw []byte, ids []string, table func(w io.Writer)) error {
	switch a.output {
	case "json":
		var b bytes.Buffer
		if err := json.Indent(&b, bytes.TrimSpace(raw), "", "  "); err != nil {
			return fmt.Errorf("the answer is not JSON: %w", err)
		}
		b.WriteByte('\n')
		return a.write(b.Bytes())
	case "yaml":
		text, err := toYAML(raw)
		if err != nil {
			return err
		}
		return a.write(text)
	case "id":
		var b strings.Builder
		for _, id := range ids {
			b.WriteString(id + "\n")
		}
		return a.write([]byte(b.String()))
	}
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	table(w)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("lay out the table: %w", err)
	}
	return a.write(b.Bytes())
}

// showValue is show for an answer that was not made by a server.
func (a *App) showValue(v any, ids []string, table func(w io.Writer)) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return a.show(b.Bytes(), ids, table)
}

func (a *App) write(b []byte) error {
	if _, err := a.Out.Write(b); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// say tells people something, on stderr.
func (a *App) say(format string, args ...any) {
	fmt.Fprintf(a.Err, format+"\n", args...)
}

// toYAML keeps the order of the fields and every digit of the numbers: JSON is YAML, only the style changes.
func toYAML(raw []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("turn the answer into YAML: %w", err)
	}
	var plain func(n *yaml.Node)
	plain = func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || plainWord(n.Value) {
			n.Style = 0
		}
		for _, c := range n.Content {
			plain(c)
		}
	}
	plain(&doc)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, fmt.Errorf("turn the answer into YAML: %w", err)
	}
	return b.Bytes(), nil
}

// plainWord reports whether text needs no quotes for any reader of YAML, old ones that take "yes" for true included.
func plainWord(text string) bool {
	switch strings.ToLower(text) {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	letter := text[0] >= 'a' && text[0] <= 'z' || text[0] >= 'A' && text[0] <= 'Z'
	return letter && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-/", r)
	})
}

// row prints one line of a table; cells are made safe for a terminal.
func row(w io.Writer, cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		text[i] = safe(fmt.Sprint(c))
	}
	fmt.Fprintln(w, strings.Join(text, "\t"))
}

// safe keeps what a handler or a producer wrote from steering the terminal: control characters become \xNN.
func safe(s string) string {
	if !strings.ContainsFunc(s, unsafeRune) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unsafeRune(r) {
			fmt.Fprintf(&b, `\x%02x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func unsafeRune(r rune) bool {
	return r < 0x20 || r >= 0x7f && r <= 0x9f || r == 0x2028 || r == 0x2029 || r == 0x200e || r == 0x200f || r == 0x061c ||
		r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

// ago shows a time relative to now, the way people read lists.
func ago(t *time.Time) string {
	if t == nil {
		return "-"
	}
	d := time.Since(*t)
	if d < 0 {
		return "in " + span(-d)
	}
	return span(d) + " ago"
}

func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// bytesText shows a size the way people read it.
func bytesText(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// dash stands for what is not there.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
