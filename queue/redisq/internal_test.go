package redisq

import (
	"bytes"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq/luaexec"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, want string }{
		{"redis://h:1/0", ""},
		{"redis://h:1/3?prefix=th:&dial_timeout=3s", ""},
		{"rediss://user:secret@h:1", ""},
		{"redis://h:1?lua=1", ""},
		{"redis+sentinel://:secret@h:1", "must name the master"},
		{"redis://h:1?lua=0", ""},
		{"redis://:secret@h:1?lua=no", "lua must be"},
		{"http://:secret@h:1", "must begin with redis://"},
		{"redis://:secret@h:1?cluster=1", "Cluster is not supported"},
		{"redis://:secret@h:1?prefix=", "1 to 64 bytes"},
		{"redis://:secret@h:1?prefix=a*", "not allowed"},
		{"redis://:secret@h:1?prefix=a{b}", "not allowed"},
		{"redis://:secret@h:1?nonsense=1", "nonsense"},
		{"redis://:secret@h:1/notanumber", "notanumber"},
		{"redis://:secret@h:port", "cannot be read"},
		{"redis://:sec%ret@h:1", "cannot be read"},
	} {
		o := Options{URL: c.url}
		_, err := o.parse()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.url, err)
		case c.want != "" && (!errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want one with %q", c.url, err, c.want)
		case err != nil && strings.Contains(err.Error(), "sec"):
			t.Errorf("%s: the error shows the password: %v", c.url, err)
		}
	}
	o := Options{URL: "redis://u:p@h:1/2?prefix=x:", Username: "other", Password: "secret"}
	x, err := o.parse()
	if err != nil || x.client.Username != "other" || x.client.Password != "secret" || x.client.DB != 2 || x.prefix != "x:" {
		t.Errorf("options: %+v, %v", x, err)
	}
}

var commandName = regexp.MustCompile(`\b(?:call|push|put|of)\('([A-Z]+)'`)

func TestSentinelOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, master, addresses, user, password, sentinelUser, sentinelPassword string }{
		{"redis+sentinel://h/m", "m", "h:26379", "", "", "", ""},
		{"redis+sentinel://a:1,b,[::1]:3/m/4?prefix=x:&lua=0", "m", "a:1 b:26379 [::1]:3", "", "", "", ""},
		{"rediss+sentinel://u:p%40@a:1,b:2/my.master?sentinel_username=w&sentinel_password=s%26&dial_timeout=1s", "my.master", "a:1 b:2", "u", "p@", "w", "s&"},
	} {
		o := Options{URL: c.url}
		x, err := o.parse()
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		f := x.failover
		if f == nil || f.MasterName != c.master || strings.Join(f.SentinelAddrs, " ") != c.addresses || f.Username != c.user || f.Password != c.password ||
			f.SentinelUsername != c.sentinelUser || f.SentinelPassword != c.sentinelPassword {
			t.Errorf("%s: %+v", c.url, f)
		} else if tls := strings.HasPrefix(c.url, "rediss"); (f.TLSConfig != nil) != tls || tls && f.TLSConfig.ServerName != "" {
			t.Errorf("%s: TLS %+v", c.url, f.TLSConfig)
		}
	}
	o := Options{URL: "redis+sentinel://u:p@a:1/m/4?sentinel_password=s", Password: "P", SentinelUsername: "W", SentinelPassword: "S"}
	if x, err := o.parse(); err != nil || x.failover.Password != "P" || x.failover.SentinelUsername != "W" || x.failover.SentinelPassword != "S" || x.failover.DB != 4 {
		t.Errorf("%+v, %v", x, err)
	}
	for url, want := range map[string]string{
		"redis+sentinel://:secret@a:1":                                 "must name the master",
		"redis+sentinel://:secret@a:1/":                                "must name the master",
		"redis+sentinel://:secret@a:1,/m":                              "Sentinel 2 of the list",
		"redis+sentinel://:secret@a:0/m":                               "Sentinel 1 of the list",
		"redis+sentinel://:secret@a:99999/m":                           "Sentinel 1 of the list",
		"redis+sentinel:///m":                                          "Sentinel 1 of the list",
		"redis+sentinel://:secret@a/m/x":                               `database number: "x"`,
		"redis+sentinel://:secret@a/m?sentinel_password=secret&x=":     "unexpected option: x",
		"redis+sentinel://:secret@" + strings.Repeat("a,", 32) + "a/m": "at most 32",
		"redis://:secret@a:1?sentinel_password=secret":                 "sentinel_password",
		"http+sentinel://:secret@a/m":                                  "must begin with",
	} {
		o := Options{URL: url}
		if _, err := o.parse(); !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") && want != "sentinel_password" {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}

// However a URL is wrong, the error does not show its password.
func FuzzOptions(f *testing.F) {
	f.Add("redis", "h:1/0?prefix=x:")
	f.Add("redis+sentinel", "a:1,b:2/m/0?sentinel_username=x&lua=0")
	f.Add("rediss+sentinel", "[::1]/m/x?y")
	f.Add("redis", "h:port/%zz")
	f.Fuzz(func(t *testing.T, scheme, rest string) {
		const password = "hunter2hunter2"
		o := Options{URL: scheme + "://user:" + password + "@" + rest}
		x, err := o.parse()
		if err != nil && (!errors.Is(err, queue.ErrInvalid) || strings.Contains(err.Error(), password)) {
			t.Errorf("%q: %v", o.URL, err)
		}
		if err == nil && (x.client == nil || x.prefix == "" || strings.Contains(x.name(), password)) {
			t.Errorf("%q is taken for %+v", o.URL, x)
		}
	})
}

// Scripts fit what Redis and this package ask of them.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := loadScripts()
	if err != nil {
		t.Fatal(err)
	}
	if len(scripts) < 20 {
		t.Fatalf("%d scripts", len(scripts))
	}
	for name, s := range scripts {
		writesNew := name == "enqueue" || name == "putrecord"
		if oom := strings.Contains(s.text[:strings.IndexByte(s.text, '\n')], "allow-oom"); oom == writesNew {
			t.Errorf("%s runs on a full Redis: %t", name, oom)
		}
		// What the interpreter of hosts without Lua cannot do is known before a host meets it.
		if _, err := s.program(); err != nil {
			t.Error(err)
		}
		for _, c := range commandName.FindAllStringSubmatch(s.text, -1) {
			if !slices.Contains(luaexec.Supported(), strings.ToLower(c[1])) {
				t.Errorf("%s uses %s, which luaexec does not have: add it to its commands", name, c[1])
			}
		}
	}
}

func wideSpec() *queue.JobSpec {
	p := -7
	return &queue.JobSpec{
		Tenant: "acme", Queue: "mail", Type: "send", Payload: []byte("body\x00\xff"), PayloadJSON: true, Headers: map[string]string{"a": "b", "": "c"},
		Labels: map[string]string{"l": "\xff"}, Priority: &p, ExpiresIn: time.Hour, Timeout: time.Minute, MaxAttempts: 9,
		Backoff: queue.Backoff{Base: time.Second, Max: time.Hour, Jitter: queue.JitterNone}, IdempotencyKey: "i",
		Unique: queue.Unique{Key: "u", Until: queue.UniqueUntilStarted, OnConflict: queue.UniqueExisting}, RetriedFrom: "job_x",
	}
}

const someID = "01kb0000000000000000000000"

