package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/handlers"
)

// What does not start is told with the first line it printed, the start is tried again, jobs are put off, and other plugins go on.
func TestCase103StartsThatFail(t *testing.T) {
	t.Parallel()
	broken := program(t, "#!/bin/sh\necho this must not run >&2\n")
	for name, c := range map[string]struct {
		change func(*Spec)
		want   []string
	}{
		"prints hello":         {func(s *Spec) { s.Env = map[string]string{"SCRIPTED_PRINT": "hello"} }, []string{`printed "hello" before its handshake`}},
		"prints 1 MB":          {func(s *Spec) { s.Env = map[string]string{"SCRIPTED_PRINT_BYTES": "1000000"} }, []string{`printed "xxx`, "before its handshake"}},
		"prints nothing, ends": {func(s *Spec) { s.Command = program(t, "#!/bin/sh\nexit 0\n") }, []string{"without a handshake (exit status 0)"}},
		"complains and ends":   {func(s *Spec) { s.Command = program(t, "#!/bin/sh\necho no licence >&2\nexit 3\n") }, []string{"exit status 3", "no licence"}},
		"no program":           {func(s *Spec) { s.Command = program(t, "\x7fELF of another machine") }, []string{"exec format error", "no program for"}},
		"no file":              {func(s *Spec) { s.Command += ".missing" }, []string{"no such file"}},
		"no right to run it":   {func(s *Spec) { s.Command = notExecutable(t) }, []string{"no executable file"}},
		"another program":      {func(s *Spec) { s.Command, s.SHA256 = broken, strings.Repeat("0", 64) }, []string{digestOf(t, broken), "the configuration wants 0000"}},
		"another file": {func(s *Spec) {
			s.Files = map[string]string{broken: strings.Repeat("1", 64)}
		}, []string{digestOf(t, broken), "the configuration wants 1111"}},
		"never says a word":  {func(s *Spec) { s.Env, s.StartTimeout = map[string]string{"SCRIPTED_MUTE": "1"}, 300*time.Millisecond }, []string{"no handshake within 300ms"}},
		"another type":       {func(s *Spec) { s.Types = []string{"video.cut"} }, []string{"serves scripted, scripted.*", "video.cut"}},
		"no TLS":             {func(s *Spec) { s.Command = program(t, handshakeOnly) }, []string{"does not do mutual TLS"}},
		"another go-plugin":  {func(s *Spec) { s.Command = program(t, strings.Replace(handshakeOnly, "1|1|", "9|1|", 1)) }, []string{"incompatible core API version"}},
		"another version":    {func(s *Spec) { s.Command = program(t, strings.Replace(handshakeOnly, "1|1|", "1|7|", 1)) }, []string{"incompatible API version"}},
		"old kind of plugin": {func(s *Spec) { s.Command = program(t, strings.Replace(handshakeOnly, "grpc", "netrpc", 1)) }, []string{"unsupported plugin protocol"}},
		"socket elsewhere": {func(s *Spec) {
			s.PlainSocket = true
			s.Command = program(t, strings.Replace(handshakeOnly, "$PLUGIN_UNIX_SOCKET_DIR", "/tmp", 1))
		}, []string{"not in the folder it was given"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := script()
			spec.Instances = 1
			c.change(&spec)
			good := script()
			good.Types, good.Instances = []string{"scripted.good"}, 1
			r := newRuntime(t, spec, good)
			out := run(t, r, "echo\n")
			if out.Kind != handlers.OutcomeUnavailable {
				t.Fatalf("%s %v", out.Kind, out.Error)
			}
			for _, want := range append(c.want, "plugin failed to start") {
				if !strings.Contains(out.Error.Message, want) {
					t.Errorf("%q lacks %q", out.Error.Message, want)
				}
			}
			if len(out.Error.Message) > 1000 {
				t.Errorf("the message has %d bytes", len(out.Error.Message))
			}
			s := r.State()[0]
			if !s.Broken || s.Failures < failuresUntilBreak || s.Error == "" {
				t.Errorf("%+v", s)
			}
			if err := r.Ready(); err == nil || !strings.Contains(err.Error(), "crash loop") {
				t.Errorf("ready: %v", err)
			}
			inv := invocation(r, []byte("echo\nfine"), time.Minute)
			for _, v := range r.Versions() {
				if v.Type == "scripted.good" {
					inv.Type, inv.Version = v.Type, v
				}
			}
			if out := r.Invoke(t.Context(), inv); string(out.Result) != "fine" {
				t.Errorf("the other plugin: %s %v", out.Kind, out.Error)
			}
		})
	}
}

const handshakeOnly = "#!/bin/sh\necho \"1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/s|grpc|\"\nexec sleep 1000\n"

