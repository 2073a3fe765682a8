package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func mustLoad(t *testing.T, src Source) *Loaded {
	t.Helper()
	l, err := Load(src)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// problems loads what must fail and returns the problems as text, with the folder of the file cut off.
func problems(t *testing.T, src Source) []string {
	t.Helper()
	_, err := Load(src)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("want a config error, got %v", err)
	}
	var out []string
	for _, p := range e.Problems {
		out = append(out, strings.ReplaceAll(p.String(), filepath.Dir(src.File)+"/", ""))
	}
	return out
}

func wantProblems(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("problem %d:\n got %s\nwant %s", i, got[i], want[i])
		}
	}
}

const fullYAML = `
store: sqlite
data_dir: ./state
listen: 127.0.0.1:0
roles: [api]
worker: {concurrency: 8, queues: [critical, low], lease: 20s, drain: 0s, handler_wait: 1h}
wasm: {runners: 2, slots: auto, isolation: shared, sandbox: "off"}
defaults:
  timeout: 90s
  max_attempts: 3
  backoff: {base: 500ms, max: 10m, jitter: none}
  memory: 64MiB
  payload: 2MiB
  result: 1MB
  fuel: 5000000000
scheduling: {max_consecutive_high: 5, charge_by_time: 250ms}
retention: {succeeded: none, dead: forever, logs: all}
queues:
  critical: {weight: 6, priority: 10}
  low: {weight: 0.5, paused: true, max_running: 4, max_per_key: 2, rate: 5/m}
  a.b: {}
tenants: {acme: {weight: 3, max_running: 7}}
handlers:
  - {type: image.resize, wasm: ./resize.wasm, memory: 32MiB, timeout: 10s, fuel: 77, config: {MODE: fast}}
schedules:
  - {name: nightly, tenant: acme, cron: "0 3 * * *", tz: Europe/Rome, type: report, queue: low, payload: {b: [1, x, null], a: 0.5}, priority: 0, catch_up: one,
     paused: true, timeout: 90s, max_attempts: 2, unique: {key: k, until: started}, labels: {team: a}}
log: {level: warn, format: json}
`

const fullTOML = `
store = "sqlite"
data_dir = "./state"
listen = "127.0.0.1:0"
roles = ["api"]
scheduling.max_consecutive_high = 5
scheduling.charge_by_time = "250ms"
[worker]
concurrency = 8
queues = ["critical", "low"]
lease = "20s"
drain = "0s"
handler_wait = "1h"
[wasm]
runners = 2
slots = "auto"
isolation = "shared"
sandbox = "off"
[defaults]
timeout = "90s"
max_attempts = 3
backoff = {base = "500ms", max = "10m", jitter = "none"}
memory = "64MiB"
payload = "2MiB"
result = "1MB"
fuel = 5_000_000_000
[retention]
succeeded = "none"
dead = "forever"
logs = "all"
[queues]
critical = {weight = 6, priority = 10}
low = {weight = 0.5, paused = true, max_running = 4, max_per_key = 2, rate = "5/m"}
"a.b" = {}
[tenants.acme]
weight = 3
max_running = 7
[[handlers]]
type = "image.resize"
wasm = "./resize.wasm"
memory = "32MiB"
timeout = "10s"
fuel = 77
[handlers.config]
MODE = "fast"
[[schedules]]
name = "nightly"
tenant = "acme"
cron = "0 3 * * *"
tz = "Europe/Rome"
type = "report"
queue = "low"
payload = {b = [1, "x"], a = 0.5}
priority = 0
catch_up = "one"
paused = true
timeout = "90s"
max_attempts = 2
unique = {key = "k", until = "started"}
labels = {team = "a"}
[log]
level = "warn"
format = "json"
`

