package examples

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// All examples build with the one command their README gives.
func TestMakeBuildsAll(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("clang"); err != nil && os.Getenv("CI") == "" {
		t.Skip("clang is not installed (scripts/setup.sh installs it)")
	}
	out := t.TempDir()
	if text, err := exec.CommandContext(t.Context(), "make", "OUT="+out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, name := range []string{"wordcount-go", "wordcount-c", "thumbnail-go", "samples-c", "conformance-go"} {
		module, err := os.ReadFile(filepath.Join(out, name+".wasm"))
		if err != nil {
			t.Error(err)
		} else if !bytes.HasPrefix(module, []byte("\x00asm\x01\x00\x00\x00")) {
			t.Errorf("%s is not a core module: %x", name, module[:min(8, len(module))])
		}
	}
}

// What the word counts must be is not our own opinion.
func TestWantedCountsAreThoseOfWC(t *testing.T) {
	t.Parallel()
	wc := exec.CommandContext(t.Context(), "wc", "-w", "-l", "-c", "wordcount/payload.txt")
	wc.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := wc.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want struct{ Words, Lines, Bytes int }
	text, err := os.ReadFile("wordcount/want.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(string(out))[:3], " ")
	if wanted := strings.Join([]string{strconv.Itoa(want.Lines), strconv.Itoa(want.Words), strconv.Itoa(want.Bytes)}, " "); got != wanted {
		t.Errorf("wc says %s, want.json %s (lines, words, bytes)", got, wanted)
	}
}
