package luaexec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Error is an error reply: of Redis, or of a script (redis.error_reply, a table with the field err).
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

// RedisError marks the type as an error reply for the client library (redis.HasErrorPrefix).
func (Error) RedisError() {}

// status is a reply like OK, which Lua sees as a table with the field ok.
type status string

// machine is a Lua interpreter with what Redis offers to scripts. It runs one script at a time and can be used again.
type machine struct {
	L    *lua.LState
	env  *lua.LTable
	run  *run
	left int64 // steps
	done chan struct{}
}

// run is one run of a script.
type run struct {
	ctx   context.Context
	view  *view
	fatal error // ends the run whatever the script does with the error
}

// Sizes of the interpreter: values on its stack, and calls in one another.
const (
	registryMin  = 4 << 10
	registryMost = 256 << 10
	callsDeep    = 200
)

// allowed are the functions of the standard library that scripts may use: all that have no effect outside, and give the same
// result every time.
var allowed = map[string][]string{
	"":       {"assert", "error", "ipairs", "next", "pairs", "select", "type", "rawget", "rawset", "rawequal"},
	"string": {"byte", "char", "find", "gmatch", "gsub", "len", "lower", "match", "rep", "reverse", "sub", "upper"},
	"table":  {"concat", "maxn"},
	"math":   {"abs", "ceil", "floor", "fmod", "huge", "max", "min", "modf", "pi", "pow", "sqrt", "exp", "log"},
}

func newMachine() *machine {
	m := &machine{L: lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: callsDeep, RegistrySize: registryMin,
		RegistryMaxSize: registryMost, RegistryGrowStep: registryMin}), done: make(chan struct{})}
	close(m.done)
	L := m.L
	for _, lib := range []lua.LGFunction{lua.OpenBase, lua.OpenString, lua.OpenTable, lua.OpenMath} {
		L.Push(L.NewFunction(lib))
		L.Call(0, 0)
	}
	m.env = L.NewTable()
	for lib, names := range allowed {
		to := m.env
		if lib != "" {
			to = L.NewTable()
			m.env.RawSetString(lib, to)
		}
		for _, n := range names {
			if lib == "" {
				to.RawSetString(n, L.GetGlobal(n))
			} else {
				to.RawSetString(n, L.GetField(L.GetGlobal(lib), n))
			}
		}
	}
	set := func(lib string, functions map[string]lua.LGFunction) {
		to := m.env
		if lib != "" {
			var ok bool
			if to, ok = m.env.RawGetString(lib).(*lua.LTable); !ok {
				to = L.NewTable()
				m.env.RawSetString(lib, to)
			}
		}
		for n, f := range functions {
			to.RawSetString(n, L.NewFunction(f))
		}
	}
	set("", map[string]lua.LGFunction{"tonumber": luaToNumber, "tostring": luaToString, "unpack": luaUnpackTable, "pcall": luaPCall})
	set("string", map[string]lua.LGFunction{"format": luaFormat, "rep": luaRepeat})
	set("table", map[string]lua.LGFunction{"sort": luaSort, "insert": luaInsert, "remove": luaRemove})
	set("cmsgpack", map[string]lua.LGFunction{"pack": luaPack, "unpack": luaUnpack})
	set("struct", map[string]lua.LGFunction{"pack": luaStructPack, "unpack": luaStructUnpack})
	set("redis", map[string]lua.LGFunction{"call": m.call, "pcall": m.pcall, "send": m.send, "error_reply": reply("err"), "status_reply": reply("ok")})
	meta := L.NewTable()
	meta.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		L.RaiseError("Script attempted to access nonexistent global variable '%s'", L.Get(2).String())
		return 0
	}))
	meta.RawSetString("__newindex", L.NewFunction(func(L *lua.LState) int {
		L.RaiseError("Attempt to modify a readonly table")
		return 0
	}))
	m.env.Metatable = meta
	return m
}

// luaRepeat is string.rep with a bound.
func luaRepeat(L *lua.LState) int {
	s, n := L.CheckString(1), L.CheckInt(2)
	if n > 0 && len(s) > stringMost/n {
		L.RaiseError("resulting string too large: the limit is %d bytes", stringMost)
	}
	L.Push(lua.LString(strings.Repeat(s, max(n, 0))))
	return 1
}

// stringMost bounds what string.rep makes.
const stringMost = 64 << 20

func reply(field string) lua.LGFunction {
	return func(L *lua.LState) int {
		t := L.NewTable()
		t.RawSetString(field, lua.LString(strings.TrimPrefix(L.CheckString(1), "-")))
		L.Push(t)
		return 1
	}
}

// errSteps ends a script that runs away.
var errSteps = errors.New("the script ran for too many steps")

// The machine is the context of its interpreter, which asks for Done before every instruction: that counts the steps.

// Deadline implements context.Context.
func (m *machine) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context.
func (m *machine) Value(any) any { return nil }

// Done implements context.Context.
func (m *machine) Done() <-chan struct{} {
	m.left--
	if m.left < 0 {
		m.run.fail(errSteps)
		return m.done
	}
	if m.left&0xfff == 0 && m.run.ctx.Err() != nil {
		m.run.fail(context.Cause(m.run.ctx))
	}
	if m.run.fatal != nil {
		return m.done
	}
	return nil
}

