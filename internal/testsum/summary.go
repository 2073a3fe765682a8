package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// event is one line of go test -json; see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// summary collects the events of several runs of go test. Tests, subtests and examples are counted each.
type summary struct {
	w       io.Writer
	verbose bool
	output  map[string][]string // of a running test or package, by package and test

	packages, passed, failed, skipped, empty int
	failedNames, skippedNames                []string
	unbuilt                                  []string
}

func newSummary(w io.Writer, verbose bool) *summary {
	return &summary{w: w, verbose: verbose, output: map[string][]string{}}
}

func (s *summary) failures() int { return len(s.failedNames) + len(s.unbuilt) }

// broken notes a run of go test that failed without saying so in an event.
func (s *summary) broken(dir string, err error) {
	fmt.Fprintf(s.w, "FAIL %s: %v\n", dir, err)
	s.unbuilt = append(s.unbuilt, dir)
}

// read reads events until the end of r.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				s.add(e)
			} else {
				fmt.Fprintf(s.w, "%s", line) // not an event: go test says something of its own
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
	}
}

func (s *summary) add(e event) {
	switch e.Action {
	case "output":
		if s.verbose {
			fmt.Fprint(s.w, e.Output)
			return
		}
		s.output[e.key()] = append(s.output[e.key()], e.Output)
	case "build-output":
		fmt.Fprint(s.w, e.Output)
	case "build-fail":
		s.unbuilt = append(s.unbuilt, e.ImportPath)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(e)
		}
		delete(s.output, e.key())
	}
}

func (e event) key() string { return e.Package + "\x00" + e.Test }

func (s *summary) endTest(e event) {
	name := e.Package + "." + e.Test
	switch e.Action {
	case "pass":
		s.passed++
	case "skip":
		s.skipped++
		s.skippedNames = append(s.skippedNames, name+s.reason(e))
	case "fail":
		s.failed++
		s.failedNames = append(s.failedNames, name)
		s.flush(e)
	}
}

// reason returns why a test was skipped: the line that is not the runner's.
func (s *summary) reason(e event) string {
	for _, line := range s.output[e.key()] {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "===") && !strings.HasPrefix(text, "---") {
			return ": " + text
		}
	}
	return ""
}

func (s *summary) endPackage(e event) {
	switch e.Action {
	case "skip":
		s.empty++
		return
	case "fail":
		before := e.Package + "."
		blamed := false
		for _, name := range s.failedNames {
			blamed = blamed || strings.HasPrefix(name, before)
		}
		if !blamed { // a panic, a timeout, a leak found by TestMain, a build failure
			s.failedNames = append(s.failedNames, e.Package)
			s.flushAll(e.Package)
		}
	}
	s.packages++
	verdict := "ok  "
	if e.Action == "fail" {
		verdict = "FAIL"
	}
	fmt.Fprintf(s.w, "%s %-70s %6.1f s\n", verdict, e.Package, e.Elapsed)
}

// flushAll prints what is left of a package: the output of tests that were running when it died, then its own.
func (s *summary) flushAll(pkg string) {
	for key := range s.output {
		if p, test, _ := strings.Cut(key, "\x00"); p == pkg && test != "" {
			s.flush(event{Package: p, Test: test})
			s.failedNames = append(s.failedNames, p+"."+test+" (had not ended)")
		}
	}
	s.flush(event{Package: pkg})
}

func (s *summary) flush(e event) {
	for _, line := range s.output[e.key()] {
		fmt.Fprint(s.w, line)
	}
	delete(s.output, e.key())
}

// finish prints the totals and reports whether all is well.
func (s *summary) finish(took time.Duration) bool {
	fmt.Fprintln(s.w)
	list := func(title string, names []string) {
		if len(names) > 0 {
			fmt.Fprintf(s.w, "%s:\n  %s\n", title, strings.Join(names, "\n  "))
		}
	}
	list("skipped", s.skippedNames)
	list("failed", s.failedNames)
	list("did not build or run", s.unbuilt)
	ok := s.failures() == 0 && s.passed > 0
	verdict := "PASS"
	if !ok {
		verdict = "FAIL"
	}
	if s.passed+s.failed == 0 {
		fmt.Fprintln(s.w, "no test ran")
	}
	fmt.Fprintf(s.w, "%s: %d packages, %d tests passed, %d failed, %d skipped, in %s\n",
		verdict, s.packages, s.passed, s.failed, s.skipped, took.Round(time.Second))
	return ok
}
