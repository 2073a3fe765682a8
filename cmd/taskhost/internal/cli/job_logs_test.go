package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An empty log is explained on stderr, so that nobody takes "not kept" for "wrote nothing".
func TestJobLogsSaysWhyThereIsNone(t *testing.T) {
	t.Parallel()
	const line = `{"seq":1,"run":1,"attempt":1,"at":"2026-11-30T03:00:00Z","level":"info","message":"hello"}`
	for _, c := range []struct {
		name, lines, state string
		follow             bool
		out, errs          string
	}{
		{"none kept", "", "succeeded", false, "", "no log of job_1, which is succeeded, was kept: "},
		{"none yet", "", "running", false, "", "job_1 is running and has logged nothing yet"},
		{"kept", line, "dead", false, "hello", ""},
		{"followed, none kept", "", "succeeded", true, "", "retention.logs"},
		{"followed", line, "succeeded", true, "hello", "job_1 is succeeded\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/v1/jobs/job_1":
					_, _ = w.Write([]byte(`{"id":"job_1","state":"` + c.state + `"}`))
				case r.URL.Query().Get("follow") == "true":
					_, _ = w.Write([]byte("\n" + c.lines + "\n" + `{"end":true,"state":"` + c.state + `"}` + "\n")) // an empty line keeps alive
				case c.lines == "" || r.URL.Query().Get("after") != "0":
					_, _ = w.Write([]byte(`{"lines":[],"truncated":false,"next_after":1}`))
				default:
					_, _ = w.Write([]byte(`{"lines":[` + c.lines + `],"truncated":false,"next_after":1}`))
				}
			}))
			t.Cleanup(s.Close)
			args := []string{"job", "logs", "job_1", "--server", s.URL}
			if c.follow {
				args = append(args, "--follow")
			}
			out, errs, code := run(t, "", args...)
			if code != ExitOK || (out == "") != (c.out == "") || !strings.Contains(out, c.out) || (errs == "") != (c.errs == "") || !strings.Contains(errs, c.errs) {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
			}
		})
	}
}
