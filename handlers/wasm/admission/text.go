package admission

import (
	"fmt"
	"strconv"
	"strings"
)

// signature writes a function type as text: "(i32, i64) -> i32", "() -> ()".
func signature(params, results []byte) string {
	return signatureOf(typeNames(params), typeNames(results))
}

func signatureOf(params, results []string) string {
	s := "(" + strings.Join(params, ", ") + ") -> "
	if len(results) == 1 {
		return s + results[0]
	}
	return s + "(" + strings.Join(results, ", ") + ")"
}

func typeNames(types []byte) []string {
	out := make([]string, len(types))
	for i, t := range types {
		switch t {
		case typeI32:
			out[i] = "i32"
		case typeI64:
			out[i] = "i64"
		case typeF32:
			out[i] = "f32"
		case typeF64:
			out[i] = "f64"
		case typeV128:
			out[i] = "v128"
		case typeFuncRef:
			out[i] = "funcref"
		case typeExternRef:
			out[i] = "externref"
		}
	}
	return out
}

func kindName(kind byte) string {
	switch kind {
	case kindFunc:
		return "function"
	case kindTable:
		return "table"
	case kindMemory:
		return "memory"
	case kindGlobal:
		return "global"
	}
	return "tag"
}

// show makes a module's own name fit to print: control characters, spaces and the like are escaped.
func show(name []byte) string {
	for _, c := range string(name) {
		if c <= ' ' || c == '"' || c == ',' || c == 0x7f || !strconv.IsPrint(c) {
			return strconv.QuoteToASCII(string(name))
		}
	}
	if len(name) == 0 {
		return `""`
	}
	return string(name)
}

// bytesText writes a size in the unit that fits.
func bytesText(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
