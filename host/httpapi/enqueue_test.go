package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taskhost/taskhost/host/httpapi"
	"github.com/taskhost/taskhost/queue"
)

func TestEnqueueStoresEveryField(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.enqueue(`{"type":"image.resize","queue":"low","payload":{"w":200},"priority":7,"delay":"5m","expires_in":"1h","timeout":"30s",
		"max_attempts":3,"backoff":{"base":"2s","max":"1m","jitter":"none"},"idempotency_key":"order-42",
		"unique":{"key":"u1","until":"started","on_conflict":"existing"},"labels":{"order":"42"},"headers":{"traceparent":"00-é"}}`)
	j, err := s.store.GetJob(t.Context(), "default", id)
	if err != nil {
		t.Fatal(err)
	}
	now := s.clock.Now()
	switch {
	case j.Tenant != "default", j.Type != "image.resize", j.Queue != "low", string(j.Payload) != `{"w":200}`, !j.PayloadJSON,
		j.Priority != 7, !j.NextRunAt.Equal(now.Add(5 * time.Minute)), !j.ExpiresAt.Equal(now.Add(time.Hour)),
		j.Timeout != 30*time.Second, j.MaxAttempts != 3, j.Backoff != (queue.Backoff{Base: 2 * time.Second, Max: time.Minute, Jitter: queue.JitterNone}),
		j.IdempotencyKey != "order-42", j.Unique != (queue.Unique{Key: "u1", Until: queue.UniqueUntilStarted, OnConflict: queue.UniqueExisting}),
		j.Labels["order"] != "42", j.Headers["traceparent"] != "00-é":
		t.Fatalf("stored %+v", j)
	}
}

