package samples

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/taskhost/taskhost/abi"
)

// exercise runs the table of what the samples must do on a module.
func exercise(t *testing.T, module []byte) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for _, c := range []struct {
		typ, payload, attempt string
		code                  int32
		want                  string // result, or start of the failure's message
	}{
		{"hello", `{"name":"Ada"}`, "1", abi.HandleDone, `{"greeting":"Hello, Ada"}`},
		{"hello", ``, "1", abi.HandleDone, `{"greeting":"Hello, world"}`},
		{"hello", `{}`, "1", abi.HandleDone, `{"greeting":"Hello, world"}`},
		{"hello", ` { "name" : null } `, "1", abi.HandleDone, `{"greeting":"Hello, world"}`},
		{"hello", `{"name":""}`, "1", abi.HandleDone, `{"greeting":"Hello, "}`},
		{"hello", `{"name":"Zoë \"Z\" \u00e9\ud83d\ude00 \\ 😀"}`, "1", abi.HandleDone, `{"greeting":"Hello, Zoë \"Z\" \u00e9\ud83d\ude00 \\ 😀"}`},
		{"hello", `{"n\u0061me":"Ada"}`, "1", abi.HandleDone, `{"greeting":"Hello, Ada"}`},
		{"hello", `{"name":"first","a":[1,-2.5e+3,true,false,null,{"name":"inner"}],"name":"last"}`, "1", abi.HandleDone, `{"greeting":"Hello, last"}`},
		{"hello", `{"name":7}`, "1", abi.HandlePermanent, "name must be a string"},
		{"hello", `"Ada"`, "1", abi.HandlePermanent, "payload must be a JSON object"},
		{"hello", `{"name":"Ada"`, "1", abi.HandlePermanent, "payload must be a JSON object"},
		{"hello", `{"name":"Ada"}x`, "1", abi.HandlePermanent, "payload must be a JSON object"},
		{"hello", `{"name":"Ada",}`, "1", abi.HandlePermanent, "payload must be a JSON object"},
		{"hello", `{"name":"\x"}`, "1", abi.HandlePermanent, "payload must be a JSON object"},
		{"hello", `{"name":"\u00g0"}`, "1", abi.HandlePermanent, "payload must be a JSON object"},
		{"hello", "{\"name\":\"a\nb\"}", "1", abi.HandlePermanent, "payload must be a JSON object"},
		{"hello", "{\"name\":\"\xc0\xaf\"}", "1", abi.HandlePermanent, "payload must be a JSON object"},
		{"hello", "{\"name\":\"\xed\xa0\x80\"}", "1", abi.HandlePermanent, "payload must be a JSON object"},
		{"hello", `{"a":01}`, "1", abi.HandlePermanent, "payload must be a JSON object"},
		{"hello", `{"a":` + deep + `}`, "1", abi.HandlePermanent, "payload must be a JSON object"},
		{"hello", `{"name":"` + strings.Repeat("x", 70_000) + `"}`, "1", abi.HandlePermanent, "payload is over 65536 bytes"},
		{"sleep", `{"ms":20}`, "1", abi.HandleDone, `{"slept_ms":20}`},
		{"sleep", `{"ms":0}`, "1", abi.HandleDone, `{"slept_ms":0}`},
		{"sleep", `{"ms":3}`, "1", abi.HandleDone, `{"slept_ms":3}`},
		{"sleep", `{"ms":-1}`, "1", abi.HandlePermanent, "payload must be"},
		{"sleep", `{"ms":3600001}`, "1", abi.HandlePermanent, "payload must be"},
		{"sleep", `{"ms":"1"}`, "1", abi.HandlePermanent, "payload must be"},
		{"sleep", `{"ms":1.5}`, "1", abi.HandlePermanent, "payload must be"},
		{"flaky", `{"fail":2}`, "1", abi.HandleRetry, "attempt 1 fails, as asked for the first 2"},
		{"flaky", `{"fail":2}`, "2", abi.HandleRetry, "attempt 2 fails"},
		{"flaky", `{"fail":2}`, "3", abi.HandleDone, `{"attempts":3}`},
		{"flaky", ``, "1", abi.HandleRetry, "attempt 1 fails, as asked for the first 1"},
		{"flaky", `{"fail":0}`, "1", abi.HandleDone, `{"attempts":1}`},
		{"flaky", `[]`, "1", abi.HandlePermanent, "payload must be"},
		{"other", ``, "1", abi.HandlePermanent, "this module serves"},
	} {
		name := c.typ + " " + c.payload[:min(len(c.payload), 40)] + " #" + c.attempt
		t.Run(name, func(t *testing.T) {
			h := run(t, module, c.typ, c.attempt, c.payload, false)
			got := h.message
			if h.code == abi.HandleDone {
				got = string(h.output)
			}
			if h.code != c.code || !strings.HasPrefix(got, c.want) || (h.code == abi.HandleDone && got != c.want) {
				t.Errorf("got %d %q, want %d %q", h.code, got, c.code, c.want)
			}
		})
	}
	t.Run("progress and log", func(t *testing.T) {
		if h := run(t, module, "sleep", "1", `{"ms":50}`, false); h.reports != 10 || h.done != 50 || h.total != 50 || h.slept < 50*time.Millisecond {
			t.Errorf("%d reports, last %d of %d, slept %v; want 10, 50 of 50, 50 ms", h.reports, h.done, h.total, h.slept)
		}
		if h := run(t, module, "flaky", "2", `{"fail":1}`, false); len(h.log) != 1 || h.log[0] != "info attempt 2 succeeds" {
			t.Errorf("log %q", h.log)
		}
		if h := run(t, module, "flaky", "1", `{"fail":1}`, false); len(h.log) != 1 || !strings.HasPrefix(h.log[0], "warn attempt 1 fails") {
			t.Errorf("log %q", h.log)
		}
	})
	t.Run("stops when asked", func(t *testing.T) {
		if h := run(t, module, "sleep", "1", `{"ms":3600000}`, true); h.code != abi.HandleRetry || h.message != "asked to stop" {
			t.Errorf("got %d %q", h.code, h.message)
		}
	})
}