const fullJSON = `{
"store": "sqlite", "data_dir": "./state", "listen": "127.0.0.1:0", "roles": ["api"],
"worker": {"concurrency": 8, "queues": ["critical", "low"], "lease": "20s", "drain": "0s", "handler_wait": "1h"},
"wasm": {"runners": 2, "slots": "auto", "isolation": "shared", "sandbox": "off"},
"defaults": {"timeout": "90s", "max_attempts": 3, "backoff": {"base": "500ms", "max": "10m", "jitter": "none"},
  "memory": "64MiB", "payload": "2MiB", "result": "1MB", "fuel": 5000000000},
"scheduling": {"max_consecutive_high": 5, "charge_by_time": "250ms"},
"retention": {"succeeded": "none", "dead": "forever", "logs": "all"},
"queues": {"critical": {"weight": 6, "priority": 10}, "low": {"weight": 0.5, "paused": true, "max_running": 4, "max_per_key": 2, "rate": "5/m"}, "a.b": {}},
"tenants": {"acme": {"weight": 3, "max_running": 7}},
"handlers": [{"type": "image.resize", "wasm": "./resize.wasm", "memory": "32MiB", "timeout": "10s", "fuel": 77, "config": {"MODE": "fast"}}],
"schedules": [{"name": "nightly", "tenant": "acme", "cron": "0 3 * * *", "tz": "Europe/Rome", "type": "report", "queue": "low",
  "payload": {"b": [1, "x", null], "a": 0.5}, "priority": 0, "catch_up": "one", "paused": true, "timeout": "90s", "max_attempts": 2,
  "unique": {"key": "k", "until": "started"}, "labels": {"team": "a"}}],
"log": {"level": "warn", "format": "json"}
}`

const tomlPayload JSON = `{"a":0.5,"b":[1,"x"]}`

func TestEveryKeyInEveryFormat(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"c.yaml": fullYAML, "c.yml": fullYAML, "c.toml": fullTOML, "c.json": fullJSON} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := write(t, name, text)
			payload := JSON(`{"b":[1,"x",null],"a":0.5}`)
			if name == "c.toml" { // which has no null and no order
				payload = tomlPayload
			}
			want := Config{
				Store: "sqlite", DataDir: filepath.Join(filepath.Dir(file), "state"), Listen: "127.0.0.1:0", Roles: []string{"api"},
				Worker: Worker{Concurrency: 8, Queues: []string{"critical", "low"}, Lease: 20 * time.Second, HandlerWait: time.Hour},
				Wasm:   Wasm{Runners: 2, Isolation: "shared", Sandbox: "off"},
				Defaults: Defaults{
					Timeout: 90 * time.Second, MaxAttempts: 3,
					Backoff: Backoff{500 * time.Millisecond, 10 * time.Minute, "none"}, Memory: 64 * MiB, Payload: 2 * MiB, Result: 1e6, Fuel: 5e9,
				},
				Scheduling: Scheduling{5, 250 * time.Millisecond},
				Retention:  Retention{0, RetentionForever, 0, 0, "all"},
				Queues: map[string]Queue{
					"critical": {Weight: new(6.0), Priority: new(10)}, "a.b": {},
					"low": {Weight: new(0.5), Paused: new(true), MaxRunning: new(4), MaxPerKey: new(2), Rate: &Rate{5, time.Minute}},
				},
				Tenants: map[string]Tenant{"acme": {new(3.0), new(7)}},
				Handlers: []Handler{{"image.resize", filepath.Join(filepath.Dir(file), "resize.wasm"), 32 * MiB, 10 * time.Second, 77,
					map[string]string{"MODE": "fast"}}},
				Schedules: []Schedule{{Name: "nightly", Tenant: "acme", Cron: "0 3 * * *", TZ: "Europe/Rome", Type: "report", Queue: "low",
					Payload: payload, Priority: new(0), CatchUp: "one", Paused: true, Timeout: 90 * time.Second, MaxAttempts: 2,
					Unique: Unique{Key: "k", Until: "started"}, Labels: map[string]string{"team": "a"}}},
				Log: Log{"warn", "json"},
			}
			got := mustLoad(t, Source{File: file}).Config
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestNothingSetGivesTheDefaults(t *testing.T) {
	t.Parallel()
	if got := mustLoad(t, Source{}).Config; !reflect.DeepEqual(got, Default()) {
		t.Errorf("got %+v", got)
	}
}

