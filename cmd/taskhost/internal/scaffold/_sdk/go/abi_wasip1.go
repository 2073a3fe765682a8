//go:build wasip1

package guest

import "unsafe"

// The imports of module taskhost_v1; see abi/SPEC.md §4. A string is passed as pointer and length.

//go:wasmimport taskhost_v1 input_len
func hostInputLen() int64

//go:wasmimport taskhost_v1 input_read
func hostInputRead(off int64, buf unsafe.Pointer, size uint32) int64

//go:wasmimport taskhost_v1 output_write
func hostOutputWrite(p unsafe.Pointer, size uint32) int64

//go:wasmimport taskhost_v1 fail
func hostFail(kind int32, retryAfterMS int64, message string) int32

//go:wasmimport taskhost_v1 log
func hostLog(level int32, message string) int32

//go:wasmimport taskhost_v1 progress
func hostProgress(done, total int64, message string) int32

//go:wasmimport taskhost_v1 checkpoint_put
func hostCheckpointPut(p unsafe.Pointer, size uint32) int32

//go:wasmimport taskhost_v1 checkpoint_get
func hostCheckpointGet(buf unsafe.Pointer, size uint32) int64

//go:wasmimport taskhost_v1 meta_get
func hostMetaGet(key string, buf unsafe.Pointer, size uint32) int64

//go:wasmimport taskhost_v1 config_get
func hostConfigGet(key string, buf unsafe.Pointer, size uint32) int64

//go:wasmimport taskhost_v1 should_stop
func hostShouldStop() int32

//go:wasmimport taskhost_v1 deadline_ms
func hostDeadlineMS() int64

//go:wasmimport taskhost_v1 host_has
func hostHostHas(name string) int32

//go:wasmexport taskhost_abi_v1
func exportMarker() {}

//go:wasmexport taskhost_handle
func exportHandle() int32 { return Serve(imports{}, registered) }

// imports is the real host.
type imports struct{}

func (imports) InputLen() int64 { return hostInputLen() }
func (imports) InputRead(off int64, buf []byte) int64 {
	return hostInputRead(off, pointer(buf), uint32(len(buf)))
}
func (imports) OutputWrite(p []byte) int64 { return hostOutputWrite(pointer(p), uint32(len(p))) }
func (imports) Fail(kind int32, retryAfterMS int64, message string) int32 {
	return hostFail(kind, retryAfterMS, message)
}
func (imports) Log(level int32, message string) int32 { return hostLog(level, message) }
func (imports) Progress(done, total int64, message string) int32 {
	return hostProgress(done, total, message)
}
func (imports) CheckpointPut(p []byte) int32 { return hostCheckpointPut(pointer(p), uint32(len(p))) }
func (imports) CheckpointGet(buf []byte) int64 {
	return hostCheckpointGet(pointer(buf), uint32(len(buf)))
}
func (imports) MetaGet(key string, buf []byte) int64 {
	return hostMetaGet(key, pointer(buf), uint32(len(buf)))
}
func (imports) ConfigGet(key string, buf []byte) int64 {
	return hostConfigGet(key, pointer(buf), uint32(len(buf)))
}
func (imports) ShouldStop() int32         { return hostShouldStop() }
func (imports) DeadlineMS() int64         { return hostDeadlineMS() }
func (imports) HostHas(name string) int32 { return hostHostHas(name) }

func pointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