// host is a plain implementation of the host calls the module imports.
type host struct {
	typ, attempt, payload string
	stop                  bool

	code                 int32
	output               []byte
	message              string
	log                  []string
	reports, done, total int64
	slept                time.Duration
}

func run(t *testing.T, module []byte, typ, attempt, payload string, stop bool) *host {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a loop without end fails instead of hanging
	defer cancel()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCloseOnContextDone(true))
	defer rt.Close(context.WithoutCancel(ctx))
	h := &host{typ: typ, attempt: attempt, payload: payload, stop: stop}
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	if _, err := h.export(rt).Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	sleep := func(ns int64) { h.slept += time.Duration(ns) } // the sum is what counts, not the wait
	m, err := rt.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithNanosleep(sleep))
	if err != nil {
		t.Fatal(err)
	}
	if m.ExportedFunction(abi.ExportMarker) == nil {
		t.Fatalf("export %s is missing", abi.ExportMarker)
	}
	code, err := m.ExportedFunction(abi.ExportHandle).Call(ctx)
	if err != nil {
		t.Fatal(err)
	}
	h.code = int32(code[0])
	return h
}

func (h *host) export(rt wazero.Runtime) wazero.HostModuleBuilder {
	text := func(m api.Module, ptr, size uint32) string {
		b, ok := m.Memory().Read(ptr, size)
		if !ok {
			panic("range outside memory")
		}
		return string(b)
	}
	give := func(m api.Module, s string, buf, size uint32) int64 {
		if !m.Memory().WriteString(buf, s[:min(len(s), int(size))]) {
			panic("range outside memory")
		}
		return int64(len(s))
	}
	b := rt.NewHostModuleBuilder(abi.ModuleHost)
	export := func(name string, f any) { b = b.NewFunctionBuilder().WithFunc(f).Export(name) }
	export("input_len", func() int64 { return int64(len(h.payload)) })
	export("input_read", func(_ context.Context, m api.Module, off int64, buf, size uint32) int64 {
		rest := h.payload[off:]
		return min(give(m, rest, buf, size), int64(size))
	})
	export("output_write", func(_ context.Context, m api.Module, p, size uint32) int64 {
		h.output = append(h.output, text(m, p, size)...)
		return int64(len(h.output))
	})
	export("fail", func(_ context.Context, m api.Module, _ int32, _ int64, p, size uint32) int32 {
		h.message = text(m, p, size)
		return 0
	})
	export("log", func(_ context.Context, m api.Module, level int32, p, size uint32) int32 {
		h.log = append(h.log, abi.LevelName(level)+" "+text(m, p, size))
		return 0
	})
	export("progress", func(_ context.Context, _ api.Module, done, total int64, _, _ uint32) int32 {
		h.reports, h.done, h.total = h.reports+1, done, total
		return 0
	})
	export("meta_get", func(_ context.Context, m api.Module, key, keyLen, buf, size uint32) int64 {
		switch text(m, key, keyLen) {
		case abi.MetaType:
			return give(m, h.typ, buf, size)
		case abi.MetaAttempt:
			return give(m, h.attempt, buf, size)
		}
		return int64(abi.ErrNotFound)
	})
	export("should_stop", func() int32 {
		if h.stop && h.slept > 0 {
			return 1
		}
		return 0
	})
	return b
}