func TestLoadLeavesItsBaseAlone(t *testing.T) {
	t.Parallel()
	base := Default()
	base.Queues = map[string]Queue{"low": {Weight: new(2.0)}}
	file := write(t, "c.yaml", "roles: [worker]\nworker: {queues: [a]}\nqueues: {low: {weight: 3}, high: {}}")
	c := mustLoad(t, Source{File: file, Base: &base}).Config
	if *base.Queues["low"].Weight != 2 || len(base.Queues) != 1 || base.Roles[0] != RoleAPI || base.Worker.Queues[0] != "*" {
		t.Errorf("the base was changed: %+v", base)
	}
	if *c.Queues["low"].Weight != 3 || len(c.Queues) != 2 || !slices.Equal(c.Roles, []string{RoleWorker}) {
		t.Errorf("got %+v", c)
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	file := write(t, "c.yaml", "listen: 127.0.0.1:1\ndata_dir: file\nworker: {lease: 20s, drain: 10s}\nroles: [worker]\nqueues: {low: {weight: 2, priority: 7}}")
	l := mustLoad(t, Source{
		File:    file,
		Environ: []string{"TASKHOST_LISTEN=127.0.0.1:2", "TASKHOST_DATA_DIR=env", "TASKHOST_WORKER__LEASE=30s", "TASKHOST_QUEUES__LOW__WEIGHT=3", "TASKHOST_ROLES=api,worker", "OTHER=1"},
		Flags:   map[string]string{"listen": "127.0.0.1:3"},
	})
	c := l.Config
	if c.Listen != "127.0.0.1:3" || c.DataDir != "env" || c.Worker.Lease != 30*time.Second || c.Worker.Drain != 10*time.Second || len(c.Roles) != 2 {
		t.Errorf("got %+v", c)
	}
	if q := c.Queues["low"]; *q.Weight != 3 || *q.Priority != 7 {
		t.Errorf("queues are not merged key by key: weight %v, priority %v", *q.Weight, *q.Priority)
	}
}

func TestProblemsHaveLinePathAndRange(t *testing.T) {
	t.Parallel()
	wantProblems(t, problems(t, Source{File: write(t, "c.yaml", `queues:
  low: {weight: -3}
  high: {priority: 5000, paused: "yes"}
listen: nowhere
roles: [api, cook, scheduler]
worker:
  lease: 15
  drain: 2h
  queues: ["*", low]
defaults: {memory: 64, timeout: 0s, max_attempts: 2.5}
store: postgres://user:hunter2@h:5432/0
wasm: {sandbox: high, slots: 0}
plans: {small: {}}
handlers: [{type: "a b"}]
`)}),
		"c.yaml:2: queues.low.weight: must be > 0, got -3",
		`c.yaml:3: queues.high.priority: must be a whole number between -4095 and 4095, got 5000`,
		`c.yaml:3: queues.high.paused: must be true or false; got the string "yes"`,
		`c.yaml:4: listen: must be host:port such as "127.0.0.1:7070"`,
		`c.yaml:5: roles[1]: must be one of api, worker; got the string "cook"`,
		`c.yaml:5: roles[2]: "scheduler" is not in this version`,
		`c.yaml:7: worker.lease: must be a duration with a unit such as "90s", got 15`,
		`c.yaml:8: worker.drain: must be between 0s and 1h, got 2h`,
		`c.yaml:10: defaults.memory: must be a size with a unit such as "64MiB", got 64`,
		`c.yaml:10: defaults.timeout: must be between 10ms and 7d, got 0s`,
		`c.yaml:10: defaults.max_attempts: must be a whole number between 1 and 1000, got 2.5`,
		`c.yaml:11: store: must be sqlite (a file in data_dir) or redis://[user:password@]host:port/db[?prefix=…] (rediss:// for TLS, redis+sentinel://host:port,host:port/master/db for Sentinels); got "postgres://user:***@h:5432/0"`,
		`c.yaml:12: wasm.sandbox: must be one of off, best, basic, standard, strict; got the string "high"`,
		`c.yaml:12: wasm.slots: must be a whole number between 1 and 1024, got 0 (or auto)`,
		`c.yaml:13: plans: not in this version`,
		`c.yaml:14: handlers[0].type: the name "a b" has a character that is not allowed`,
		`c.yaml:14: handlers[0].wasm: must be given`,
	)
	wantProblems(t, problems(t, Source{File: write(t, "c.toml", "listen = 'x:1'\n\n[queues.low]\nweight = -3\n[[handlers]]\ntype='a'\nwasm='b'\n[[handlers]]\ntype='c'\nwasm='d'\ntimout = '1s'\n")}),
		"c.toml:4: queues.low.weight: must be > 0, got -3", "c.toml:11: handlers[1].timout: unknown key; did you mean timeout?")
	wantProblems(t, problems(t, Source{File: write(t, "c.json", "{\n \"queues\": {\n  \"low\": {\"weight\": -3}\n }\n}")}),
		"c.json:3: queues.low.weight: must be > 0, got -3")
}

func TestSyntaxErrorsHaveALine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"c.yaml", "queues: [", "c.yaml:1: not YAML"},
		{"c.yaml", "a: 1\n---\nb: 2\n", "c.yaml:2: the file must hold one document"},
		{"c.yaml", "- 1\n", "c.yaml:1: must be a map of settings, got a list"},
		{"c.yaml", "# nothing\n", "the file sets nothing"},
		{"c.yaml", "", "the file sets nothing"},
		{"c.yaml", "queues: {<<: {a: {}}}", "c.yaml:1: merge keys"},
		{"c.json", "{\n\"listen\": \"a:1\",\n}", "c.json:3: not JSON"},
		{"c.json", "{\"listen\":", "c.json:1: not JSON: the document ends too early"},
		{"c.json", "{} {}", "c.json:1: not JSON"},
		{"c.toml", "listen = 1\nlisten = 2\n", "c.toml:2: not TOML"},
		{"c.toml", "a = [", "not TOML"},
		{"c.ini", "a=1", "the extension must be .yaml, .yml, .toml or .json"},
	} {
		got := problems(t, Source{File: write(t, c.name, c.text)})
		if len(got) == 0 || !strings.Contains(got[0], c.want) {
			t.Errorf("%q: got %v, want %s", c.text, got, c.want)
		}
	}
	wantProblems(t, problems(t, Source{File: "/dev/zero"}), "zero: not a regular file")
	wantProblems(t, problems(t, Source{File: filepath.Join(t.TempDir(), "none.yaml")}), "no such file")
}

