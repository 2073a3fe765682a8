package artifact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/taskhost/taskhost/handlers"
)

// Names inside an artifact.
const (
	ModuleFile   = "module.wasm"
	LinesFile    = "lines.wasm" // line information, see package srcline; absent when there is none
	CacheDir     = "cache"
	manifestFile = "manifest.json"
	macFile      = "manifest.mac"
)

// Bounds of an artifact.
const (
	maxFiles         = 64
	maxBytes   int64 = 2 << 30 // all files together
	maxName          = 255
	maxDepth         = 4
	maxControl int64 = 1 << 20 // manifest.json
	formatNow        = 1
)

// Manifest says what an artifact is and holds.
type Manifest struct {
	Format   int             `json:"format"`
	Identity Identity        `json:"identity"`
	Kind     handlers.Kind   `json:"kind"`
	Memory   handlers.Memory `json:"memory"` // as declared, not clamped to any limit
	Imports  []string        `json:"imports"`
	Exports  []string        `json:"exports"`
	Features []string        `json:"features"`
	Warnings []string        `json:"warnings,omitempty"`
	// Module is the sha256 of the module that runs, which is not the one that was uploaded (Identity.SHA256): it is rewritten. Publish
	// checks it when it is set and sets it when it is not.
	Module string `json:"module"`
	Files  []File `json:"files"` // sorted by path; set by Publish
}

// File is one file of an artifact.
type File struct {
	Path   string `json:"path"` // relative, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func mac(key *HostKey, manifest []byte) string {
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte("taskhost artifact manifest 1\x00"))
	h.Write(manifest)
	return hex.EncodeToString(h.Sum(nil))
}

// decodeManifest checks the MAC before it looks at the bytes.
func decodeManifest(key *HostKey, data, sum []byte) (*Manifest, error) {
	if !hmac.Equal([]byte(mac(key, data)), sum) {
		return nil, fmt.Errorf("%s does not carry this host's signature", manifestFile)
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if m.Format != formatNow {
		return nil, fmt.Errorf("%s is of format %d; this version reads %d", manifestFile, m.Format, formatNow)
	}
	return &m, nil
}