func notExecutable(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// After a start that took too long the next one works: it uses a new client.
func TestCase104AfterASlowStartTheNextOneWorks(t *testing.T) {
	t.Parallel()
	spec := script()
	spec.Instances, spec.StartTimeout = 1, 3*time.Second
	spec.Env = map[string]string{"SCRIPTED_MUTE_ONCE": filepath.Join(t.TempDir(), "was-here")}
	r := newRuntime(t, spec)
	if out := run(t, r, "echo\nat last"); string(out.Result) != "at last" {
		t.Errorf("%s %v", out.Kind, out.Error)
	}
	if s := r.State()[0]; s.Counts.Failed == 0 {
		t.Errorf("%+v", s)
	}
}

// A plugin that dies of every job: its breaker opens, which shows, and closes again with the first job that is fine.
func TestCrashLoopOpensTheBreaker(t *testing.T) {
	t.Parallel()
	spec := script()
	spec.Instances = 1
	r := newRuntime(t, spec)
	for range failuresUntilBreak {
		for {
			out := run(t, r, "exit 1\n")
			if out.Kind == handlers.OutcomeCrashed {
				break
			}
			if out.Kind != handlers.OutcomeUnavailable {
				t.Fatalf("%s %v", out.Kind, out.Error)
			}
		}
	}
	await(t, "the breaker is open", func() bool { return r.State()[0].Broken })
	await(t, "a job is taken", func() bool { return run(t, r, "echo\n").Kind == handlers.OutcomeSucceeded })
	if s := r.State()[0]; s.Broken || r.Ready() != nil {
		t.Errorf("%+v, %v", s, r.Ready())
	}
}

// What was hashed is what runs, although the path leads elsewhere by then: the program is executed through the open file.
func TestTheHashedFileRuns(t *testing.T) {
	t.Parallel()
	path := program(t, "#!/bin/sh\necho first >&2\n")
	b, err := openBinary(path, digestOf(t, path))
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if err := os.Rename(program(t, "#!/bin/sh\necho second >&2\n"), path); err != nil {
		t.Fatal(err)
	}
	out, err := b.command(nil).CombinedOutput()
	if err != nil || string(out) != "first\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// A pinned plugin runs; a replacement takes over while the jobs of the old one finish; one that does not start changes nothing.
func TestHotReplace(t *testing.T) {
	t.Parallel()
	spec := script()
	spec.SHA256 = digestOf(t, scripted)
	kept := script()
	kept.Types = []string{"scripted.kept"}
	r := newRuntime(t, spec, kept)
	await(t, "all processes run", func() bool { s := r.State(); return len(s[0].Processes) == 2 && len(s[1].Processes) == 2 })
	old := started(t, r, "sleep 1500\n")
	before := r.State()
	versions := r.Versions()

	broken := spec
	broken.SHA256 = strings.Repeat("0", 64)
	if err := r.Replace(t.Context(), []Spec{broken, kept}); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("a broken replacement: %v", err)
	}
	if out := run(t, r, "metadata\n"); !strings.HasSuffix(string(out.Result), " north") {
		t.Errorf("%s %v %s", out.Kind, out.Error, out.Result)
	}

	next := spec
	next.Config = map[string]string{"REGION": "south"}
	if err := r.Replace(t.Context(), []Spec{next, kept}); err != nil {
		t.Fatal(err)
	}
	if out := run(t, r, "metadata\n"); !strings.HasSuffix(string(out.Result), " south") {
		t.Errorf("%s %v %s", out.Kind, out.Error, out.Result)
	}
	if out := <-old; out.Kind != handlers.OutcomeSucceeded {
		t.Errorf("the job in the old process: %s %v", out.Kind, out.Error)
	}
	after := r.State()
	if after[1].Counts != before[1].Counts || len(after[1].Processes) != 2 {
		t.Errorf("the plugin that did not change was started again: %+v", after[1])
	}
	if v := r.Versions(); v[0].Number != 2 || v[1] != versions[1] {
		t.Errorf("versions %+v %+v", v[0], v[1])
	}
	for _, p := range before[0].Processes {
		await(t, "the old processes are gone", func() bool { return !alive(p.PID) })
	}
}

// What cannot be is refused with its place.
func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Spec){
		"at least one type":    func(s *Spec) { s.Types = nil },
		"a command":            func(s *Spec) { s.Command = "" },
		"no type":              func(s *Spec) { s.Types = []string{"a*b"} },
		"must be 64 hex":       func(s *Spec) { s.SHA256 = "abc" },
		"must be between 1":    func(s *Spec) { s.Instances = 1000 },
		"concurrency":          func(s *Spec) { s.Concurrency = -1 },
		"must not be negative": func(s *Spec) { s.Grace = -1 },
	} {
		spec := script()
		change(&spec)
		if err := spec.fill(3); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "plugins[3]") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := complete([]Spec{script(), script()}); err == nil || !strings.Contains(err.Error(), "served by plugins[0] already") {
		t.Errorf("%v", err)
	}
}
