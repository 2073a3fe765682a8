package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/taskhost/taskhost/host/httpapi/jsonin"
	"github.com/taskhost/taskhost/queue"
)

func testDecoder() *jobDecoder {
	limits := queue.DefaultLimits()
	limits.PayloadBytes = 4096
	opt := Options{Limits: limits, BatchBytes: 64 << 10}
	return &jobDecoder{tenant: "default", limits: limits, defaults: Defaults{Queue: "default", MaxAttempts: 5}, bounds: bounds(opt)}
}

func decode(d *jobDecoder, body []byte, oneByte bool) (enqueueRequest, error) {
	b := &bodyReader{r: bytes.NewReader(body), limit: d.bounds.single, announced: -1}
	if oneByte {
		b.r = iotest.OneByteReader(b.r)
	}
	return d.decodeEnqueue(jsonin.New(b), b)
}

// Whatever arrives: no panic; every error is one that is answered with 4xx and names its place; what is taken is valid, and a
// JSON payload is a part of the body, byte for byte.
func FuzzDecodeEnqueue(f *testing.F) {
	for _, seed := range []string{
		`{"type":"a","payload":{"id":9007199254740993,"a":1.0,"b":1e400,  "k":1,"k":2}}`,
		`{"type":"a","payload_base64":"/wA=","priority":-1,"delay":"5m","expires_in":"1h","timeout":"30s","max_attempts":3}`,
		`{"jobs":[{"type":"a","payload":1},{"type":"","payload":1},{"typ":[{}]},7,{"type":"a","payload":"é"}]}`,
		`{"type":"a","payload":1,"unique":{"key":"u","until":"started","on_conflict":"existing"},"backoff":{"base":"1s","max":"1h","jitter":"none"}}`,
		`{"type":"a","payload":1,"labels":{"a":"b","é":"\u00e9"},"headers":{},"idempotency_key":"k"}`,
		`{"jobs":[]}`, `{"jobs":[{]}`, `{"type":"a","payload":"\ud800"}`, `{"type":"a","payload":` + strings.Repeat("[", 1001), "{\"type\":\"\xff\"}", `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	d := testDecoder()
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := decode(d, body, false)
		_, err2 := decode(d, body, true)
		if fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("whole: %v, byte by byte: %v", err, err2)
		}
		if err != nil {
			p := classify(err)
			if p == nil || p.Status < 400 || p.Status > 499 || p.Field == "" {
				t.Fatalf("%v is answered as %+v", err, p)
			}
			return
		}
		if len(req.items) == 0 || !req.batch && len(req.items) != 1 {
			t.Fatalf("%d jobs", len(req.items))
		}
		for i, item := range req.items {
			if item.err != nil {
				if p := classify(item.err); !req.batch || p == nil || !strings.HasPrefix(p.Field, fmt.Sprintf("jobs[%d]", i)) {
					t.Fatalf("jobs[%d]: %v is answered as %+v", i, item.err, p)
				}
				continue
			}
			spec := item.spec
			if err := spec.Validate(d.limits); err != nil || spec.Tenant != "default" || spec.MaxAttempts < 1 {
				t.Fatalf("took %+v: %v", spec, err)
			}
			if spec.PayloadJSON && (!json.Valid(spec.Payload) || !bytes.Contains(body, spec.Payload)) {
				t.Fatalf("the payload is %q", spec.Payload)
			}
		}
	})
}

// A batch that fits is read even when it is longer than one job may be; nothing is read far beyond the bound.
func TestBatchRaisesTheBound(t *testing.T) {
	t.Parallel()
	d := testDecoder()
	d.bounds = bodyBounds{single: 20_000, batch: 36_000}
	jobs := func(n int) []byte {
		return []byte(`{"jobs":[` + strings.TrimSuffix(strings.Repeat(`{"type":"a","payload":"0123456789"},`, n), ",") + `]}`)
	}
	if req, err := decode(d, jobs(900), false); err != nil || len(req.items) != 900 {
		t.Errorf("%d jobs: %v", len(req.items), err)
	}
	_, err := decode(d, jobs(1000), false)
	if size := (*bodySizeError)(nil); !errors.As(err, &size) || size.max != 36_000 {
		t.Errorf("%v", err)
	}
	_, err = decode(d, []byte(`{"type":"a",`+strings.Repeat(" ", 30_000)+`"payload":1}`), false)
	if size := (*bodySizeError)(nil); !errors.As(err, &size) || size.max != 20_000 {
		t.Errorf("%v", err)
	}
}

// When the announced length is known it is what is named.
func TestBodyNamesBothSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		announced int64
		want      string
	}{
		{-1, "body: more than 10 bytes are over the limit of 10 bytes"},
		{25, "body: 25 bytes are over the limit of 10 bytes"},
	} {
		b := &bodyReader{r: strings.NewReader(strings.Repeat("x", 25)), limit: 10, announced: c.announced}
		var got bytes.Buffer
		if _, err := got.ReadFrom(b); err == nil || err.Error() != c.want || got.Len() != 10 {
			t.Errorf("%v after %d bytes, want %q", err, got.Len(), c.want)
		}
	}
}

func BenchmarkDecodeJob(b *testing.B) {
	d := testDecoder()
	body := []byte(`{"type":"image.resize","queue":"default","payload":{"w":200,"h":100,"src":"s3://bucket/key"},"priority":1,"idempotency_key":"order-42"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode(d, body, false); err != nil {
			b.Fatal(err)
		}
	}
}
