package queuetest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taskhost/taskhost/queue/queuetest"
)

// mutant is the model with one planted fault: in file, old (which must be there once) is replaced.
type mutant struct {
	name, file, old, new string
	// Which half of the suite must catch it; none named means both.
	only string
}

const (
	contract  = "Contract"
	histories = "Histories"
)

func mutants() []mutant {
	return []mutant{
		{name: "no token check", file: "record.go", old: "r.job.Token != ref.Token", new: "false"},
		{name: "ties to the last name", file: "view.go", old: "m.tag() < members[best].tag()", new: "m.tag() <= members[best].tag()"},
		{name: "banked credit", file: "view.go", old: "base: max(v, m.parked)", new: "base: m.parked"},
		{name: "leaving sheds debt", file: "view.go", old: "base: max(v, m.parked)", new: "base: v"},
		{name: "one V for all bands", file: "view.go", old: "m.follow(eligible[key], b.v,", new: "m.follow(eligible[key], v.v,"},
		{name: "a weight change jumps", file: "view.go", old: "m.base, m.n, m.weight = m.tag(), 0, weight", new: "m.weight = weight"},
		{name: "tenant weights ignored", file: "view.go", old: "s.scheduling.TenantWeight(name)", new: "1"},
		{name: "pause ignored", file: "limits.go", old: "s.settings(key).Paused || s.queueFull", new: "s.queueFull"},
		{name: "guard never reset", file: "view.go", old: "t.counters[p] = 0", new: "_ = p"},
		{name: "guard counts when nobody waits", file: "view.go", old: "if c.lowerWaits {", new: "if c.lowerWaits || true {"},
		{name: "a batch is charged once", file: "reserve.go", old: "v.charge(c, cost) //", new: "if len(batch) == 0 {\nv.charge(c, cost)\n} //"},
		{name: "expired jobs are charged", file: "reserve.go", old: "if expired(r, now) {", new: "if expired(r, now) {\nv.charge(c, 1)"},
		{name: "expired jobs are delivered", file: "reserve.go", old: "if expired(r, now) {", new: "if false {"},
		{name: "double delivery", file: "reserve.go", old: "s.takeFromLine(r)", new: ""},
		{name: "max bytes off by one", file: "reserve.go", old: "> p.MaxBytes", new: ">= p.MaxBytes"},
		{name: "released job lost", file: "settle.go", old: "s.makeReady(r)\n\t\treturn true", new: "s.makeReady(r)"},
		{name: "yield to the front", file: "settle.go", old: "case st.Verb == queue.VerbYield:\n\t\ts.toTail(r)", new: "case st.Verb == queue.VerbYield:\n\t\ts.makeReady(r)\n\t\treturn true"},
		{name: "release to the tail", file: "lines.go", old: "slices.Insert(s.lines[keyOf(r)], 0, r)", new: "append(s.lines[keyOf(r)], r)"},
		{name: "a released batch is turned round", file: "lines.go", old: "b.reservation - a.reservation", new: "a.reservation - b.reservation"},
		{name: "a crash costs an attempt", file: "settle.go", old: "j.Attempt--\n\t\tj.Crashes++", new: "j.Crashes++"},
		{name: "one attempt too many", file: "settle.go", old: "j.Attempt >= queue.AttemptBudget", new: "j.Attempt > queue.AttemptBudget"},
		{name: "a cancel is not told", file: "settle.go", old: "if r.job.CancelRequested {", new: "if false {"},
		{name: "a cancelled job runs again", file: "settle.go", old: "cancelled := j.CancelRequested &&", new: "cancelled := false &&"},
		{name: "reaped late", file: "maintain.go", old: "!now.Before(r.job.LeaseUntil)", new: "now.After(r.job.LeaseUntil)"},
		{name: "a live lease reaped", file: "maintain.go", old: "r.job.State == queue.StateRunning && !now.Before(r.job.LeaseUntil)", new: "r.job.State == queue.StateRunning"},
		{name: "due early", file: "enqueue.go", old: "queue.After(now, delay)", new: "queue.Millis(now.Add(delay))"},
		{name: "any request matches an idempotency key", file: "enqueue.go", old: "first.fingerprint != fingerprint", new: "false"},
		{name: "idempotency keys never end", file: "enqueue.go", old: "ok && now.Before(first.until)", new: "ok"},
		{name: "unique keys of all tenants are one", file: "enqueue.go", old: "return s.unique[tenantKey{tenant, key}]", new: "for k, r := range s.unique {\nif k.key == key {\nreturn r\n}\n}\nreturn nil"},
		{name: "a dead job holds its unique key", file: "record.go", old: "\ts.freeUnique(r)\n\tif !s.scheduling", new: "\tif state != queue.StateDead {\ns.freeUnique(r)\n}\n\tif !s.scheduling"},
		{name: "another tenant's job is found", file: "record.go", old: "r.job.Tenant == tenant", new: "true"},
		{name: "replay keeps the attempts", file: "dead.go", old: "r.job.Attempt, r.job.Crashes, r.job.Interruptions = 0, 0, 0", new: ""},
		{name: "log lines unescaped", file: "notes.go", old: "queue.EscapeLogMessage(line.Message)", new: "line.Message"},
		{name: "delete keeps the idempotency key", file: "jobs.go", old: "first.id == id", new: "first.id == id && false", only: contract},
		{name: "a removed job is not counted", file: "record.go", old: "s.removed++", new: ""},
		{name: "lost wake-up", file: "record.go", old: "r.signalWatches()\n\ts.broadcast()", new: "r.signalWatches()", only: contract},
		{name: "WaitDue sleeps through", file: "wait.go", old: "return wait <= 0, wait, nil", new: "return wait <= 0, -1, nil", only: contract},
		{name: "due jobs by creation", file: "maintain.go", old: "return a.job.NextRunAt.Compare(b.job.NextRunAt)", new: "return 0"},
		{name: "due before expired", file: "maintain.go", old: "report.Expired = s.expire(now)\n\treport.Promoted = s.promote(now)", new: "report.Promoted = s.promote(now)\n\treport.Expired = s.expire(now)"},
		{name: "kept though not to be kept", file: "record.go", old: "age == 0 && !forever", new: "false && age == 0 && !forever"},
		{name: "until started is until finished", file: "reserve.go", old: "r.job.Unique.Until == queue.UniqueUntilStarted", new: "false"},
		{name: "a settle frees the key of another", file: "enqueue.go", old: "if s.unique[key] == r {", new: "if true {"},
		{name: "replay to the old queue", file: "dead.go", old: "r.job.Queue = toQueue", new: ""},
		{name: "a named lease has two holders", file: "records.go", old: "held.holder != holder {", new: "false && held.holder != holder {"},
		{name: "records are overwritten", file: "records.go", old: "ifRevision != queue.AnyRevision && ifRevision != have", new: "false && have > 0"},
		{name: "a cap of a queue is ignored", file: "limits.go", old: "|| s.queueFull(key) ", new: ""},
		{name: "one more than the cap", file: "limits.go", old: "s.runningIn(key) >= limit", new: "s.runningIn(key) > limit"},
		{name: "a cap of a tenant is ignored", file: "view.go", old: " && !s.tenantFull(name)", new: ""},
		{name: "one more than the tenant's cap", file: "limits.go", old: "s.runningOf(tenant) >= limit", new: "s.runningOf(tenant) > limit"},
		{name: "tenants share a queue's cap", file: "limits.go", old: "return j.Tenant == key.tenant && j.Queue == key.queue })", new: "return j.Queue == key.queue })"},
		{name: "a batch is capped once", file: "reserve.go", old: "s.start(r, p, token, now)\n\t\ts.syncViews()", new: "s.start(r, p, token, now)\n\t\tif len(s.lines[c.lineKey]) == 0 {\ns.syncViews()\n}", only: contract},
		{name: "a rate is ignored", file: "limits.go", old: " || now.Before(s.rateFrom(key))", new: ""},
		{name: "a rate has no slack", file: "limits.go", old: "queue.RateSlack.Milliseconds()", new: "0"},
		{name: "a rate saves up", file: "limits.go", old: "b != nil && b.full.Cmp(full) > 0", new: "b != nil"},
		{name: "a rate rounds down", file: "limits.go", old: "if !from.IsInt() {", new: "if false {", only: histories},
		{name: "a rate is not charged for what came back", file: "reserve.go", old: "s.chargeRate(keyOf(r).queueKey, now)", new: "if r.job.StartedAt.IsZero() {\ns.chargeRate(keyOf(r).queueKey, now)\n}"},
		{name: "a new rate keeps the old debt", file: "limits.go", old: "delete(s.buckets, key)", new: "_ = b"},
		{name: "the time of a rate does not wake", file: "wait.go", old: "return false, max(0, next.Sub(s.clock.Now())), nil", new: "_ = next\n\t\treturn false, -1, nil", only: contract},
		{name: "a concurrency key is ignored", file: "reserve.go", old: "slot.key != \"\" && s.freeSlots(slot) <= 0", new: "slot.key != \"\" && false"},
		{name: "one more than the key's cap", file: "reserve.go", old: "s.freeSlots(slot) <= 0", new: "s.freeSlots(slot) < 0"},
		{name: "jobs without a key share one", file: "reserve.go", old: "slot.key != \"\" && ", new: ""},
		{name: "keys of all queues are one", file: "limits.go", old: "return slotOf(j) == key })", new: "return j.Tenant == key.tenant && j.ConcurrencyKey == key.key })"},
		{name: "stepping aside is charged", file: "reserve.go", old: "r.aside, r.back = true, false", new: "r.aside, r.back = true, false\nv.charge(c, 1)"},
		{name: "nobody comes back", file: "limits.go", old: "r.aside, r.back = false, true", new: "_ = r"},
		{name: "one comes back for ever", file: "limits.go", old: "s.freeSlots(key)-back[key]", new: "1-back[key]", only: histories},
		{name: "the lowest priority comes back first", file: "limits.go", old: "cmp.Compare(b.job.Priority, a.job.Priority)", new: "cmp.Compare(a.job.Priority, b.job.Priority)"},
		{name: "the last one aside comes back first", file: "limits.go", old: "\t\tcome := max(", new: "\t\tslices.Reverse(list)\n\t\tcome := max("},
		{name: "no end of stepping aside", file: "reserve.go", old: "aside == queue.AsideMax", new: "false", only: contract},
		{name: "a job aside is not ahead", file: "explain.go", old: "o.job.State == queue.StateReady &&", new: "o.job.State == queue.StateReady && !o.aside &&"},
		{name: "estimates are never corrected", file: "settle.go", old: "s.correct(measured)", new: ""},
		{name: "a correction is credit", file: "cost.go", old: "if m.tag() < v {", new: "if false {"},
		{name: "who has left is not corrected", file: "cost.go", old: "m.parked = max(v, max(v, m.parked)+float64(by)/weight)", new: "_ = weight"},
		{name: "queues are not corrected", file: "cost.go", old: "lines[lineIn{m.view, m.lineKey}] += cost - m.estimate", new: "lines[lineIn{m.view, m.lineKey}] += 0"},
		{name: "tenants are not corrected", file: "cost.go", old: "tenants[tenantIn{m.view, m.tenant}] += cost - m.estimate", new: ""},
		{name: "estimates stay as they were first", file: "cost.go", old: "s.costs[key] = old + total[key] - k*(old/8)", new: "s.costs[key] = old", only: histories},
		{name: "many at once are learned from as one", file: "cost.go", old: "old == 0 || k >= 8", new: "old == 0", only: contract},
		{name: "the first job of a queue costs nothing", file: "cost.go", old: "return clampCost(unit)", new: "return 1"},
		{name: "the unit is ignored", file: "view.go", old: "s.settings(key.queueKey).Weight*s.scheduling.ChargeUnit()", new: "s.settings(key.queueKey).Weight"},
		{name: "switched off, what was learned is kept", file: "queues.go", old: "clear(s.costs)", new: "", only: histories},
		{name: "the token is shown", file: "record.go", old: "j.Token = \"\"", new: ""},
	}
}

