package luaexec

import (
	"encoding/binary"
	"errors"
	"math"

	lua "github.com/yuin/gopher-lua"
)

// nesting is how deep cmsgpack packs tables; deeper ones become nil, as in Redis.
const nesting = 16

var (
	errShort = errors.New("Missing bytes in input.")   //nolint:staticcheck // the words of Redis
	errBad   = errors.New("Bad data format in input.") //nolint:staticcheck // the words of Redis
)

// pack appends a value as the cmsgpack of Redis does.
func pack(b []byte, v lua.LValue, depth int) []byte {
	switch v := v.(type) {
	case lua.LString:
		return append(packHead(b, len(v), 0xa0, 32, 0xd9, 0xda, 0xdb), v...)
	case lua.LBool:
		if v {
			return append(b, 0xc3)
		}
		return append(b, 0xc2)
	case lua.LNumber:
		return packNumber(b, float64(v))
	case *lua.LTable:
		if depth == nesting {
			return append(b, 0xc0)
		}
		return packTable(b, v, depth)
	}
	return append(b, 0xc0)
}

// packHead writes a length: in one byte when below small, else behind the code for 8 (0 = none), 16 or 32 bits.
func packHead(b []byte, n int, fix byte, small int, c8, c16, c32 byte) []byte {
	switch {
	case n < small:
		return append(b, fix|byte(n))
	case c8 != 0 && n <= math.MaxUint8:
		return append(b, c8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, c16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, c32), uint32(n))
}

func packNumber(b []byte, f float64) []byte {
	if f == math.Trunc(f) && f >= math.MinInt64 && f < math.MaxInt64 {
		return packInt(b, int64(f))
	}
	if f == float64(float32(f)) {
		return binary.BigEndian.AppendUint32(append(b, 0xca), math.Float32bits(float32(f)))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(f))
}

func packInt(b []byte, n int64) []byte {
	switch {
	case n >= 0 && n <= 127:
		return append(b, byte(n))
	case n >= 0 && n <= math.MaxUint8:
		return append(b, 0xcc, byte(n))
	case n >= 0 && n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
	case n >= 0 && n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	case n >= 0:
		return binary.BigEndian.AppendUint64(append(b, 0xcf), uint64(n))
	case n >= -32:
		return append(b, byte(n))
	case n >= math.MinInt8:
		return append(b, 0xd0, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n))
}

// packTable writes an array when the keys are exactly 1 to n, else a map.
func packTable(b []byte, t *lua.LTable, depth int) []byte {
	n, array := 0, true
	most := 0.0
	t.ForEach(func(k, _ lua.LValue) {
		n++
		f, ok := k.(lua.LNumber)
		if !ok || float64(f) <= 0 || float64(f) != math.Trunc(float64(f)) {
			array = false
			return
		}
		most = max(most, float64(f))
	})
	if array && most == float64(n) {
		b = packHead(b, n, 0x90, 16, 0, 0xdc, 0xdd)
		for i := 1; i <= n; i++ {
			b = pack(b, t.RawGetInt(i), depth+1)
		}
		return b
	}
	b = packHead(b, n, 0x80, 16, 0, 0xde, 0xdf)
	t.ForEach(func(k, v lua.LValue) { b = pack(pack(b, k, depth+1), v, depth+1) })
	return b
}

// unpacker reads what cmsgpack.unpack reads.
type unpacker struct {
	s     string
	depth int
}

func (u *unpacker) take(n int) (string, error) {
	if n < 0 || n > len(u.s) {
		return "", errShort
	}
	t := u.s[:n]
	u.s = u.s[n:]
	return t, nil
}

func (u *unpacker) uint(n int) (uint64, error) {
	t, err := u.take(n)
	var v uint64
	for i := range len(t) {
		v = v<<8 | uint64(t[i])
	}
	return v, err
}

