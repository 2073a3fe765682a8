package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the guides under docs show is true: the commands of their blocks "console run" work against a fresh server, one server
// and one shell per guide, from top to bottom. A command must exit with 0 unless it ends in "# exit N"; "# HTTP NNN" on a curl
// line expects that status to be an error. The files of blocks "… file=NAME" are in the folder. Every line of output that is shown
// must have been printed, where numbers, times, ids and hashes may differ, and "…" stands for what was left out.
func TestGuides(t *testing.T) {
	t.Parallel()
	guides, err := filepath.Glob("../../../../docs/*.md")
	if err != nil || len(guides) < 3 {
		t.Fatalf("found the guides %q, want at least 3 (%v)", guides, err)
	}
	for _, path := range guides {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			g := readGuide(string(text))
			if g.commands == 0 {
				t.Fatal("it has no command that can be run")
			}
			if strings.Contains(g.script, "--lang c") || strings.Contains(g.script, "clang ") {
				if _, err := exec.LookPath("clang"); err != nil && os.Getenv("CI") == "" {
					t.Skip("clang is not installed (scripts/setup.sh installs it)")
				}
			}
			g.run(t)
		})
	}
}

// guide is what of a guide can be checked.
type guide struct {
	script   string            // for sh
	commands int               //
	shown    map[int]string    // lines of output, by their number in the guide
	files    map[string]string // by name
}

var (
	wantExit = regexp.MustCompile(`\s# exit (\d+)$`)
	wantHTTP = regexp.MustCompile(`\s# HTTP [45]\d\d$`)
	fileName = regexp.MustCompile(`\bfile=([\w.-]+)$`)
)

const curlFailed = 22 // what curl exits with on an error of HTTP, if told to

func readGuide(text string) guide {
	g := guide{shown: map[int]string{}, files: map[string]string{}}
	var script strings.Builder
	inside, run, file, begun := false, false, "", ""
	for i, line := range strings.Split(text, "\n") {
		number := i + 1
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
			run, file = inside && line == "```console run", ""
			if m := fileName.FindStringSubmatch(line); inside && m != nil {
				file = m[1]
			}
		case file != "":
			g.files[file] += line + "\n"
		case !run:
		case begun != "" || strings.HasPrefix(line, "$ "):
			if begun == "" {
				line = strings.TrimPrefix(line, "$ ")
			}
			if begun += line; strings.HasSuffix(line, `\`) {
				begun += "\n"
				continue
			}
			want := 0
			if m := wantExit.FindStringSubmatch(begun); m != nil {
				want = atoi(m[1])
			} else if wantHTTP.MatchString(begun) {
				want = curlFailed
			}
			fmt.Fprintf(&script, "%s\nstatus=$?\n[ $status -eq %d ] || { echo \"line %d: exit code $status, want %d\"; exit 99; }\n", begun, want, number, want)
			g.commands++
			begun = ""
		default:
			g.shown[number] = line
		}
	}
	g.script = script.String()
	return g
}

func atoi(digits string) (n int) {
	for _, d := range digits {
		n = 10*n + int(d-'0')
	}
	return n
}

func (g *guide) run(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range g.files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	curl := t.TempDir()
	if err := os.WriteFile(filepath.Join(curl, ".curlrc"), []byte("fail-with-body\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, "dev", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "data"))
	source, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	// A second server, which a guide starts itself, gets a port that is free here; what a guide leaves running ends with it.
	script := strings.NewReplacer("http://127.0.0.1:7070", s.url, "127.0.0.1:7071", freeAddress(t)).Replace(g.script)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "trap 'kill $(jobs -p) 2>/dev/null' EXIT\n"+script)
	cmd.Dir = dir
	cmd.Env = append(environment(), "TASKHOST_SERVER="+s.url, "CURL_HOME="+curl, "GOPROXY=off", "SRC="+source,
		"PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	printed, missing := regular(string(out)), 0
	for number, line := range g.shown {
		for part := range strings.SplitSeq(line, "…") {
			if !strings.Contains(printed, regular(part)) {
				missing++
				t.Errorf("line %d was not printed: %s", number, part)
			}
		}
	}
	if missing > 0 {
		t.Logf("printed was\n%s", out)
	}
}

// freeAddress is a loopback address nobody listens on at the moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

var irregular = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\b(job|op|req)_[0-9a-z]{16,}`), "${1}_I"},
	{regexp.MustCompile(`\b[0-9a-f]{12,}\b`), "H"},
	{regexp.MustCompile(`\d+(\.\d+)?`), "N"},
	{regexp.MustCompile(`\bN (ms|s|min|h|d)\b`), "N T"},
	{regexp.MustCompile(`\bw-[0-9a-fN]+`), "w-W"},
	{regexp.MustCompile(`\s+`), " "},
}

// regular is a text without what differs from run to run.
func regular(text string) string {
	for _, r := range irregular {
		text = r.re.ReplaceAllString(text, r.to)
	}
	return strings.TrimSpace(text)
}
