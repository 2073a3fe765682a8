package config

import (
	"errors"
	"strings"
	"testing"
)

// fakeCron stands in for the host's parser: a spec is wrong when it says so.
func fakeCron(spec, tz string) (string, error) {
	if spec == "bad" {
		return "cron", errors.New("cannot be read")
	}
	if tz == "Mars" {
		return "tz", errors.New("is not known")
	}
	return "", nil
}

func TestSchedulesAreCheckedWithTheirLines(t *testing.T) {
	t.Parallel()
	file := write(t, "c.yaml", `schedules:
  - {name: a, cron: bad, type: x}
  - name: b
    cron: "0 3 * * *"
    tz: Mars
    type: x
  - {name: a, tenant: default, cron: "@daily", type: x}
  - {name: a, tenant: other, cron: "@daily", type: x}
  - {name: c/d, cron: 5, type: x, catch_up: some, payload: {a: 1, a: 2}, unique: {until: started}, headers: {}}
  - {cron: "@daily", payload: .inf}
`)
	wantProblems(t, problems(t, Source{File: file, Cron: fakeCron}),
		`c.yaml:9: schedules[4].name: the name "c/d" has a character that is not allowed`,
		`c.yaml:9: schedules[4].cron: must be text (in quotes if it looks like something else); got 5`,
		`c.yaml:9: schedules[4].catch_up: must be one of none, one, all; got the string "some"`,
		`c.yaml:9: schedules[4].payload: has the key "a" twice`,
		`c.yaml:9: schedules[4].unique.key: must be given`,
		`c.yaml:9: schedules[4].headers: not in this version`,
		`c.yaml:10: schedules[5].payload: +Inf is no JSON number`,
		`c.yaml:10: schedules[5].name: must be given`,
		`c.yaml:10: schedules[5].type: must be given`,
		`c.yaml:2: schedules[0].cron: cannot be read`,
		`c.yaml:5: schedules[1].tz: is not known`,
		`c.yaml:7: schedules[2].name: "a" is the name of another schedule, at c.yaml:2`,
	)
}

func TestPayloadsOfSchedules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]JSON{
		"text": `"text"`, `"<&>"`: `"<&>"`, "1": "1", "1.5": "1.5", "true": "true", "null": "null", "[1, [2]]": "[1,[2]]", "{z: 1, a: {}}": `{"z":1,"a":{}}`,
		"18446744073709551615": "18446744073709551615",
	} {
		file := write(t, "c.yaml", "schedules: [{name: a, cron: '@daily', type: x, payload: "+text+"}]")
		c := mustLoad(t, Source{File: file}).Config
		if got := c.Schedules[0].Payload; got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
		shown := write(t, "shown.yaml", marshal(t, c.Show()))
		if got := mustLoad(t, Source{File: shown}).Config.Schedules[0].Payload; got != want {
			t.Errorf("%s is shown as %s", want, got)
		}
	}
	file := write(t, "c.yaml", "schedules: [{name: a, cron: '@daily', type: x, payload: "+strings.Repeat("x", payloadMax)+"}]")
	wantProblems(t, problems(t, Source{File: file}), "must be at most 65536 bytes as JSON, got 65538")
}

func TestNoSchedulesAndAnEmptyListDiffer(t *testing.T) {
	t.Parallel()
	if c := mustLoad(t, Source{}).Config; c.Schedules != nil {
		t.Error("no key is not nil")
	}
	if c := mustLoad(t, Source{File: write(t, "c.yaml", "schedules: []")}).Config; c.Schedules == nil {
		t.Error("an empty list is nil")
	}
}