// TestPlantedFaults proves the suite: each broken model must fail it. The broken copies exist only in an overlay of the
// build (go help build, -overlay); they are compiled into one test binary, of which each fault is one process.
func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	binary := buildMutants(t, mutants())
	for i, m := range mutants() {
		for _, half := range []string{contract, histories} {
			if m.only != "" && m.only != half {
				continue
			}
			t.Run(m.name+"/"+half, func(t *testing.T) {
				t.Parallel()
				cmd := exec.CommandContext(t.Context(), binary, "-test.run", fmt.Sprintf("^Test%s$/^m%02d$", half, i), "-test.timeout", "2m", "-test.parallel", "32")
				cmd.Dir = t.TempDir()
				out, err := cmd.CombinedOutput()
				if err == nil {
					t.Fatalf("the suite passes with the fault planted\n%s", out)
				}
				if !bytes.Contains(out, fmt.Appendf(nil, "--- FAIL: Test%s/m%02d", half, i)) && !bytes.Contains(out, []byte("panic: ")) {
					t.Fatalf("it did not fail by a test: %v\n%s", err, out)
				}
				if half == histories && !bytes.Contains(out, []byte(queuetest.SeedEnv+"=")) {
					t.Fatalf("the failure does not print its seed: %s", out)
				}
			})
		}
	}
	t.Run("the model itself passes", func(t *testing.T) {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), binary, "-test.run", "/^sound$", "-test.timeout", "2m")
		cmd.Dir = t.TempDir()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}