func TestAliasesCannotExplode(t *testing.T) {
	t.Parallel()
	text := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'j'; c++ {
		ref := "*" + string(c-1)
		text += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat(ref+",", 10), ",") + "]\n"
	}
	got := problems(t, Source{File: write(t, "c.yaml", text)})
	if !strings.Contains(got[0], "its aliases expand to too much") {
		t.Errorf("got %v", got)
	}
	l := mustLoad(t, Source{File: write(t, "c.yaml", "queues: {a: &q {weight: 2}, b: *q}")})
	if *l.Config.Queues["b"].Weight != 2 {
		t.Error("a plain alias must work")
	}
}

func TestCase007UnmatchedVariablesAreErrors(t *testing.T) {
	t.Parallel()
	wantProblems(t, problems(t, Source{Environ: []string{
		"TASKHOST_QUEUES_HIGH_PRIO_WEIGHT=5", "TASKHOST_REDIS_MAX_RETRIES=7", "TASKHOST_WORKER__LEASES=3s", "TASKHOST_HANDLERS__0__TYPE=a",
		"TASKHOST_listen=1", "TASKHOST_PLANS__SMALL=1", "TASKHOST_WORKER=1",
	}}),
		"TASKHOST_HANDLERS__0__TYPE: handlers can be set in the file only",
		"TASKHOST_PLANS__SMALL: plans: not in this version",
		"TASKHOST_QUEUES_HIGH_PRIO_WEIGHT: matches no setting; the nearest is TASKHOST_QUEUES__HIGH_PRIO__WEIGHT",
		"TASKHOST_REDIS_MAX_RETRIES: matches no setting; the nearest is TASKHOST_",
		"TASKHOST_WORKER: matches no setting",
		"TASKHOST_WORKER__LEASES: matches no setting; the nearest is TASKHOST_WORKER__LEASE ",
		"TASKHOST_listen: matches no setting; the nearest is TASKHOST_",
	)
	file := write(t, "c.yaml", "queues: {High-Prio: {weight: 1}}")
	l := mustLoad(t, Source{File: file, Environ: []string{"TASKHOST_QUEUES__HIGH_PRIO__WEIGHT=5", "TASKHOST_QUEUES__NEW_ONE__PAUSED=true"}})
	if w := l.Config.Queues["High-Prio"].Weight; w == nil || *w != 5 || len(l.Config.Queues) != 2 || !*l.Config.Queues["new_one"].Paused {
		t.Errorf("got %+v", l.Config.Queues)
	}
	wantProblems(t, problems(t, Source{File: write(t, "c.yaml", "queues: {a-b: {}, a.b: {}}"), Environ: []string{"TASKHOST_QUEUES__A_B__WEIGHT=5"}}),
		"TASKHOST_QUEUES__A_B__WEIGHT: could mean a-b or a.b")
	wantProblems(t, problems(t, Source{Environ: []string{"TASKHOST_QUEUES__LOW__WEIGHT=-3"}, Flags: map[string]string{"data_dir": ""}}),
		"TASKHOST_QUEUES__LOW__WEIGHT: queues.low.weight: must be > 0, got -3", "--data-dir: data_dir: must not be empty")
}