func (u *unpacker) str(width, n int) (lua.LValue, error) {
	if width > 0 {
		l, err := u.uint(width)
		if err != nil {
			return nil, err
		}
		n = int(l)
	}
	t, err := u.take(n)
	return lua.LString(t), err
}

func (u *unpacker) table(width, n int, isMap bool) (lua.LValue, error) {
	if width > 0 {
		l, err := u.uint(width)
		if err != nil {
			return nil, err
		}
		n = int(l)
	}
	if n > len(u.s) { // every element takes at least a byte
		return nil, errShort
	}
	if u.depth++; u.depth > 1000 {
		return nil, errBad
	}
	defer func() { u.depth-- }()
	t := &lua.LTable{Metatable: lua.LNil}
	for i := range n {
		k := lua.LValue(lua.LNumber(i + 1))
		var err error
		if isMap {
			if k, err = u.value(); err != nil {
				return nil, err
			}
		}
		v, err := u.value()
		if err != nil {
			return nil, err
		}
		if f, ok := k.(lua.LNumber); k == lua.LNil || ok && f != f {
			return nil, errBad
		}
		if v != lua.LNil {
			t.RawSet(k, v)
		}
	}
	return t, nil
}

func (u *unpacker) value() (lua.LValue, error) {
	c, err := u.uint(1)
	if err != nil {
		return nil, err
	}
	number := func(v uint64, err error, f func(uint64) float64) (lua.LValue, error) { return lua.LNumber(f(v)), err }
	switch {
	case c <= 0x7f:
		return lua.LNumber(c), nil
	case c >= 0xe0:
		return lua.LNumber(int8(c)), nil
	case c <= 0x8f:
		return u.table(0, int(c&15), true)
	case c <= 0x9f:
		return u.table(0, int(c&15), false)
	case c <= 0xbf:
		return u.str(0, int(c&31))
	}
	switch c {
	case 0xc0:
		return lua.LNil, nil
	case 0xc2, 0xc3:
		return lua.LBool(c == 0xc3), nil
	case 0xca:
		v, err := u.uint(4)
		return number(v, err, func(v uint64) float64 { return float64(math.Float32frombits(uint32(v))) })
	case 0xcb:
		v, err := u.uint(8)
		return number(v, err, math.Float64frombits)
	case 0xcc, 0xcd, 0xce, 0xcf:
		v, err := u.uint(1 << (c - 0xcc))
		return number(v, err, func(v uint64) float64 { return float64(v) })
	case 0xd0:
		v, err := u.uint(1)
		return number(v, err, func(v uint64) float64 { return float64(int8(v)) })
	case 0xd1:
		v, err := u.uint(2)
		return number(v, err, func(v uint64) float64 { return float64(int16(v)) })
	case 0xd2:
		v, err := u.uint(4)
		return number(v, err, func(v uint64) float64 { return float64(int32(v)) })
	case 0xd3:
		v, err := u.uint(8)
		return number(v, err, func(v uint64) float64 { return float64(int64(v)) })
	case 0xd9, 0xda, 0xdb:
		return u.str(1<<(c-0xd9), 0)
	case 0xdc, 0xdd:
		return u.table(2<<(c-0xdc), 0, false)
	case 0xde, 0xdf:
		return u.table(2<<(c-0xde), 0, true)
	}
	return nil, errBad
}

func luaPack(L *lua.LState) int {
	var b []byte
	for i := 1; i <= L.GetTop(); i++ {
		b = pack(b, L.Get(i), 0)
	}
	if len(b) == 0 {
		L.RaiseError("bad argument #0 to 'pack' (MessagePack pack needs input.)")
	}
	L.Push(lua.LString(b))
	return 1
}

func luaUnpack(L *lua.LState) int {
	u := unpacker{s: L.CheckString(1)}
	n := 0
	for ; u.s != ""; n++ {
		v, err := u.value()
		if err != nil {
			L.RaiseError("%s", err.Error())
		}
		L.Push(v)
	}
	return n
}
