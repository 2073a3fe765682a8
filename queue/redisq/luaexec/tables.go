package luaexec

import (
	"sort"

	lua "github.com/yuin/gopher-lua"
)

// Functions on tables that count up to the last value that is not nil, as #t does: the interpreter's own take a nil that was assigned
// behind the end for an element.

// luaPCall is pcall as Redis has it: of an error that is a table with err, the text of err.
func luaPCall(L *lua.LState) int {
	L.CheckAny(1)
	err := L.PCall(L.GetTop()-1, lua.MultRet, nil)
	if err == nil {
		L.Insert(lua.LTrue, 1)
		return L.GetTop()
	}
	L.Push(lua.LFalse)
	L.Push(raised(err))
	return 2
}

// raised is what an error was raised with.
func raised(err error) lua.LValue {
	a, ok := err.(*lua.ApiError) //nolint:errorlint // PCall returns it as it is
	if !ok || a.Object == nil {
		return lua.LString(err.Error())
	}
	if t, ok := a.Object.(*lua.LTable); ok {
		if text, ok := t.RawGetString("err").(lua.LString); ok {
			return text
		}
	}
	return a.Object
}

// sorter sorts a list with a function of the script.
type sorter struct {
	L    *lua.LState
	list []lua.LValue
	less *lua.LFunction
}

func (s sorter) Len() int      { return len(s.list) }
func (s sorter) Swap(i, j int) { s.list[i], s.list[j] = s.list[j], s.list[i] }
func (s sorter) Less(i, j int) bool {
	if s.less == nil {
		return s.L.LessThan(s.list[i], s.list[j])
	}
	s.L.Push(s.less)
	s.L.Push(s.list[i])
	s.L.Push(s.list[j])
	s.L.Call(2, 1)
	v := s.L.Get(-1)
	s.L.Pop(1)
	return lua.LVAsBool(v)
}

func luaSort(L *lua.LState) int {
	t := L.CheckTable(1)
	s := sorter{L: L, list: make([]lua.LValue, t.Len())}
	if L.Get(2) != lua.LNil {
		s.less = L.CheckFunction(2)
	}
	for i := range s.list {
		s.list[i] = t.RawGetInt(i + 1)
	}
	sort.Sort(s)
	for i, v := range s.list {
		t.RawSetInt(i+1, v)
	}
	return 0
}

func luaInsert(L *lua.LState) int {
	t := L.CheckTable(1)
	at, v := t.Len()+1, L.Get(2)
	if L.GetTop() == 3 {
		at, v = L.CheckInt(2), L.Get(3)
		for i := t.Len(); i >= at; i-- {
			t.RawSetInt(i+1, t.RawGetInt(i))
		}
	} else if L.GetTop() != 2 {
		L.RaiseError("wrong number of arguments to 'insert'")
	}
	t.RawSetInt(at, v)
	return 0
}

func luaRemove(L *lua.LState) int {
	t := L.CheckTable(1)
	n := t.Len()
	at := L.OptInt(2, n)
	if at < 1 || at > n {
		return 0
	}
	L.Push(t.RawGetInt(at))
	for i := at; i < n; i++ {
		t.RawSetInt(i, t.RawGetInt(i+1))
	}
	t.RawSetInt(n, lua.LNil)
	return 1
}
