// A reactor that plays a golden vector of the contract (abi/testdata/hostcalls.json) against the host that runs it. The vector
// is the handler's configuration value "script". The first answer that is not as written ends the module with a panic that
// tells the call, what came and what was wanted. It declares the host calls itself, so that it can say and return anything.
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
)

func main() {}

type script struct {
	Calls  []call
	Handle int32
}

type call struct {
	Call         string
	Off          int64
	Cap          int
	Kind, Level  int32
	RetryAfterMS int64 `json:"retry_after_ms"`
	Done, Total  int64
	Key          string
	Text, Hex    string
	Returns      int64
	Gives        *string
}

// play makes the calls and returns what taskhost_handle must return.
func play(text []byte) int32 {
	var s script
	if err := json.Unmarshal(text, &s); err != nil {
		panic(err)
	}
	for i, c := range s.Calls {
		arg := []byte(c.Text)
		if c.Hex != "" {
			var err error
			if arg, err = hex.DecodeString(c.Hex); err != nil {
				panic(err)
			}
		}
		// The buffer is longer than the host is told; the rest must stay untouched.
		const guard = 0xA5
		buf := make([]byte, c.Cap+8)
		for j := range buf {
			buf[j] = guard
		}
		got := c.call(arg, buf[:c.Cap])
		if got != c.Returns {
			panic(fmt.Sprintf("mismatch: call %d %s returned %d, want %d", i, c.Call, got, c.Returns))
		}
		copied := int(max(0, min(got, int64(c.Cap))))
		if c.Gives != nil && string(buf[:copied]) != *c.Gives {
			panic(fmt.Sprintf("mismatch: call %d %s gave %q, want %q", i, c.Call, buf[:copied], *c.Gives))
		}
		if c.Gives != nil {
			for _, b := range buf[copied:] {
				if b != guard {
					panic(fmt.Sprintf("mismatch: call %d %s wrote behind its %d bytes", i, c.Call, copied))
				}
			}
		}
	}
	return s.Handle
}
