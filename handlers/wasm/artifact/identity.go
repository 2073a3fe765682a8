package artifact

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"
)

// Identity names everything compiled code depends on. Two equal identities have interchangeable artifacts.
type Identity struct {
	SHA256   string `json:"sha256"`   // hex, of the uploaded bytes
	Rewriter string `json:"rewriter"` // version of what changes the module before it is compiled
	Engine   string `json:"engine"`   // engine, its version and options
	Arch     string `json:"arch"`     // GOARCH
	CPU      string `json:"cpu"`      // features of the processor that the engine uses
}

// Key is the artifact's name: sha256, in hex, over the fields, each with its length before it.
func (id Identity) Key() string {
	h := sha256.New()
	for _, field := range []string{"taskhost artifact 1", id.SHA256, id.Rewriter, id.Engine, id.Arch, id.CPU} {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(field)))
		h.Write(n[:])
		h.Write([]byte(field))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ThisMachine is the identity of code compiled here from a module, given its hash and what rewrites and compiles it.
func ThisMachine(sha256, rewriter, engine string) Identity {
	return Identity{SHA256: sha256, Rewriter: rewriter, Engine: engine, Arch: runtime.GOARCH, CPU: cpuFeatures()}
}

// cpuFeatures lists the features that decide what code the engine writes.
func cpuFeatures() string {
	var on []string
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"sse4.1", cpu.X86.HasSSE41},
		{"bmi1", cpu.X86.HasBMI1},
		{"bmi2", cpu.X86.HasBMI2},
		{"popcnt", cpu.X86.HasPOPCNT},
		{"atomics", cpu.ARM64.HasATOMICS},
	} {
		if f.has {
			on = append(on, f.name)
		}
	}
	return strings.Join(on, "+")
}

// ValidKey reports whether key has the form of a key: 64 hexadecimal digits, lower case.
func ValidKey(key string) bool {
	return len(key) == 64 && strings.Trim(key, "0123456789abcdef") == ""
}
