package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host/hosttest"
	"github.com/taskhost/taskhost/host/lifecycle"
	"github.com/taskhost/taskhost/host/lifecycle/lifecycletest"
	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/memq"
)

func fresh(t *testing.T, store hosttest.Engine, rt *hosttest.Runtime, change func(*Options)) *Catalog {
	t.Helper()
	o := Options{Records: store, Registry: &handlers.Registry{}, Runtimes: []handlers.Runtime{rt}, Limits: handlers.Limits{MemoryBytes: 1 << 20},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Random: func() float64 { return 0 }, Now: store.Now}
	if change != nil {
		change(&o)
	}
	return New(o)
}

func started(t *testing.T, store hosttest.Engine, rt *hosttest.Runtime, change func(*Options)) *Catalog {
	t.Helper()
	c := fresh(t, store, rt, change)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	<-c.Loaded()
	return c
}

func upload(t *testing.T, c *Catalog, typ, module string) VersionInfo {
	t.Helper()
	info, created, err := c.Upload(t.Context(), "acme", typ, []byte(module))
	if err != nil || !created {
		t.Fatalf("upload %s: created %t, %v", typ, created, err)
	}
	return info
}

func TestUploadNeverActivatesAndNumbersRise(t *testing.T) {
	rt := &hosttest.Runtime{AdmitFn: func(_ context.Context, q handlers.AdmitRequest) (*handlers.Admission, error) {
		return &handlers.Admission{Kind: handlers.KindReactor, Imports: []string{"taskhost_v1.log"}, CompileTime: 84 * time.Millisecond, Warnings: []string{string(q.Module)}}, nil
	}}
	c := started(t, memq.New(memq.Options{}), rt, nil)
	one, two, other := upload(t, c, "resize", "one"), upload(t, c, "resize", "two"), upload(t, c, "other", "one")
	if one.Version != 1 || two.Version != 2 || other.Version != 1 {
		t.Errorf("versions %d, %d, %d; want 1, 2, 1", one.Version, two.Version, other.Version)
	}
	if two.State != StateReady || two.Percent != 0 || two.CompileMS != 84 || two.Kind != handlers.KindReactor || two.SHA256 != sum([]byte("two")) || two.SizeBytes != 3 || two.CreatedAt.IsZero() {
		t.Errorf("%+v", two)
	}
	if v, err := c.o.Registry.Resolve("acme", "resize"); err == nil {
		t.Errorf("%+v serves before anything was made live", v)
	}
	again, created, err := c.Upload(t.Context(), "acme", "resize", []byte("one"))
	if err != nil || created || again.Version != 1 {
		t.Errorf("same bytes: version %d, created %t, %v", again.Version, created, err)
	}
	if n := rt.Admitted(); n != 3 {
		t.Errorf("admitted %d times, want 3", n)
	}
	infos, err := c.Versions(t.Context(), "acme", "resize")
	if err != nil || len(infos) != 2 || infos[0].Version != 2 {
		t.Errorf("versions %+v (%v), want 2 then 1", infos, err)
	}
	for _, get := range []func() error{
		func() error { _, err := c.Versions(t.Context(), "acme", "nope"); return err },
		func() error { _, err := c.Versions(t.Context(), "evil", "resize"); return err },
		func() error { _, err := c.Get(t.Context(), "evil", "resize", 1); return err },
		func() error { _, err := c.SetLive(t.Context(), "acme", "resize", 9); return err },
		func() error { _, err := c.Rollback(t.Context(), "acme", "nope"); return err },
	} {
		if err := get(); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	}
}

func TestVersionInfoIsTheJSONOfTheAPI(t *testing.T) {
	c := started(t, memq.New(memq.Options{}), &hosttest.Runtime{}, nil)
	upload(t, c, "resize", "one")
	info, err := c.SetLive(t.Context(), "acme", "resize", 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"type":"resize"`, `"version":1`, `"state":"live"`, `"percent":100`, `"sha256":"`, `"size_bytes":3`, `"kind":"command"`,
		`"imports":[]`, `"memory":{"min_bytes":0,"max_bytes":0}`, `"instance":{"mode":"","reason":""}`, `"compile_ms":0`, `"warnings":[]`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s lacks %s", b, want)
		}
	}
}