func TestServiceLinksAreSkipped(t *testing.T) {
	t.Parallel()
	links := []string{
		"TASKHOST_PORT=tcp://10.0.0.1:7070", "TASKHOST_PORT_7070_TCP=tcp://10.0.0.1:7070", "TASKHOST_PORT_7070_TCP_ADDR=10.0.0.1",
		"TASKHOST_API_SERVICE_HOST=10.0.0.1", "TASKHOST_SERVICE_PORT=7070", "TASKHOST_SERVICE_PORT_HTTP=7070",
	}
	l := mustLoad(t, Source{Environ: append(slices.Clone(links), "TASKHOST_SERVER=http://x", "TASKHOST_API_KEY=k", "TASKHOST_CONFIG=f")})
	if len(l.Skipped) != len(links) {
		t.Errorf("skipped %v", l.Skipped)
	}
	wantProblems(t, problems(t, Source{Environ: []string{"TASKHOST_PORT=7070"}}), "TASKHOST_PORT: matches no setting")
}

func TestCase009Weights(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1000000000":           "must be between 0.001 and 10000, got 1e+09",
		"1e9":                  "must be between 0.001 and 10000, got 1e+09",
		`"3"`:                  `must be a number, written without quotes; got the string "3"`,
		"0":                    "must be > 0, got 0",
		"-1":                   "must be > 0, got -1",
		".inf":                 "must be between 0.001 and 10000, got +Inf",
		"-.inf":                "must be > 0, got -Inf",
		".nan":                 "must be between 0.001 and 10000, got NaN",
		"null":                 "must be a number; got null",
		"[1]":                  "must be a number; got a list",
		"99999999999999999999": "must be between 0.001 and 10000",
	} {
		got := problems(t, Source{File: write(t, "c.yaml", "queues:\n  low:\n    weight: "+text)})
		wantProblems(t, got, "c.yaml:3: queues.low.weight: "+want)
	}
	if l := mustLoad(t, Source{File: write(t, "c.yaml", "queues: {low: {weight: 1.5}}")}); *l.Config.Queues["low"].Weight != 1.5 {
		t.Error("1.5 is a weight")
	}
}