func TestRecord(t *testing.T) {
	t.Parallel()
	s := wideSpec()
	j, _, err := decodeRecord(someID, "-0007"+string(encodeRecord(s)))
	if err != nil {
		t.Fatal(err)
	}
	if j.Tenant != s.Tenant || j.Queue != s.Queue || j.Type != s.Type || !bytes.Equal(j.Payload, s.Payload) || !j.PayloadJSON || j.Priority != -7 ||
		!maps.Equal(j.Headers, s.Headers) || !maps.Equal(j.Labels, s.Labels) || j.Timeout != s.Timeout || j.MaxAttempts != 9 || j.Backoff != s.Backoff ||
		j.IdempotencyKey != "i" || j.Unique != s.Unique || j.RetriedFrom != "job_x" || j.ExpiresAt.Sub(j.CreatedAt) != time.Hour || j.State != queue.StateReady {
		t.Errorf("record = %+v", j)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add("+0000" + string(encodeRecord(wideSpec())))
	f.Add("+0000" + string(encodeRecord(&queue.JobSpec{Tenant: "t", Queue: "q", Type: "a"})))
	f.Add("+000000000581a173a152")
	f.Fuzz(func(t *testing.T, s string) {
		j, _, err := decodeRecord(someID, s)
		if err == nil && (j.Tenant == "" || j.State == "") {
			t.Errorf("%q is taken for %+v", s, j)
		}
		if err != nil && !errors.Is(err, errRecord) {
			t.Errorf("error %v is no errRecord", err)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	p := newPacker(nil)
	p.int("a", -5)
	p.int("b", 1<<40)
	p.str("c", strings.Repeat("x", 300))
	p.float("d", 0.5)
	f.Add(string(p.end()))
	f.Add("\x81\xa1a\x93\x01\xc0\xc3")
	f.Add("\xdf\xff\xff\xff\xff")
	f.Fuzz(func(_ *testing.T, s string) {
		m, err := unpackMap(s)
		if err == nil {
			m.int("a")
			m.str("b")
			m.list("c")
		}
	})
}

func TestPack(t *testing.T) {
	t.Parallel()
	p := newPacker([]byte("before"))
	for name, n := range map[string]int64{"a": 1, "b": 127, "c": 128, "d": 1 << 33, "e": -1, "f": -1 << 40} {
		p.int(name, n)
	}
	p.str("s", strings.Repeat("y", 70_000))
	p.int("zero", 0)
	m, err := unpackMap(string(p.end()[len("before"):]))
	if err != nil || len(m) != 7 || m.int("a") != 1 || m.int("c") != 128 || m.int("d") != 1<<33 || m.int("e") != -1 || m.int("f") != -1<<40 || len(m.str("s")) != 70_000 {
		t.Errorf("unpacked %d fields, %v", len(m), err)
	}
}

// An id says when it was made and is one that queue can read.
func TestIDs(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_900_000_000_123)
	last := ""
	for _, n := range []int64{0, 1, 7, 8, 4095, 8191, 8192, 16383} {
		id := idTime(at.UnixMilli()) + idNumber(n) + randomTail()
		u, ok := queue.ParseID(queue.JobIDPrefix, queue.JobIDPrefix+"_"+id)
		if !ok || u[6]>>4 != 7 || u[8]>>6 != 2 || id <= last {
			t.Errorf("id %d = %s (version %d, variant %d) after %s", n, id, u[6]>>4, u[8]>>6, last)
		}
		last = id
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	st := func(id, token string, v queue.Verb) queue.Settlement {
		return queue.Settlement{Ref: queue.Ref{ID: id, Token: queue.Token(token)}, Verb: v}
	}
	for _, c := range []struct {
		all  []queue.Settlement
		want int
	}{
		{[]queue.Settlement{st("a", "x", queue.VerbAck), st("b", "y", queue.VerbAck), st("c", "x", queue.VerbAck)}, 2},
		{[]queue.Settlement{st("a", "x", queue.VerbAck), st("b", "y", queue.VerbYield), st("c", "x", queue.VerbAck)}, 3},
		{[]queue.Settlement{st("a", "x", queue.VerbAck), st("a", "x", queue.VerbAck)}, 2},
	} {
		places := make([]int, len(c.all))
		for i := range places {
			places[i] = i
		}
		got := runs(c.all, places)
		n := 0
		for _, r := range got {
			n += len(r)
		}
		if len(got) != c.want || n != len(c.all) {
			t.Errorf("%d runs of %d settlements, want %d of %d", len(got), n, c.want, len(c.all))
		}
	}
}

func TestOutage(t *testing.T) {
	t.Parallel()
	var o outage
	o.note()
	o.over()
	if o.take() {
		t.Error("a failure of a moment counts as a gap")
	}
	o.late(gapMin)
	if !o.take() || o.take() {
		t.Error("a late reply is no gap, or is one twice")
	}
}