func TestLiveAndRollback(t *testing.T) {
	rt := &hosttest.Runtime{}
	c := started(t, memq.New(memq.Options{}), rt, nil)
	for _, m := range []string{"one", "two", "three"} {
		upload(t, c, "resize", m)
	}
	serves := func(want int) {
		t.Helper()
		v, err := c.o.Registry.Resolve("acme", "resize")
		if err != nil || v.Number != want {
			t.Errorf("serves %+v (%v), want version %d", v, err, want)
		}
		if info, err := c.Get(t.Context(), "acme", "resize", 0); err != nil || info.Version != want || info.State != StateLive {
			t.Errorf("shown live: %+v (%v), want version %d", info, err, want)
		}
	}
	set := func(v int) {
		t.Helper()
		if _, err := c.SetLive(t.Context(), "acme", "resize", v); err != nil {
			t.Fatal(err)
		}
		serves(v)
	}
	back := func(want int) {
		t.Helper()
		if info, err := c.Rollback(t.Context(), "acme", "resize"); err != nil || info.Version != want {
			t.Fatalf("rolled back to %+v (%v), want %d", info, err, want)
		}
		serves(want)
	}
	set(1)
	set(3)
	set(3)
	set(2)
	back(3)
	back(1)
	_, err := c.Rollback(t.Context(), "acme", "resize")
	if _, ok := errors.AsType[*NoEarlierError](err); !ok || !errors.Is(err, queue.ErrConflict) {
		t.Errorf("third rollback: %v, want a NoEarlierError", err)
	}
	serves(1)
}

func TestAVersionThatCannotBePreparedDoesNotGoLive(t *testing.T) {
	rt := &hosttest.Runtime{}
	c := started(t, memq.New(memq.Options{}), rt, nil)
	upload(t, c, "resize", "one")
	upload(t, c, "resize", "two")
	if _, err := c.SetLive(t.Context(), "acme", "resize", 1); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("no artifact")
	rt.PrepareFn = func(context.Context, *handlers.Version, func(context.Context) ([]byte, error)) error { return broken }
	if _, err := c.SetLive(t.Context(), "acme", "resize", 2); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if v, err := c.o.Registry.Resolve("acme", "resize"); err != nil || v.Number != 1 {
		t.Errorf("serves %+v (%v), want version 1 still", v, err)
	}
	if info, err := c.Get(t.Context(), "acme", "resize", 2); err != nil || info.State != StateReady {
		t.Errorf("%+v (%v), want ready", info, err)
	}
}

func TestARefusedModuleLeavesNothingBehind(t *testing.T) {
	store := memq.New(memq.Options{})
	rt := &hosttest.Runtime{AdmitFn: func(context.Context, handlers.AdmitRequest) (*handlers.Admission, error) {
		return nil, &handlers.Refusal{Reason: "it imports what is not offered", Details: []string{"env.abort(i32)"}}
	}}
	c := started(t, store, rt, nil)
	_, _, err := c.Upload(t.Context(), "acme", "resize", []byte("bad"))
	if r, ok := errors.AsType[*handlers.Refusal](err); !ok || r.Details[0] != "env.abort(i32)" {
		t.Fatalf("got %v, want the refusal", err)
	}
	for _, k := range []string{kindModule, kindVersion, kindLive} {
		if recs, err := store.ListRecords(t.Context(), k, "", "", 0); err != nil || len(recs) != 0 {
			t.Errorf("%d %s records (%v)", len(recs), k, err)
		}
	}
	for _, bad := range [][2]string{{"", "t"}, {"../a", "t"}, {"acme", ""}, {"acme", "ml.*"}, {"acme", "a/b"}} {
		if _, _, err := c.Upload(t.Context(), bad[0], bad[1], []byte("x")); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", bad, err)
		}
	}
}

