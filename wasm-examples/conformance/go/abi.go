//go:build wasip1

package main

import "unsafe"

//go:wasmimport taskhost_v1 input_len
func inputLen() int64

//go:wasmimport taskhost_v1 input_read
func inputRead(off int64, buf unsafe.Pointer, size uint32) int64

//go:wasmimport taskhost_v1 output_write
func outputWrite(p unsafe.Pointer, size uint32) int64

//go:wasmimport taskhost_v1 fail
func fail(kind int32, retryAfterMS int64, p unsafe.Pointer, size uint32) int32

//go:wasmimport taskhost_v1 log
func hostLog(level int32, p unsafe.Pointer, size uint32) int32

//go:wasmimport taskhost_v1 progress
func progress(done, total int64, p unsafe.Pointer, size uint32) int32

//go:wasmimport taskhost_v1 checkpoint_put
func checkpointPut(p unsafe.Pointer, size uint32) int32

//go:wasmimport taskhost_v1 checkpoint_get
func checkpointGet(buf unsafe.Pointer, size uint32) int64

//go:wasmimport taskhost_v1 meta_get
func metaGet(key string, buf unsafe.Pointer, size uint32) int64

//go:wasmimport taskhost_v1 config_get
func configGet(key string, buf unsafe.Pointer, size uint32) int64

//go:wasmimport taskhost_v1 should_stop
func shouldStop() int32

//go:wasmimport taskhost_v1 host_has
func hostHas(name string) int32

//go:wasmexport taskhost_abi_v1
func marker() {}

//go:wasmexport taskhost_handle
func handle() int32 {
	buf := make([]byte, 64<<10)
	n := configGet("script", unsafe.Pointer(unsafe.SliceData(buf)), uint32(len(buf)))
	if n < 0 || n > int64(len(buf)) {
		panic("configuration \"script\" is missing or over 64 KiB")
	}
	return play(buf[:n])
}

// call makes the host call c with the bytes it passes and its buffer.
func (c call) call(arg, buf []byte) int64 {
	argAt, argLen := unsafe.Pointer(unsafe.SliceData(arg)), uint32(len(arg))
	bufAt, bufLen := unsafe.Pointer(unsafe.SliceData(buf)), uint32(len(buf))
	switch c.Call {
	case "input_len":
		return inputLen()
	case "input_read":
		return inputRead(c.Off, bufAt, bufLen)
	case "output_write":
		return outputWrite(argAt, argLen)
	case "fail":
		return int64(fail(c.Kind, c.RetryAfterMS, argAt, argLen))
	case "log":
		return int64(hostLog(c.Level, argAt, argLen))
	case "progress":
		return int64(progress(c.Done, c.Total, argAt, argLen))
	case "checkpoint_put":
		return int64(checkpointPut(argAt, argLen))
	case "checkpoint_get":
		return checkpointGet(bufAt, bufLen)
	case "meta_get":
		return metaGet(c.Key, bufAt, bufLen)
	case "config_get":
		return configGet(c.Key, bufAt, bufLen)
	case "should_stop":
		return int64(shouldStop())
	case "host_has":
		return int64(hostHas(c.Key))
	}
	panic("unknown call " + c.Call)
}
