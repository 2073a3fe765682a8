package guest

// Host is the host's side of the contract, one method per function of the import module taskhost_v1. Inside a WebAssembly
// module it is the real host; in tests it is a *guesttest.Host. Handlers use [Job] and do not need it.
//
// A method that takes buf copies at most len(buf) bytes and returns the full length of the data, or a negative [Errno].
type Host interface {
	InputLen() int64
	InputRead(off int64, buf []byte) int64 // returns the bytes copied, 0 at the end
	OutputWrite(p []byte) int64            // returns the new length of the result
	Fail(kind int32, retryAfterMS int64, message string) int32
	Log(level int32, message string) int32
	Progress(done, total int64, message string) int32
	CheckpointPut(p []byte) int32
	CheckpointGet(buf []byte) int64
	MetaGet(key string, buf []byte) int64
	ConfigGet(key string, buf []byte) int64
	ShouldStop() int32
	DeadlineMS() int64
	HostHas(name string) int32
}

// What a handler's module answers to the host.
const (
	codeDone      int32 = 0
	codeRetry     int32 = 1
	codePermanent int32 = 2
	codeDefer     int32 = 3
)

// Errno is an error of a host call.
type Errno int64

// The errnos of the contract.
const (
	ErrDenied      Errno = -1 // not granted to this handler
	ErrNotFound    Errno = -2 // no such key or checkpoint
	ErrInvalid     Errno = -3 // an argument is out of range or not UTF-8
	ErrTooLarge    Errno = -4 // over a size limit
	ErrLimit       Errno = -5 // over a count or rate limit
	ErrCancelled   Errno = -6 // the attempt is being stopped
	ErrUnavailable Errno = -7 // the host cannot do it now
	ErrUnsupported Errno = -8 // the host does not offer it
)

// Error says what the errno means.
func (e Errno) Error() string {
	switch e {
	case ErrDenied:
		return "denied"
	case ErrNotFound:
		return "not found"
	case ErrInvalid:
		return "invalid argument"
	case ErrTooLarge:
		return "too large"
	case ErrLimit:
		return "limit exceeded"
	case ErrCancelled:
		return "cancelled"
	case ErrUnavailable:
		return "unavailable"
	case ErrUnsupported:
		return "unsupported"
	}
	return "host error " + itoa(int64(e))
}

// readAll calls read with growing buffers until the whole value fits. first is the size of the first buffer in bytes.
func readAll(first int, read func(buf []byte) int64) ([]byte, error) {
	buf := make([]byte, first)
	for {
		n := read(buf)
		if n < 0 {
			return nil, Errno(n)
		}
		if n <= int64(len(buf)) {
			return buf[:n], nil
		}
		buf = make([]byte, n)
	}
}
