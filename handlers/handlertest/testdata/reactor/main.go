// The conformance handler as a reactor, without an SDK. Its payloads are made by script.go.
package main

import (
	"strconv"
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
func hostFail(kind int32, after int64, p unsafe.Pointer, n uint32) int32

//go:wasmimport taskhost_v1 log
func hostLog(level int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport taskhost_v1 progress
func hostProgress(done, total int64, p unsafe.Pointer, n uint32) int32

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

func ref(b []byte) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))
}

func input() []byte {
	in := make([]byte, inputLen())
	p, n := ref(in)
	if got := inputRead(0, p, n); got != int64(len(in)) {
		panic("short input")
	}
	return in
}

func output(b []byte) int64 { p, n := ref(b); return outputWrite(p, n) }

func fail(kind int32, after int64, message string) int32 {
	p, n := ref([]byte(message))
	hostFail(kind, after, p, n)
	return kind
}

func report() {
	p, n := ref([]byte("running"))
	hostProgress(1, 2, p, n)
}

func get(f func(unsafe.Pointer, uint32, unsafe.Pointer, uint32) int64, key string) string {
	buf := make([]byte, 1024)
	k, kn := ref([]byte(key))
	p, n := ref(buf)
	if got := f(k, kn, p, n); got >= 0 {
		return string(buf[:got])
	}
	return "none"
}

var runs int

//go:wasmexport taskhost_abi_v1
func marker() {}

//go:wasmexport taskhost_handle
func handle() int32 {
	runs++
	head, data, _ := strings.Cut(string(input()), "\n")
	verb, arg, _ := strings.Cut(head, " ")
	number, _ := strconv.ParseInt(arg, 10, 64)
	switch verb {
	case "echo":
		output([]byte(data))
	case "exactly":
		output([]byte(strings.Repeat("x", int(number))))
	case "retry":
		return fail(1, -1, arg)
	case "permanent":
		return fail(2, -1, arg)
	case "defer":
		return fail(3, number, "later")
	case "log":
		for line := range strings.SplitSeq(data, "\n") {
			p, n := ref([]byte(line))
			hostLog(1, p, n)
		}
	case "progress":
		report()
	case "checkpoint":
		p, n := ref([]byte(data))
		output([]byte(strconv.Itoa(int(checkpointPut(p, n)))))
	case "read-checkpoint":
		n := checkpointGet(nil, 0)
		if n < 0 {
			return fail(2, -1, "no checkpoint")
		}
		buf := make([]byte, n)
		p, _ := ref(buf)
		checkpointGet(p, uint32(n))
		output(buf)
	case "metadata":
		var all []string
		for _, key := range []string{"job_id", "tenant", "queue", "type", "attempt", "max_attempts", "header.trace"} {
			all = append(all, get(metaGet, key))
		}
		output([]byte(strings.Join(append(all, get(configGet, "REGION")), " ")))
	case "sleep":
		report()
		time.Sleep(time.Duration(number) * time.Millisecond)
	case "spin":
		report()
		for {
			runs++
		}
	case "until-stopped":
		report()
		for shouldStop() == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		return fail(1, -1, "told to stop")
	case "count":
		output([]byte(strconv.Itoa(runs)))
	case "trap":
		panic("the handler broke down")
	case "hog":
		for hog := [][]byte{}; ; {
			hog = append(hog, make([]byte, 1<<20))
		}
	default:
		return fail(2, -1, "no verb "+verb)
	}
	return 0
}

func main() {}
