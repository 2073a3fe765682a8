package luaexec

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// argNumber is a number as redis.call sends it: "%.17g".
func argNumber(f float64) string { return cNumber(f, 17) }

// cNumber is "%.<digits>g" of C.
func cNumber(f float64, digits int) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		if math.Signbit(f) {
			return "-nan"
		}
		return "nan"
	}
	return strconv.FormatFloat(f, 'g', digits, 64)
}

// scoreText is a score as Redis replies it.
func scoreText(f float64) string { return argNumber(f) }

// number reads a string as Lua does (strtod, or hexadecimal), with white space around it.
func number(s string) (float64, bool) {
	s = strings.Trim(s, " \t\n\r\v\f")
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || strings.ContainsRune(s, '_') {
		return 0, false
	}
	if h := strings.ToLower(digits); strings.HasPrefix(h, "0x") && !strings.ContainsAny(h, "p.") {
		n, err := strconv.ParseUint(h[2:], 16, 64)
		if s[0] == '-' {
			return -float64(n), err == nil
		}
		return float64(n), err == nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func luaToNumber(L *lua.LState) int {
	base := L.OptInt(2, 10)
	if base == 10 {
		switch v := L.CheckAny(1).(type) {
		case lua.LNumber:
			L.Push(v)
			return 1
		case lua.LString:
			if f, ok := number(string(v)); ok {
				L.Push(lua.LNumber(f))
				return 1
			}
		}
		L.Push(lua.LNil)
		return 1
	}
	if base < 2 || base > 36 {
		L.ArgError(2, "base out of range")
	}
	s := strings.ToLower(strings.TrimSpace(L.CheckString(1)))
	if base == 16 {
		s = strings.TrimPrefix(s, "0x")
	}
	n, err := strconv.ParseUint(s, base, 64)
	if err != nil {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LNumber(n))
	return 1
}

func luaToString(L *lua.LState) int {
	switch v := L.CheckAny(1).(type) {
	case lua.LNumber:
		L.Push(lua.LString(cNumber(float64(v), 14)))
	case lua.LString:
		L.Push(v)
	default:
		L.Push(lua.LString(v.String()))
	}
	return 1
}

// checkNumber takes an argument as a number, or as a string that is one.
func checkNumber(L *lua.LState, n int) float64 {
	switch v := L.Get(n).(type) {
	case lua.LNumber:
		return float64(v)
	case lua.LString:
		if f, ok := number(string(v)); ok {
			return f
		}
	}
	L.ArgError(n, "number expected, got "+L.Get(n).Type().String())
	return 0
}

func checkText(L *lua.LState, n int) string {
	switch v := L.Get(n).(type) {
	case lua.LNumber:
		return cNumber(float64(v), 14)
	case lua.LString:
		return string(v)
	}
	L.ArgError(n, "string expected, got "+L.Get(n).Type().String())
	return ""
}

// luaFormat is string.format: what C's printf does with the conversions that Lua allows, but q.
func luaFormat(L *lua.LState) int {
	format := L.CheckString(1)
	var b strings.Builder
	arg := 2
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		from := i
		for i++; i < len(format) && strings.IndexByte("-+ #0123456789.", format[i]) >= 0; i++ {
		}
		if i == len(format) {
			L.RaiseError("invalid option '%%' to 'format'")
		}
		spec, c := format[from:i], format[i]
		if c == '%' {
			b.WriteByte('%')
			continue
		}
		switch c {
		case 'd', 'i':
			fmt.Fprintf(&b, spec+"d", int64(checkNumber(L, arg)))
		case 'u':
			fmt.Fprintf(&b, spec+"d", uint64(int64(checkNumber(L, arg))))
		case 'x', 'X', 'o':
			fmt.Fprintf(&b, spec+string(c), uint64(int64(checkNumber(L, arg))))
		case 'c':
			b.WriteByte(byte(checkNumber(L, arg)))
		case 'e', 'E', 'f', 'g', 'G':
			f := checkNumber(L, arg)
			switch {
			case math.IsInf(f, 0) || math.IsNaN(f):
				fmt.Fprintf(&b, strings.TrimSuffix(strings.SplitN(spec, ".", 2)[0], "0")+"s", cNumber(f, 14))
			case (c == 'g' || c == 'G') && !strings.ContainsRune(spec, '.'):
				fmt.Fprintf(&b, spec+".6"+string(c), f)
			default:
				fmt.Fprintf(&b, spec+string(c), f)
			}
		case 's':
			fmt.Fprintf(&b, spec+"s", checkText(L, arg))
		default:
			L.RaiseError("invalid option '%%%s' to 'format'", string(c))
		}
		arg++
	}
	L.Push(lua.LString(b.String()))
	return 1
}

// unpackMost is where unpack gives up, as in Redis (LUAI_MAXCSTACK).
const unpackMost = 7999

func luaUnpackTable(L *lua.LState) int {
	t := L.CheckTable(1)
	from := L.OptInt(2, 1)
	var to int
	if L.Get(3) == lua.LNil {
		to = t.Len()
	} else {
		to = L.CheckInt(3)
	}
	if from > to {
		return 0
	}
	if to-from >= unpackMost {
		L.RaiseError("too many results to unpack")
	}
	for i := from; i <= to; i++ {
		L.Push(t.RawGetInt(i))
	}
	return to - from + 1
}
