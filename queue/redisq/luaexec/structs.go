package luaexec

import (
	"encoding/binary"
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"
)

// field is one item of a format of struct.pack.
type field struct {
	kind byte // i signed, I unsigned, f, d, s zero-terminated, c bytes, x padding
	size int  // -1: c0
	big  bool // the first byte is the highest
}

// layout reads a format of Redis' struct library without alignment (the library's default).
func layout(format string) ([]field, error) {
	big := false
	var list []field
	for i := 0; i < len(format); {
		c := format[i]
		i++
		size := func(otherwise int) int {
			n, digits := 0, 0
			for ; i < len(format) && format[i] >= '0' && format[i] <= '9' && digits < 9; i++ {
				n = n*10 + int(format[i]-'0')
				digits++
			}
			if digits == 0 {
				return otherwise
			}
			return n
		}
		switch c {
		case '>':
			big = true
		case '<', '=':
			big = false
		case ' ':
		case 'b':
			list = append(list, field{'i', 1, big})
		case 'B':
			list = append(list, field{'I', 1, big})
		case 'h':
			list = append(list, field{'i', 2, big})
		case 'H':
			list = append(list, field{'I', 2, big})
		case 'l':
			list = append(list, field{'i', 8, big})
		case 'L', 'T':
			list = append(list, field{'I', 8, big})
		case 'i', 'I':
			n := size(4)
			if n < 1 || n > 8 {
				return nil, fmt.Errorf("integral size %d is not from 1 to 8", n)
			}
			list = append(list, field{c, n, big})
		case 'f':
			list = append(list, field{'f', 4, big})
		case 'd':
			list = append(list, field{'d', 8, big})
		case 's':
			list = append(list, field{'s', 0, big})
		case 'x':
			list = append(list, field{'x', 1, big})
		case 'c':
			n := size(1)
			if n == 0 {
				n = -1
			}
			list = append(list, field{'c', n, big})
		default:
			return nil, fmt.Errorf("invalid format option '%c'", c)
		}
	}
	return list, nil
}

func putInt(b []byte, big bool, v uint64, size int) []byte {
	var buf [8]byte
	if big {
		binary.BigEndian.PutUint64(buf[:], v)
		return append(b, buf[8-size:]...)
	}
	binary.LittleEndian.PutUint64(buf[:], v)
	return append(b, buf[:size]...)
}

func luaStructPack(L *lua.LState) int {
	list, err := layout(L.CheckString(1))
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	var b []byte
	arg := 2
	for _, f := range list {
		if f.kind == 'x' {
			b = append(b, 0)
			continue
		}
		switch f.kind {
		case 'i', 'I':
			n := float64(L.CheckNumber(arg))
			v := uint64(int64(n))
			if n >= math.MaxInt64 {
				v = uint64(n)
			}
			b = putInt(b, f.big, v, f.size)
		case 'f':
			b = putInt(b, f.big, uint64(math.Float32bits(float32(L.CheckNumber(arg)))), 4)
		case 'd':
			b = putInt(b, f.big, math.Float64bits(float64(L.CheckNumber(arg))), 8)
		case 's':
			b = append(append(b, L.CheckString(arg)...), 0)
		case 'c':
			s := L.CheckString(arg)
			if f.size < 0 {
				f.size = len(s)
			}
			if len(s) < f.size {
				L.RaiseError("bad argument #%d to 'pack' (string too short)", arg)
			}
			b = append(b, s[:f.size]...)
		}
		arg++
	}
	L.Push(lua.LString(b))
	return 1
}

func luaStructUnpack(L *lua.LState) int {
	list, err := layout(L.CheckString(1))
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	s, at := L.CheckString(2), L.OptInt(3, 1)-1
	if at < 0 {
		L.RaiseError("offset must be 1 or greater")
	}
	n := 0
	push := func(v lua.LValue) {
		L.Push(v)
		n++
	}
	for _, f := range list {
		size := f.size
		if f.kind == 's' {
			size = 1
			for at+size-1 < len(s) && s[at+size-1] != 0 {
				size++
			}
		}
		if f.kind == 'c' && size < 0 { // the number before says how long
			if n == 0 {
				L.RaiseError("format 'c0' needs a previous size")
			}
			size = int(lua.LVAsNumber(L.Get(-1)))
			L.Pop(1)
			n--
		}
		if size < 0 || at > len(s) || size > len(s)-at {
			L.RaiseError("data string too short")
		}
		t := s[at : at+size]
		at += size
		var v uint64
		if f.kind != 'c' && f.kind != 's' {
			for i := range len(t) {
				k := i
				if !f.big {
					k = len(t) - 1 - i
				}
				v = v<<8 | uint64(t[k])
			}
		}
		switch f.kind {
		case 'i':
			shift := 64 - 8*size
			push(lua.LNumber(int64(v<<shift) >> shift))
		case 'I':
			push(lua.LNumber(v))
		case 'f':
			push(lua.LNumber(math.Float32frombits(uint32(v))))
		case 'd':
			push(lua.LNumber(math.Float64frombits(v)))
		case 's':
			push(lua.LString(t[:size-1]))
		case 'c':
			push(lua.LString(t))
		}
	}
	push(lua.LNumber(at + 1))
	return n
}
