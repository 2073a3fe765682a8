// A reactor that uses every host call.
package main

import (
	"strings"
	"time"
	"unsafe"
)

//go:wasmimport taskhost_v1 input_len
func inputLen() int64

//go:wasmimport taskhost_v1 input_read
func inputRead(off int64, buf unsafe.Pointer, n uint32) int64

//go:wasmimport taskhost_v1 output_write
func outputWrite(p unsafe.Pointer, n uint32) int64

//go:wasmimport taskhost_v1 fail
func fail(kind int32, after int64, p unsafe.Pointer, n uint32) int32

//go:wasmimport taskhost_v1 log
func log(level int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport taskhost_v1 progress
func progress(done, total int64, p unsafe.Pointer, n uint32) int32

//go:wasmimport taskhost_v1 checkpoint_put
func checkpointPut(p unsafe.Pointer, n uint32) int32

//go:wasmimport taskhost_v1 checkpoint_get
func checkpointGet(p unsafe.Pointer, n uint32) int64

//go:wasmimport taskhost_v1 meta_get
func metaGet(k unsafe.Pointer, kn uint32, p unsafe.Pointer, n uint32) int64

//go:wasmimport taskhost_v1 config_get
func configGet(k unsafe.Pointer, kn uint32, p unsafe.Pointer, n uint32) int64

//go:wasmimport taskhost_v1 should_stop
func shouldStop() int32

//go:wasmimport taskhost_v1 deadline_ms
func deadlineMS() int64

//go:wasmimport taskhost_v1 host_has
func hostHas(p unsafe.Pointer, n uint32) int32

func at(s string) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))
}

func get(f func(unsafe.Pointer, uint32, unsafe.Pointer, uint32) int64, key string) string {
	k, kn := at(key)
	buf := make([]byte, 256)
	n := f(k, kn, unsafe.Pointer(&buf[0]), uint32(len(buf)))
	if n < 0 {
		return "error"
	}
	return string(buf[:n])
}

var initialised = map[string]int{}

func init() { initialised["runs"]++ }

//go:wasmexport taskhost_abi_v1
func marker() {}

//go:wasmexport taskhost_handle
func handle() int32 {
	in := make([]byte, inputLen())
	if len(in) > 0 {
		inputRead(0, unsafe.Pointer(&in[0]), uint32(len(in)))
	}
	verb, rest, _ := strings.Cut(string(in), " ")
	switch verb {
	case "all":
		p, n := at("half way")
		log(2, p, n)
		progress(1, 2, p, n)
		if checkpointPut(p, n) != 0 || get(func(_ unsafe.Pointer, _ uint32, p unsafe.Pointer, n uint32) int64 { return checkpointGet(p, n) }, "") != "half way" {
			return 2
		}
		out := get(metaGet, "job_id") + " " + get(metaGet, "attempt") + " " + get(metaGet, "header.trace") + " " + get(metaGet, "none") + " " + get(configGet, "REGION")
		p, n = at("log")
		if shouldStop() != 0 || deadlineMS() == 0 || hostHas(p, n) != 1 || hostHas(p, n-1) != 0 {
			return 2
		}
		p, n = at(out)
		outputWrite(p, n)
	case "defer":
		p, n := at("not yet")
		fail(3, 1500, p, n)
		return 3
	case "fail":
		p, n := at(rest)
		fail(1, 250, p, n)
		return 1
	case "count":
		initialised["runs"]++
		p, n := at(strings.Repeat("x", initialised["runs"]))
		outputWrite(p, n)
	case "leave":
		go func() {
			for {
				time.Sleep(time.Millisecond)
				p, n := at("left over")
				log(1, p, n)
			}
		}()
	}
	return 0
}

func main() {}