const mutantsPath = "github.com/taskhost/taskhost/queue/queuetest/internal/mutants"

// buildMutants writes the broken copies and one test package over them, and compiles it.
func buildMutants(t *testing.T, all []mutant) string {
	t.Helper()
	dir := t.TempDir()
	model, err := filepath.Abs("../memq")
	if err != nil {
		t.Fatal(err)
	}
	virtual, err := filepath.Abs("internal/mutants")
	if err != nil {
		t.Fatal(err)
	}
	overlay := map[string]string{}
	write := func(path string, text []byte) {
		file := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(virtual, filepath.FromSlash(path))] = file
	}
	sources, err := filepath.Glob(filepath.Join(model, "*.go"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no source of the model in %s: %v", model, err)
	}
	for i, m := range append(all, mutant{name: "sound"}) {
		planted := m.file == ""
		for _, source := range sources {
			name := filepath.Base(source)
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			if name == m.file {
				if n := bytes.Count(text, []byte(m.old)); n != 1 {
					t.Fatalf("%s: %q is %d times in %s, want once", m.name, m.old, n, m.file)
				}
				text = bytes.Replace(text, []byte(m.old), []byte(m.new), 1)
				planted = true
			}
			write(fmt.Sprintf("m%02d/%s", i, name), text)
		}
		if !planted {
			t.Fatalf("%s: the model has no file %s", m.name, m.file)
		}
	}
	write("mutants_test.go", mutantTests(len(all)))
	config, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, config, 0o644); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "mutants.test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlayFile, "-o", binary, mutantsPath)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return binary
}