func TestASlowAdmissionIsFinishedInTheBackground(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		t.Run(fmt.Sprintf("refused=%t", refuse), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := &hosttest.Runtime{AdmitFn: func(ctx context.Context, _ handlers.AdmitRequest) (*handlers.Admission, error) {
					time.Sleep(time.Minute)
					if refuse {
						return nil, &handlers.Refusal{Reason: "compile limit"}
					}
					return &handlers.Admission{Kind: handlers.KindCommand}, nil
				}}
				c := started(t, memq.New(memq.Options{}), rt, nil)
				begin := time.Now()
				info, created, err := c.Upload(t.Context(), "acme", "big", []byte("slow"))
				if err != nil || !created || info.State != StateCompiling || time.Since(begin) != AdmitWaitDefault {
					t.Fatalf("%+v, created %t, %v after %s", info, created, err, time.Since(begin))
				}
				_, err = c.SetLive(t.Context(), "acme", "big", info.Version)
				if e, ok := errors.AsType[*StateError](err); !ok || e.State != StateCompiling {
					t.Errorf("made live while compiling: %v", err)
				}
				time.Sleep(time.Minute)
				info, err = c.Get(t.Context(), "acme", "big", info.Version)
				if err != nil {
					t.Fatal(err)
				}
				if refuse {
					_, err := c.SetLive(t.Context(), "acme", "big", info.Version)
					if info.State != StateRefused || info.Refusal != "compile limit" || !errors.Is(err, queue.ErrConflict) {
						t.Errorf("%+v, live: %v", info, err)
					}
					if _, _, err := c.Upload(t.Context(), "acme", "big", []byte("slow")); err == nil || rt.Admitted() != 1 {
						t.Errorf("same bytes: %v after %d admissions, want the refusal that is known", err, rt.Admitted())
					}
				} else if info.State != StateReady {
					t.Errorf("%+v, want ready", info)
				}
				c.Stop()
			})
		})
	}
}

func TestAnAdmissionCutOffIsTakenUpAtTheNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memq.New(memq.Options{})
		hang := &hosttest.Runtime{AdmitFn: func(ctx context.Context, _ handlers.AdmitRequest) (*handlers.Admission, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}}
		first := started(t, store, hang, nil)
		info, _, err := first.Upload(t.Context(), "acme", "big", []byte("slow"))
		if err != nil || info.State != StateCompiling {
			t.Fatalf("%+v, %v", info, err)
		}
		first.Stop()
		second := started(t, store, &hosttest.Runtime{}, nil)
		synctest.Wait()
		if info, err := second.Get(t.Context(), "acme", "big", 1); err != nil || info.State != StateReady || info.Kind != handlers.KindCommand {
			t.Errorf("%+v (%v), want ready", info, err)
		}
		second.Stop()
	})
}