func TestEnqueueFillsDefaults(t *testing.T) {
	t.Parallel()
	backoff := queue.Backoff{Base: 3 * time.Second, Max: time.Minute, Jitter: queue.JitterFull}
	s := newSite(t, func(o *httpapi.Options) {
		o.Defaults = httpapi.Defaults{Queue: "main", MaxAttempts: 9, Backoff: backoff}
	})
	j, err := s.store.GetJob(t.Context(), "default", s.enqueue(`{"type":"a","payload":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if j.Queue != "main" || j.MaxAttempts != 9 || j.Backoff != backoff || string(j.Payload) != "null" {
		t.Fatalf("stored %+v", j)
	}
}

func TestEnqueueFaults(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	long := strings.Repeat("k", 257)
	for _, c := range []struct{ name, body, field string }{
		{"nothing", ``, "body"},
		{"not an object", `[]`, "body"},
		{"cut short", `{"type":"a","payload":{`, "body"},
		{"cut in a key", `{"typ`, "body"},
		{"two values", `{"type":"a","payload":1} {}`, "body"},
		{"bad literal", `{"type":"a","payload":nope}`, "body"},
		{"trailing comma", `{"type":"a","payload":1,}`, "body"},
		{"not UTF-8", "{\"type\":\"a\",\"payload\":\"\xff\"}", "body"},
		{"twice", `{"type":"a","type":"b","payload":1}`, "body"},
		{"too deep", `{"type":"a","payload":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}`, "body"},
		{"unknown field", `{"type":"a","payload":1,"max_atempts":3}`, "max_atempts"},
		{"empty concurrency key", `{"type":"a","payload":1,"concurrency_key":""}`, "concurrency_key"},
		{"long concurrency key", `{"type":"a","payload":1,"concurrency_key":"` + strings.Repeat("k", 257) + `"}`, "concurrency_key"},
		{"no type", `{"payload":1}`, "type"},
		{"type of another kind", `{"type":1,"payload":1}`, "type"},
		{"no payload", `{"type":"a"}`, "payload"},
		{"both payloads", `{"type":"a","payload":1,"payload_base64":"AA=="}`, "payload_base64"},
		{"not base64", `{"type":"a","payload_base64":"A*=="}`, "payload_base64"},
		{"base64 without padding", `{"type":"a","payload_base64":"AA"}`, "payload_base64"},
		{"priority too high", `{"type":"a","payload":1,"priority":4096}`, "priority"},
		{"priority not whole", `{"type":"a","payload":1,"priority":1.5}`, "priority"},
		{"priority as text", `{"type":"a","payload":1,"priority":"1"}`, "priority"},
		{"no attempts", `{"type":"a","payload":1,"max_attempts":0}`, "max_attempts"},
		{"too many attempts", `{"type":"a","payload":1,"max_attempts":1001}`, "max_attempts"},
		{"huge number", `{"type":"a","payload":1,"max_attempts":99999999999999999999}`, "max_attempts"},
		{"delay as a number", `{"type":"a","payload":1,"delay":90}`, "delay"},
		{"delay below zero", `{"type":"a","payload":1,"delay":"-1s"}`, "delay"},
		{"delay of years", `{"type":"a","payload":1,"delay":"50000h"}`, "delay"},
		{"no duration", `{"type":"a","payload":1,"timeout":"soon"}`, "timeout"},
		{"timeout zero", `{"type":"a","payload":1,"timeout":"0s"}`, "timeout"},
		{"expires at once", `{"type":"a","payload":1,"expires_in":"0s"}`, "expires_in"},
		{"empty key", `{"type":"a","payload":1,"idempotency_key":""}`, "idempotency_key"},
		{"long key", `{"type":"a","payload":1,"idempotency_key":"` + long + `"}`, "idempotency_key"},
		{"unique of another kind", `{"type":"a","payload":1,"unique":"u"}`, "unique"},
		{"unique without a key", `{"type":"a","payload":1,"unique":{"until":"started"}}`, "unique.key"},
		{"unique until", `{"type":"a","payload":1,"unique":{"key":"u","until":"never"}}`, "unique.until"},
		{"unique field", `{"type":"a","payload":1,"unique":{"key":"u","x":1}}`, "unique.x"},
		{"backoff jitter", `{"type":"a","payload":1,"backoff":{"jitter":"some"}}`, "backoff.jitter"},
		{"label of another kind", `{"type":"a","payload":1,"labels":{"a":1}}`, "labels.a"},
		{"labels of another kind", `{"type":"a","payload":1,"labels":["a"]}`, "labels"},
		{"label twice", `{"type":"a","payload":1,"labels":{"a":"1","a":"2"}}`, "labels"},
		{"label without a name", `{"type":"a","payload":1,"labels":{"":"1"}}`, "labels"},
		{"half a surrogate", `{"type":"a","payload":1,"labels":{"a":"\ud800"}}`, "labels.a"},
		{"no jobs", `{"jobs":[]}`, "jobs"},
		{"jobs of another kind", `{"jobs":{}}`, "jobs"},
		{"jobs and a job", `{"type":"a","jobs":[]}`, "jobs"},
		{"a job behind jobs", `{"jobs":[{"type":"a","payload":1}],"type":"a"}`, "type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := s.send("POST", "/v1/jobs", c.body).wantProblem(400, httpapi.CodeInvalid, c.field)
			if c.field == "body" && !strings.Contains(p.Detail, "at byte ") {
				t.Errorf("the detail has no offset: %s", p.Detail)
			}
		})
	}
	s.nothingStored()
}

func (s *site) nothingStored() {
	s.t.Helper()
	report, err := s.store.Audit(s.t.Context())
	if err != nil || report.Enqueued != 0 {
		s.t.Fatalf("%d jobs were stored (%v)", report.Enqueued, err)
	}
}

// The offset is the one of the byte at fault.
func TestEnqueueFaultOffset(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, c := range []struct {
		body string
		at   int
	}{
		{`{"type":"a","payload":[1,x]}`, 25},
		{`{"type":"a";"payload":1}`, 11},
		{`{"type":"a","payload":1}x`, 24},
		{"{\"type\":\"a\",\"payload\":\"ab\xff\"}", 25},
	} {
		p := s.send("POST", "/v1/jobs", c.body).wantProblem(400, httpapi.CodeInvalid, "body")
		if !strings.Contains(p.Detail, fmt.Sprintf("at byte %d of the body", c.at)) {
			t.Errorf("%s: %s, want byte %d", c.body, p.Detail, c.at)
		}
	}
}

// Sent as JSON, as base64 and raw, over HTTP: the store holds exactly those bytes.
func TestCase017PayloadBytesSurvive(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const payload = "{\"id\":9007199254740993,\"a\":1.0,\"b\":1e400,  \"k\":1,\"k\":2,\n\t\"u\":\"\\u00e9é\\/\"}"
	for _, body := range []string{
		`{"type":"a","payload":` + payload + `}`,
		`{"payload" :  ` + payload + `  , "type":"a"}`,
		`{"type":"a","payload_base64":"` + base64.StdEncoding.EncodeToString([]byte(payload)) + `"}`,
		`{"jobs":[{"type":"a","payload":` + payload + `}]}`,
	} {
		a := s.send("POST", "/v1/jobs", body)
		if a.status >= 300 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		j := s.reserve()
		if sha256.Sum256(j.Payload) != sha256.Sum256([]byte(payload)) {
			t.Errorf("the handler got %q", j.Payload)
		}
		if got := s.send("GET", "/v1/jobs/"+j.ID+"/payload", nil).want(200).body; string(got) != payload {
			t.Errorf("answered %q", got)
		}
		s.settle(j, queue.Settlement{Verb: queue.VerbDead, Error: &queue.JobError{Kind: "permanent", Message: "x"}})
		s.send("POST", "/v1/jobs/"+j.ID+"/retry", nil).want(200)
		if again := s.reserve(); again.ID != j.ID || string(again.Payload) != payload {
			t.Errorf("the retry got %q", again.Payload)
		} else {
			s.settle(again, queue.Settlement{Verb: queue.VerbAck})
		}
	}
	// Shown as JSON, the text of every number is kept.
	id := s.enqueue(`{"type":"a","payload":` + payload + `}`)
	if got := s.send("GET", "/v1/jobs/"+id, nil).want(200).body; !bytes.Contains(got, []byte(`"payload":{"id":9007199254740993,"a":1.0,"b":1e400,"k":1,"k":2,`)) {
		t.Errorf("shown as %s", got)
	}
}

func TestCase018BytesThatAreNotText(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, payload := range [][]byte{{0xff, 0xfe, 0}, {}, []byte(`{"cut":`), bytes.Repeat([]byte{0}, 100)} {
		raw := s.send("POST", "/v1/jobs/raw?type=a", payload, "Content-Type", "application/octet-stream").want(201).object()["id"].(string)
		coded := s.enqueue(`{"type":"a","payload_base64":"` + base64.StdEncoding.EncodeToString(payload) + `"}`)
		for _, id := range []string{raw, coded} {
			if j := s.reserve(); j.ID != id || !bytes.Equal(j.Payload, payload) {
				t.Errorf("the handler got %q for %q", j.Payload, payload)
			}
			if got := s.send("GET", "/v1/jobs/"+id+"/payload", nil).want(200); !bytes.Equal(got.body, payload) ||
				got.header.Get("Content-Type") != "application/octet-stream" {
				t.Errorf("answered %q %v", got.body, got.header)
			}
			m := s.send("GET", "/v1/jobs/"+id, nil).want(200).object()
			if m["payload"] != nil || m["payload_base64"] != base64.StdEncoding.EncodeToString(payload) {
				t.Errorf("shown as %v %v", m["payload"], m["payload_base64"])
			}
		}
	}
}

func TestCase012TypesThatNobodyCanRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, typ := range []string{"", " ", `\n`, strings.Repeat("x", 10_000), `é/../\u0000`, "\u202e\U0001f600", "a b", ".a", "a/b", "a:b", "a{b}"} {
		s.send("POST", "/v1/jobs", `{"type":"`+typ+`","payload":1}`).wantProblem(400, httpapi.CodeInvalid, "type")
	}
	s.nothingStored()
	for _, typ := range []string{"a", "image.resize", "A_b-C.9", strings.Repeat("x", 128)} {
		id := s.enqueue(`{"type":"` + typ + `","payload":1}`)
		if got := s.send("GET", "/v1/jobs/"+id, nil).object()["type"]; got != typ {
			t.Errorf("%q came back as %q", typ, got)
		}
	}
}

func TestCase013QueueWithoutAName(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.send("POST", "/v1/jobs", `{"type":"a","queue":"","payload":1}`).wantProblem(400, httpapi.CodeInvalid, "queue")
	if want := (&queue.InvalidError{Field: "queue", Reason: "must not be empty"}).Error(); p.Detail != want {
		t.Errorf("%q, want %q", p.Detail, want)
	}
	s.send("PATCH", "/v1/queues/%20", `{"paused":true}`).wantProblem(400, httpapi.CodeInvalid, "queue")
	s.nothingStored()
}

func TestCase014And015BracesAndColons(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, name := range []string{"a{b}c", "{}", "}{", "{", "x:y", "a:b:c"} {
		s.send("POST", "/v1/jobs", `{"type":"a","queue":"`+name+`","payload":1}`).wantProblem(400, httpapi.CodeInvalid, "queue")
	}
	s.nothingStored()
	// Keys are the producer's own: whatever is in them, each is one key.
	a := s.enqueue(`{"type":"a","payload":1,"idempotency_key":"x:y"}`)
	b := s.enqueue(`{"type":"a","payload":1,"idempotency_key":"x"}`)
	if a == b {
		t.Fatal("two keys are one job")
	}
}

// patient is a body that must not be read to its end.
type patient struct {
	head  io.Reader
	left  int64
	given atomic.Int64 // the transport may still be sending when the answer is there
}

func (p *patient) Read(b []byte) (int, error) {
	if n, err := p.head.Read(b); n > 0 || err != io.EOF {
		p.given.Add(int64(n))
		return n, err
	}
	n := min(int64(len(b)), p.left)
	if n == 0 {
		return 0, io.EOF
	}
	for i := range b[:n] {
		b[i] = 'a'
	}
	p.left -= n
	p.given.Add(n)
	return int(n), nil
}

func TestCase019TooLarge(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const limit = 1 << 20
	check := func(a answer, field, got string) {
		t.Helper()
		p := a.wantProblem(413, httpapi.CodeTooLarge, field)
		if !strings.Contains(p.Detail, got) || !strings.Contains(p.Detail, "1048576 bytes") && field == "payload" {
			t.Errorf("the sizes are not both in %q", p.Detail)
		}
	}
	text := `"` + strings.Repeat("a", limit-1) + `"` // limit + 1 bytes
	check(s.send("POST", "/v1/jobs", `{"type":"a","payload":`+text+`}`), "payload", "1048577 bytes")
	check(s.send("POST", "/v1/jobs", `{"type":"a","payload_base64":"`+base64.StdEncoding.EncodeToString(make([]byte, limit+1))+`"}`), "payload", "1048577 bytes")
	check(s.send("POST", "/v1/jobs/raw?type=a", make([]byte, limit+1)), "payload", "1048577 bytes")
	check(s.send("POST", "/v1/jobs/raw?type=a", make([]byte, 64<<20)), "payload", "67108864 bytes")
	check(s.send("POST", "/v1/jobs", `{"type":"a","payload":"`+strings.Repeat("a", 64<<20)+`"}`), "body", "67108889 bytes")

	// The largest that is allowed is.
	exact := `"` + strings.Repeat("a", limit-2) + `"`
	s.enqueue(`{"type":"a","payload":` + exact + `}`)
	s.send("POST", "/v1/jobs/raw?type=a", make([]byte, limit)).want(201)

	// A length that is not announced is not read to its end either.
	body := &patient{head: strings.NewReader(`{"type":"a","payload":"`), left: 64 << 20}
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.http.URL+"/v1/jobs", io.NopCloser(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	check(s.do(req), "body", "more than")
	if sent := body.given.Load(); sent > 16<<20 {
		t.Errorf("%d bytes were sent before the answer", sent)
	}

	// In a batch only the job that is too large is rejected.
	a := s.send("POST", "/v1/jobs", `{"jobs":[{"type":"a","payload":`+text+`},{"type":"a","payload":1}]}`).want(200)
	var r httpapi.BatchResult
	a.into(&r)
	if r.Created != 1 || r.Rejected != 1 || r.Outcomes[0].Error.Code != httpapi.CodeTooLarge || r.Outcomes[0].Error.Field != "jobs[0].payload" {
		t.Errorf("batch: %s", a.body)
	}
}

func TestCase022UniqueKeyNamesItsHolder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const body = `{"type":"a","payload":1,"unique":{"key":"u"}}`
	first := s.enqueue(body)
	held := func(state queue.State) {
		t.Helper()
		p := s.send("POST", "/v1/jobs", body).wantProblem(409, httpapi.CodeUniqueHeld, "unique.key")
		if p.JobID != first || p.State != string(state) || !strings.Contains(p.Detail, first) {
			t.Errorf("the holder is not named: %+v", p)
		}
	}
	held(queue.StateReady)
	j := s.reserve()
	held(queue.StateRunning)
	s.settle(j, queue.Settlement{Verb: queue.VerbDead, Error: &queue.JobError{Kind: "permanent", Message: "x"}})
	// A dead job blocks nothing: the documented rule.
	second := s.enqueue(body)
	// While the new one holds the key, the dead one cannot come back.
	s.send("POST", "/v1/jobs/"+first+"/retry", nil).wantProblem(409, httpapi.CodeUniqueHeld, "unique.key")
	s.send("DELETE", "/v1/jobs/"+second, nil).want(204)
	third := s.enqueue(body)
	// on_conflict existing answers the holder.
	if got := s.send("POST", "/v1/jobs", `{"type":"a","payload":1,"unique":{"key":"u","on_conflict":"existing"}}`).want(200).object(); got["id"] != third || got["outcome"] != "duplicate" {
		t.Errorf("%v", got)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const plain, keyed = `{"type":"a","payload":1}`, `{"type":"a","payload":1,"idempotency_key":"k"}`
	first := s.send("POST", "/v1/jobs", plain, "Idempotency-Key", "k").want(201).object()["id"]
	for _, again := range []answer{
		s.send("POST", "/v1/jobs", plain, "Idempotency-Key", "k"),
		s.send("POST", "/v1/jobs", keyed),
		s.send("POST", "/v1/jobs", keyed, "Idempotency-Key", "k"),
	} {
		if m := again.want(200).object(); m["id"] != first || m["outcome"] != "duplicate" {
			t.Errorf("%v", m)
		}
	}
	p := s.send("POST", "/v1/jobs", `{"type":"b","payload":1,"idempotency_key":"k"}`).wantProblem(409, httpapi.CodeIdempotencyMismatch, "idempotency_key")
	if p.JobID != first {
		t.Errorf("the first job is not named: %+v", p)
	}
	s.send("POST", "/v1/jobs", keyed, "Idempotency-Key", "other").wantProblem(400, httpapi.CodeInvalid, "idempotency_key")
	s.send("POST", "/v1/jobs", plain, "Idempotency-Key", strings.Repeat("k", 257)).wantProblem(400, httpapi.CodeInvalid, "Idempotency-Key")
	s.send("POST", "/v1/jobs", `{"jobs":[`+plain+`]}`, "Idempotency-Key", "k").wantProblem(400, httpapi.CodeInvalid, "Idempotency-Key")
	raw := s.send("POST", "/v1/jobs/raw?type=a", "x", "Idempotency-Key", "r").want(201).object()["id"]
	if again := s.send("POST", "/v1/jobs/raw?type=a", "x", "Idempotency-Key", "r").want(200).object()["id"]; again != raw {
		t.Errorf("%v, want %v", again, raw)
	}
}

func TestBatchOutcomes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.enqueue(`{"type":"a","payload":1,"idempotency_key":"k","unique":{"key":"u"}}`)
	a := s.send("POST", "/v1/jobs", `{"jobs":[
		{"type":"a","payload":1},
		{"type":"a","payload":1,"idempotency_key":"k","unique":{"key":"u"}},
		{"type":"a","queue":"a b","payload":[1,2,{"x":"}"}],"labels":{"a":"b"}},
		{"typ":"a","payload":1},
		5,
		{"type":"a","payload":1,"unique":{"key":"u"}},
		{"type":"a","payload":1,"idempotency_key":"k"},
		{"type":"a","unique":{"kee":[1]},"payload":1},
		{"type":"a","payload":2}]}`).want(200)
	var r httpapi.BatchResult
	a.into(&r)
	if r.Created != 2 || r.Duplicate != 1 || r.Rejected != 6 || r.Unknown != 0 || len(r.Outcomes) != 9 {
		t.Fatalf("%s", a.body)
	}
	for i, want := range []struct {
		outcome queue.EnqueueStatus
		code    httpapi.Code
		field   string
	}{
		{queue.EnqueueCreated, "", ""},
		{queue.EnqueueDuplicate, "", ""},
		{queue.EnqueueRejected, httpapi.CodeInvalid, "jobs[2].queue"},
		{queue.EnqueueRejected, httpapi.CodeInvalid, "jobs[3].typ"},
		{queue.EnqueueRejected, httpapi.CodeInvalid, "jobs[4]"},
		{queue.EnqueueRejected, httpapi.CodeUniqueHeld, "jobs[5].unique.key"},
		{queue.EnqueueRejected, httpapi.CodeIdempotencyMismatch, "jobs[6].idempotency_key"},
		{queue.EnqueueRejected, httpapi.CodeInvalid, "jobs[7].unique.kee"},
		{queue.EnqueueCreated, "", ""},
	} {
		got := r.Outcomes[i]
		if got.Outcome != want.outcome || (got.Error != nil) != (want.code != "") || got.Error != nil && (got.Error.Code != want.code || got.Error.Field != want.field) {
			t.Errorf("jobs[%d]: %+v %+v, want %+v", i, got, got.Error, want)
		}
		if (got.ID != "") != (want.code == "") {
			t.Errorf("jobs[%d]: id %q", i, got.ID)
		}
	}
}

func TestBatchSize(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := func(n int) string {
		return `{"jobs":[` + strings.TrimSuffix(strings.Repeat(`{"type":"a","payload":1},`, n), ",") + `]}`
	}
	var r httpapi.BatchResult
	s.send("POST", "/v1/jobs", jobs(1000)).want(200).into(&r)
	if r.Created != 1000 {
		t.Errorf("%d created", r.Created)
	}
	s.send("POST", "/v1/jobs", jobs(1001)).wantProblem(400, httpapi.CodeInvalid, "jobs")
	s.send("POST", "/v1/jobs?wait=1s", jobs(1)).wantProblem(400, httpapi.CodeInvalid, "wait")
	report, err := s.store.Audit(t.Context())
	if err != nil || report.Enqueued != 1000 {
		t.Errorf("%d jobs stored (%v)", report.Enqueued, err)
	}
}

func TestRawParameters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.send("POST", "/v1/jobs/raw?type=a&queue=q&priority=-3&delay=1m&expires_in=1h&timeout=5s&max_attempts=2", "x").want(201).object()["id"].(string)
	j, err := s.store.GetJob(t.Context(), "default", id)
	if err != nil {
		t.Fatal(err)
	}
	if j.Queue != "q" || j.Priority != -3 || j.State != queue.StateScheduled || j.ExpiresAt.IsZero() || j.Timeout != 5*time.Second || j.MaxAttempts != 2 || j.PayloadJSON {
		t.Errorf("stored %+v", j)
	}
	for query, field := range map[string]string{
		"": "type", "type=": "type", "type=a%20b": "type", "type=a&queue=%7B": "queue", "type=a&priority=x": "priority", "type=a&delay=-1s": "delay",
		"type=a&max_attempts=0": "max_attempts", "type=a&nope=1": "nope", "type=a&type=b": "type", "type=a&wait=56s": "wait",
	} {
		s.send("POST", "/v1/jobs/raw?"+query, "x").wantProblem(400, httpapi.CodeInvalid, field)
	}
}

func TestUnknownTypeIsAcceptedWithAWarning(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if got := s.send("POST", "/v1/jobs", `{"type":"imgae.resize","payload":1}`).want(201).object()["warnings"]; got == nil {
		t.Error("no warning")
	}
	s.send("POST", "/v1/handlers/image.resize/versions", "module", "Content-Type", "application/wasm").want(201)
	s.send("PUT", "/v1/handlers/image.resize/live", `{"version":1}`).want(200)
	if got := s.send("POST", "/v1/jobs", `{"type":"image.resize","payload":1}`).want(201).object()["warnings"]; got != nil {
		t.Errorf("warnings %v", got)
	}
}