// mutantTests is the source of the test package: TestContract/mNN and TestHistories/mNN for every mutant, and "sound" for
// the model as it is, which is the last copy.
func mutantTests(sound int) []byte {
	var b bytes.Buffer
	b.WriteString("package mutants\n\nimport (\n\t\"testing\"\n\n\t\"github.com/taskhost/taskhost/queue\"\n\t\"github.com/taskhost/taskhost/queue/queuetest\"\n")
	for i := range sound + 1 {
		fmt.Fprintf(&b, "\t%s \"%s/m%02d\"\n", fmt.Sprintf("m%02d", i), mutantsPath, i)
	}
	b.WriteString(")\n\ntype open = func(clock queue.Clock, limits queue.Limits) queue.Queue\n\nfunc all() map[string]open {\n\treturn map[string]open{\n")
	for i := range sound + 1 {
		name := fmt.Sprintf("m%02d", i)
		if i == sound {
			name = "sound"
		}
		fmt.Fprintf(&b, "\t\t%q: func(c queue.Clock, l queue.Limits) queue.Queue { return m%02d.New(m%02d.Options{Clock: c, Limits: l}) },\n", name, i, i)
	}
	b.WriteString(`	}
}

func TestContract(t *testing.T) {
	for name, open := range all() {
		t.Run(name, func(t *testing.T) {
			queuetest.Exercise(t, func(*testing.T) queuetest.Backend {
				clock := queuetest.NewFakeClock()
				return queuetest.Backend{Queue: open(clock, queue.Limits{}), Advance: clock.Advance}
			})
		})
	}
}

func TestHistories(t *testing.T) {
	for name, open := range all() {
		t.Run(name, func(t *testing.T) {
			queuetest.Histories(t, func(_ *testing.T, c queue.Clock, l queue.Limits) queue.Queue { return open(c, l) },
				1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24) // always the same: a fault is caught each time or never
		})
	}
}
`)
	return b.Bytes()
}