func TestUploadsOfTheSameBytesAtOnceAreOneAdmission(t *testing.T) {
	gate := make(chan struct{})
	rt := &hosttest.Runtime{AdmitFn: func(context.Context, handlers.AdmitRequest) (*handlers.Admission, error) {
		<-gate
		return &handlers.Admission{}, nil
	}}
	c := started(t, memq.New(memq.Options{}), rt, nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	fresh := 0
	for range 8 {
		wg.Go(func() {
			info, created, err := c.Upload(t.Context(), "acme", "resize", []byte("one"))
			if err != nil || info.Version != 1 {
				t.Errorf("%+v, %v", info, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if created {
				fresh++
			}
		})
	}
	close(gate)
	wg.Wait()
	if infos, err := c.Versions(t.Context(), "acme", "resize"); err != nil || len(infos) != 1 || fresh != 1 {
		t.Errorf("%d versions (%v), %d uploads told created; want 1 and 1", len(infos), err, fresh)
	}
}

func TestHangingUpDoesNotUndoAnUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := &hosttest.Runtime{AdmitFn: func(context.Context, handlers.AdmitRequest) (*handlers.Admission, error) {
			time.Sleep(5 * time.Second)
			return &handlers.Admission{}, nil
		}}
		c := started(t, memq.New(memq.Options{}), rt, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := c.Upload(ctx, "acme", "resize", []byte("one")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		time.Sleep(10 * time.Second)
		if info, err := c.Get(t.Context(), "acme", "resize", 1); err != nil || info.State != StateReady {
			t.Errorf("%+v (%v)", info, err)
		}
		c.Stop()
	})
}

func TestStartPreparesWhatWasLive(t *testing.T) {
	store := memq.New(memq.Options{})
	module := bytes.Repeat([]byte("0123456789abcdef"), (moduleChunk+5000)/16) // more than a chunk
	first := started(t, store, &hosttest.Runtime{}, nil)
	if _, _, err := first.Upload(t.Context(), "acme", "resize", module); err != nil {
		t.Fatal(err)
	}
	if _, err := first.SetLive(t.Context(), "acme", "resize", 1); err != nil {
		t.Fatal(err)
	}
	first.Stop()

	var got []byte
	rt := &hosttest.Runtime{PrepareFn: func(ctx context.Context, _ *handlers.Version, source func(context.Context) ([]byte, error)) (err error) {
		got, err = source(ctx)
		return err
	}}
	second := started(t, store, rt, nil)
	if !bytes.Equal(got, module) {
		t.Errorf("prepared from %d bytes, want the %d uploaded", len(got), len(module))
	}
	if err := second.Ready(); err != nil {
		t.Error(err)
	}
	if v, err := second.o.Registry.Resolve("acme", "resize"); err != nil || v.Number != 1 || v.Runtime != "func" {
		t.Errorf("%+v, %v", v, err)
	}
	chunk, err := store.GetRecord(t.Context(), kindModule, chunkKey(sum(module), 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutRecord(t.Context(), kindModule, chunk.Key, append([]byte{'!'}, chunk.Value[1:]...), queue.AnyRevision); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Module(t.Context(), sum(module)); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged module: %v", err)
	}
}

func TestAFailingPreparationIsReportedAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memq.New(memq.Options{})
		first := started(t, store, &hosttest.Runtime{}, nil)
		upload(t, first, "resize", "one")
		if _, err := first.SetLive(t.Context(), "acme", "resize", 1); err != nil {
			t.Fatal(err)
		}
		first.Stop()
		tries := 0
		rt := &hosttest.Runtime{PrepareFn: func(context.Context, *handlers.Version, func(context.Context) ([]byte, error)) error {
			if tries++; tries <= 3 {
				return errors.New("disk is full")
			}
			return nil
		}}
		c := started(t, store, rt, nil)
		if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "disk is full") || !strings.Contains(err.Error(), "acme/resize") {
			t.Errorf("ready: %v, want why and which not", err)
		}
		time.Sleep(time.Minute)
		if err := c.Ready(); err != nil || tries != 4 {
			t.Errorf("ready: %v after %d tries", err, tries)
		}
		c.Stop()
	})
}

func TestAHostFollowsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := hosttest.Wrap(memq.New(memq.Options{}))
		shared := func(o *Options) { o.Shared = true }
		a, b := started(t, store, &hosttest.Runtime{}, shared), started(t, store, &hosttest.Runtime{}, shared)
		upload(t, a, "resize", "one")
		upload(t, a, "resize", "two")
		for _, v := range []int{1, 2} {
			if _, err := a.SetLive(t.Context(), "acme", "resize", v); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			if got, err := b.o.Registry.Resolve("acme", "resize"); err != nil || got.Number != v {
				t.Errorf("5 s after version %d went live the other host serves %+v (%v)", v, got, err)
			}
		}
		if p := b.o.Runtimes[0].(*hosttest.Runtime).Prepared(); len(p) != 2 {
			t.Errorf("the other host prepared %d versions, want 2", len(p))
		}
		a.Stop()
		b.Stop()
	})
}