func TestCase010TyposAndDuplicates(t *testing.T) {
	t.Parallel()
	wantProblems(t, problems(t, Source{File: write(t, "c.yaml", "qeues: {}\nqueues: {a: {}}\nqueues: {b: {}}\ndefaults: {max_atempts: 3}\nretry: {max_atempts: 3}\n")}),
		"c.yaml:1: qeues: unknown key; did you mean queues?",
		"c.yaml:3: queues: duplicate key, first at c.yaml:2",
		"c.yaml:4: defaults.max_atempts: unknown key; did you mean max_attempts?",
		"c.yaml:5: retry: unknown key; known here: data_dir, defaults",
	)
	wantProblems(t, problems(t, Source{File: write(t, "c.json", "{\"queues\": {},\n\"queues\": {}}")}), "c.json:2: queues: duplicate key, first at c.json:1")
}

func TestCase013EmptyQueueName(t *testing.T) {
	t.Parallel()
	wantProblems(t, problems(t, Source{File: write(t, "c.yaml", "queues: {\"\": {weight: 1}}\nworker: {queues: [\"\"]}\n")}),
		`c.yaml:1: queues."": the name must not be empty`, `c.yaml:2: worker.queues[0]: the name must not be empty`)
}

// The schema and the structs must not drift apart: every field has a key that acts, and the other way round.
func TestSchemaMatchesConfig(t *testing.T) {
	t.Parallel()
	var compare func(s *shape, typ reflect.Type, path string)
	compare = func(s *shape, typ reflect.Type, path string) {
		switch {
		case s.fields != nil:
			var fields []string
			for i := range typ.NumField() {
				name := typ.Field(i).Tag.Get("koanf")
				fields = append(fields, name)
				if s.fields[name] == nil || s.fields[name].later {
					t.Errorf("%s.%s is a field without a key", path, name)
					continue
				}
				compare(s.fields[name], typ.Field(i).Type, path+"."+name)
			}
			slices.Sort(fields)
			if !slices.Equal(fields, s.keys()) {
				t.Errorf("%s: fields %v, keys %v", path, fields, s.keys())
			}
		case s.elem != nil:
			compare(s.elem, typ.Elem(), path+"[]")
		}
	}
	compare(schema(), reflect.TypeFor[Config](), "config")
}

func TestShowReadsBack(t *testing.T) {
	t.Parallel()
	file := write(t, "c.yaml", fullYAML)
	want := mustLoad(t, Source{File: file}).Config
	for _, c := range []Config{want, Default()} {
		text := marshal(t, c.Show())
		got := mustLoad(t, Source{File: write(t, "shown.yaml", text), Base: &Config{}})
		c.DataDir, got.Config.DataDir = "", ""
		if !reflect.DeepEqual(got.Config, c) {
			t.Errorf("shown:\n%s\ngot  %+v\nwant %+v", text, got.Config, c)
		}
	}
}