// Err implements context.Context.
func (m *machine) Err() error { return m.run.fatal }

func (r *run) fail(err error) {
	if r.fatal == nil {
		r.fatal = err
	}
}

// exec runs a script and returns what it returned as a client would get it.
func (m *machine) exec(r *run, p *Program, keys, args []string, steps int64) (any, error) {
	m.run, m.left = r, steps
	L := m.L
	L.SetContext(m)
	defer func() {
		L.SetTop(0)
		m.run = nil
	}()
	m.env.RawSetString("KEYS", list(L, keys))
	m.env.RawSetString("ARGV", list(L, args))
	f := L.NewFunctionFromProto(p.proto)
	f.Env = m.env
	L.Push(f)
	err := L.PCall(0, 1, nil)
	if r.fatal != nil {
		return nil, r.fatal
	}
	if err != nil {
		return nil, scriptError(p.Name, err)
	}
	v, err := result(L.Get(-1), 0)
	L.Pop(1)
	if e, ok := err.(Error); ok { //nolint:errorlint // an error reply is never wrapped
		return nil, returnedError{e}
	}
	return v, err
}

func list(L *lua.LState, values []string) *lua.LTable {
	t := L.CreateTable(len(values), 0)
	for i, v := range values {
		t.RawSetInt(i+1, lua.LString(v))
	}
	return t
}

// scriptError is the error reply of a script that raised an error.
func scriptError(name string, err error) error {
	a, ok := errors.AsType[*lua.ApiError](err)
	if !ok {
		return fmt.Errorf("luaexec: %s: %w", name, err)
	}
	if t, ok := a.Object.(*lua.LTable); ok {
		if text, ok := t.RawGetString("err").(lua.LString); ok {
			return Error(string(text) + " script: " + name)
		}
	}
	if a.Object != nil {
		return Error("ERR " + a.Object.String() + " script: " + name)
	}
	return Error("ERR " + a.Error() + " script: " + name)
}

// result turns what a script returns into a reply: numbers lose their fraction, false and nil are nothing, a list ends at its first nil.
func result(v lua.LValue, depth int) (any, error) {
	if depth > 100 {
		return nil, Error("ERR reached lua stack limit")
	}
	switch v := v.(type) {
	case lua.LString:
		return string(v), nil
	case lua.LNumber:
		return int64(v), nil
	case lua.LBool:
		if v {
			return int64(1), nil
		}
	case *lua.LTable:
		if e, ok := v.RawGetString("err").(lua.LString); ok {
			return nil, Error(e)
		}
		if ok, isStatus := v.RawGetString("ok").(lua.LString); isStatus {
			return string(ok), nil
		}
		out := []any{}
		for i := 1; ; i++ {
			e := v.RawGetInt(i)
			if e == lua.LNil {
				return out, nil
			}
			x, err := result(e, depth+1)
			if err != nil {
				x = err // within a list an error is an element
			}
			out = append(out, x)
		}
	}
	return nil, nil //nolint:nilnil // nil is a reply
}

// value turns a reply into what a script sees.
func (m *machine) value(v any) lua.LValue {
	switch v := v.(type) {
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	case status:
		t := m.L.NewTable()
		t.RawSetString("ok", lua.LString(v))
		return t
	case Error:
		t := m.L.NewTable()
		t.RawSetString("err", lua.LString(v))
		return t
	case []any:
		t := m.L.CreateTable(len(v), 0)
		for i, e := range v {
			t.RawSetInt(i+1, m.value(e))
		}
		return t
	}
	return lua.LFalse
}

// command carries out one command of a script; drop says that the reply is not wanted.
func (m *machine) command(L *lua.LState, drop bool) (any, error) {
	n := L.GetTop()
	if n == 0 {
		return nil, Error("ERR Please specify at least one argument for this redis.call() call")
	}
	cmd := make([]string, n)
	for i := range n {
		switch v := L.Get(i + 1).(type) {
		case lua.LString:
			cmd[i] = string(v)
		case lua.LNumber:
			cmd[i] = argNumber(float64(v))
		default:
			return nil, Error("ERR Lua redis lib command arguments must be strings or integers")
		}
	}
	return m.run.view.do(cmd, drop)
}

// try is command, and ends the run on anything but an error reply.
func (m *machine) try(L *lua.LState, drop bool) any {
	v, err := m.command(L, drop)
	if err == nil {
		return v
	}
	if e, ok := err.(Error); ok { //nolint:errorlint // an error reply is never wrapped
		return e
	}
	m.run.fail(err)
	L.RaiseError("%s", err.Error())
	return nil
}

func (m *machine) call(L *lua.LState) int {
	v := m.try(L, false)
	if e, ok := v.(Error); ok {
		L.Error(m.value(e), 0)
	}
	L.Push(m.value(v))
	return 1
}

func (m *machine) send(L *lua.LState) int {
	if e, ok := m.try(L, true).(Error); ok {
		L.Error(m.value(e), 0)
	}
	return 0
}

func (m *machine) pcall(L *lua.LState) int {
	L.Push(m.value(m.try(L, false)))
	return 1
}