func TestEnsureConfigured(t *testing.T) {
	rt := &hosttest.Runtime{}
	c := started(t, memq.New(memq.Options{}), rt, nil)
	want := []ConfiguredHandler{{Type: "ml.*", Module: []byte("one")}, {Type: "hello", Tenant: "acme", Module: []byte("two"), Config: map[string]string{"k": "v"}}}
	ensure := func(versions ...int) {
		t.Helper()
		if err := c.EnsureConfigured(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, h := range []string{"ml.resize", "hello"} {
			v, err := c.o.Registry.Resolve("acme", h)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, v.Number)
		}
		if !slices.Equal(got, versions) {
			t.Errorf("live: %v, want %v", got, versions)
		}
	}
	ensure(1, 1)
	ensure(1, 1) // nothing to do
	want[1].Limits.Timeout = time.Second
	ensure(1, 2) // the same bytes with other limits are another version
	want[0].Module = []byte("three")
	ensure(2, 2)
	want[0].Module = []byte("one")
	ensure(1, 2) // back to a version that is there
	if n := rt.Admitted(); n != 4 {
		t.Errorf("admitted %d times, want 4", n)
	}
	infos, err := c.List(t.Context(), "acme")
	if err != nil || len(infos) != 2 || infos[0].Type != "hello" || infos[1].Type != "ml.*" || infos[1].Version != 1 {
		t.Errorf("list %+v (%v)", infos, err)
	}
	for _, bad := range []ConfiguredHandler{{Type: "a*b"}, {Type: ""}, {Type: "ml.*", Tenant: "acme"}, {Type: "x", Tenant: "*"}} {
		if err := c.EnsureConfigured(t.Context(), []ConfiguredHandler{bad}); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", bad, err)
		}
	}
}

func TestHostsThatStartTogetherConfigureTheSameHandlers(t *testing.T) {
	store := memq.New(memq.Options{})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			c := fresh(t, store, &hosttest.Runtime{}, func(o *Options) { o.Shared = true })
			if err := c.EnsureConfigured(t.Context(), []ConfiguredHandler{{Type: "a", Module: []byte("one")}, {Type: "b", Module: []byte("two")}}); err != nil {
				t.Errorf("host %d: %v", i, err)
			}
			if err := c.Start(t.Context()); err != nil {
				t.Error(err)
			}
			<-c.Loaded()
			for _, typ := range []string{"a", "b"} {
				if v, err := c.o.Registry.Resolve("acme", typ); err != nil || v.Number != 1 {
					t.Errorf("host %d: %s is served by %+v (%v)", i, typ, v, err)
				}
			}
			// One that loses the race for a live alias may prepare the winner's version a second time.
			prepared := map[string]bool{}
			for _, v := range c.o.Runtimes[0].(*hosttest.Runtime).Prepared() {
				prepared[v.SHA256] = true
			}
			if len(prepared) != 2 {
				t.Errorf("host %d prepared %v, want both versions", i, prepared)
			}
			c.Stop()
		})
	}
	wg.Wait()
	for _, typ := range []string{"a", "b"} {
		recs, err := store.ListRecords(t.Context(), kindVersion, "/"+typ+"/", "", 0)
		if err != nil || len(recs) != 1 {
			t.Errorf("%d versions of %s (%v), want 1", len(recs), typ, err)
		}
	}
}

func TestADamagedVersionDoesNotKeepTheOthersFromTheirJobs(t *testing.T) {
	store := memq.New(memq.Options{})
	first := started(t, store, &hosttest.Runtime{}, nil)
	for _, typ := range []string{"bad", "good"} {
		upload(t, first, typ, typ)
		if _, err := first.SetLive(t.Context(), "acme", typ, 1); err != nil {
			t.Fatal(err)
		}
	}
	first.Stop()
	if _, err := store.PutRecord(t.Context(), kindVersion, versionKey("acme", "bad", 1), []byte("{"), queue.AnyRevision); err != nil {
		t.Fatal(err)
	}
	c := fresh(t, store, &hosttest.Runtime{}, nil)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	<-c.Loaded()
	if _, err := c.o.Registry.Resolve("acme", "good"); err != nil {
		t.Error(err)
	}
	if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "acme/bad") {
		t.Errorf("ready: %v, want the damaged one named", err)
	}
	// Its number is not given away again, and the next upload mends it.
	if info := upload(t, c, "bad", "again"); info.Version != 2 {
		t.Errorf("version %d, want 2", info.Version)
	}
}

func TestLifecycle(t *testing.T) {
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service {
		return fresh(t, memq.New(memq.Options{}), &hosttest.Runtime{}, func(o *Options) { o.Shared = true })
	})
}