func TestChargeByTime(t *testing.T) {
	t.Parallel()
	load := func(value string) Source {
		return Source{File: write(t, "c.yaml", "scheduling: {charge_by_time: "+value+"}\n")}
	}
	for value, want := range map[string]time.Duration{"off": 0, "1ms": time.Millisecond, "100ms": 100 * time.Millisecond, "1h": time.Hour} {
		if got := mustLoad(t, load(value)).Config.Scheduling.ChargeByTime; got != want {
			t.Errorf("%s is %s", value, got)
		}
	}
	wantProblems(t, problems(t, load("0s")), "c.yaml:1: scheduling.charge_by_time: must be between 1ms and 1h, got 0s (or off)")
	wantProblems(t, problems(t, load("61m")), "c.yaml:1: scheduling.charge_by_time: must be between 1ms and 1h, got 61m (or off)")
	wantProblems(t, problems(t, load("1.5ms")), "c.yaml:1: scheduling.charge_by_time: must be whole milliseconds, got 1.5ms")
}

func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Store = "redis://u:hunter2@h/0?prefix=th:&password=hunter2"
	c.Handlers = []Handler{{Type: "a", Wasm: "a.wasm", Config: map[string]string{"API_TOKEN": "hunter2", "URL": "https://u:hunter2@x/", "MODE": "fast"}}}
	text := marshal(t, c.Show())
	if strings.Contains(text, "hunter2") || !strings.Contains(text, "fast") {
		t.Error(text)
	}
	for url, want := range map[string]string{
		"redis+sentinel://u:hunter2@h:1,i:2/m/0?prefix=x&sentinel_password=hunter2": "redis+sentinel://u:***@h:1,i:2/m/0?prefix=x&sentinel_password=***",
		"rediss+sentinel://h:1/m?sentinel_password=hunter2":                         "rediss+sentinel://h:1/m?sentinel_password=***",
		"redis://:hunter2@h:x?password=hunter2":                                     "***@h:x",
	} {
		if got := RedactURL(url); got != want {
			t.Errorf("%s is shown as %s, want %s", url, got, want)
		}
		if !IsRedis(url) {
			t.Errorf("%s is no Redis", url)
		}
	}
	if c.Handlers[0].Config["API_TOKEN"] != "hunter2" {
		t.Error("hiding must not change the configuration")
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Wasm.Runners, c.Wasm.Slots, c.Wasm.MemoryBudget = 4, 8, 8*GiB
	got := strings.Join(c.Warnings(Machine{Cores: 2, MemoryBytes: 1 << 30, MemoryFrom: "the cgroup"}), "\n")
	for _, want := range []string{"32 jobs at once × 128MiB each are up to 4096 MiB, more than the 1024 MiB of the cgroup", "defaults.timeout (1m) is longer than worker.drain (30s)"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	c.Defaults.Timeout = 10 * time.Second
	c.Wasm.MemoryBudget = 0
	if got := c.Warnings(Machine{Cores: 2, MemoryBytes: 1 << 30, MemoryFrom: "RAM"}); len(got) != 0 {
		t.Errorf("with a budget of half the machine: %v", got)
	}
	c.Worker.Concurrency = 1
	if got := c.Warnings(Machine{Cores: 2, MemoryBytes: 1 << 30, MemoryFrom: "RAM"}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	c.Wasm.Sandbox = "off"
	if got := c.Warnings(Machine{Cores: 2, MemoryBytes: 1 << 30, MemoryFrom: "RAM"}); len(got) != 1 || !strings.Contains(got[0], "sandbox") {
		t.Errorf("got %v", got)
	}
	if m := ThisMachine(); m.Cores < 1 || m.MemoryBytes < 1<<20 {
		t.Errorf("got %+v", m)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	wantProblems(t, problems(t, Source{File: write(t, "c.yaml", "defaults: {backoff: {base: 1m, max: 1s}}\nworker: {queues: [\"*\", a]}\nhandlers: [{type: a, wasm: b}, {type: a, wasm: c}]")}),
		"c.yaml: defaults.backoff.max: must not be shorter than defaults.backoff.base (1m), got 1s",
		`c.yaml: worker.queues: "*" means all queues and must stand alone`,
		"c.yaml: handlers[1].type: a is served by handlers[0] already")
}

// Limits may be set whatever the store is.
func TestLimitsOnEveryStore(t *testing.T) {
	t.Parallel()
	const limits = "queues: {media: {max_running: 2, rate: 100/m}, b: {weight: 2, max_per_key: 3}}\ntenants: {acme: {max_running: 8}}\n"
	file := write(t, "lim.yaml", limits)
	for _, url := range []string{"sqlite", "redis://127.0.0.1:6379/0", "rediss://127.0.0.1:6379/0"} {
		c := mustLoad(t, Source{File: file, Flags: map[string]string{"store": url}})
		if n := c.Config.Queues["media"].MaxRunning; n == nil || *n != 2 {
			t.Errorf("%s: max_running of media is %v, want 2", url, n)
		}
	}
}

func TestPlugins(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("AB", 32)
	file := write(t, "c.yaml", `plugins:
  - types: ["ml.*", text.upper]
    command: ./bin/ml
    args: [--fast, "3"]
    sha256: `+sum+`
    files: {lib/model.py: `+sum+`}
    env: {API_TOKEN: hush, MODE: quiet}
    instances: 2
    mtls: false
    timeout: 30s
`)
	l := mustLoad(t, Source{File: file})
	p, dir := l.Config.Plugins[0], filepath.Dir(file)
	if p.Command != filepath.Join(dir, "bin/ml") || p.Files[filepath.Join(dir, "lib/model.py")] != strings.ToLower(sum) || len(p.Types) != 2 || len(p.Args) != 2 ||
		p.MTLS == nil || *p.MTLS || p.Timeout != 30*time.Second || p.Instances != 2 || p.Concurrency != 0 {
		t.Errorf("%+v", p)
	}
	if env := l.Config.Redacted().Plugins[0].Env; env["API_TOKEN"] != "***" || env["MODE"] != "quiet" || p.Env["API_TOKEN"] != "hush" {
		t.Errorf("%v", env)
	}
	for text, want := range map[string]string{
		"plugins: [{types: [a]}]":                                                  "plugins[0].command: must be given",
		"plugins: [{command: a, types: []}]":                                       "plugins[0].types: must not be empty",
		"plugins: [{command: a, types: [a], sha256: abc}]":                         "plugins[0].sha256: must be a SHA-256",
		"plugins: [{command: a, types: [a]}, {command: b, types: [b, a]}]":         "plugins[1].types[1]: a is served by plugins[0] already",
		"handlers: [{type: a, wasm: a.wasm}]\nplugins: [{command: b, types: [a]}]": "plugins[0].types[0]: a is served by handlers[0] already",
		"plugins: [{command: a, types: [a], env: {TASKHOST_PLUGIN: x}}]":           "TASKHOST_",
		"plugins: [{command: a, types: [a], silence: 1ms}]":                        "plugins[0].silence: must be between",
	} {
		if _, err := Load(Source{File: write(t, "c.yaml", text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A limit above the whole budget would keep jobs waiting for ever: both sizes are named.
func TestMemoryBudgetHasRoomForEveryJob(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Wasm.MemoryBudget = 100 * MiB
	c.Handlers = []Handler{{Type: "a", Wasm: "a.wasm", Memory: 200 * MiB}}
	err := c.Validate()
	for _, want := range []string{"defaults.memory: 128MiB is more than the whole wasm.memory_budget of 100MiB", "handlers[0].memory: 200MiB is more than the whole wasm.memory_budget of 100MiB"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	auto := Default()
	if got := auto.Capacity(Machine{Cores: 64, MemoryBytes: int64(GiB)}); got.MemoryBudget != int64(512*MiB) || got.Jobs != 4 {
		t.Errorf("on a machine of 1 GiB: %+v, want a budget of 512 MiB for 4 jobs", got)
	}
	if got := auto.Capacity(Machine{Cores: 1, MemoryBytes: int64(128 * MiB)}); got.MemoryBudget != int64(128*MiB) || got.Jobs != 1 {
		t.Errorf("on a machine of 128 MiB: %+v, want room for one job", got)
	}
}
