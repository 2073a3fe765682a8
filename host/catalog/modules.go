package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/taskhost/taskhost/queue"
)

// Module bytes are stored once, whoever uploads them: chunks under <sha256>/<number>, then a head under <sha256>. The head is
// written last, so a module with a head is whole.
const (
	kindModule  = "module"
	moduleChunk = 8 << 20
)

type moduleHead struct {
	SizeBytes int `json:"size_bytes"`
	Chunks    int `json:"chunks"`
}

func chunkKey(sha string, i int) string { return fmt.Sprintf("%s/%04d", sha, i) }

func sum(module []byte) string {
	h := sha256.Sum256(module)
	return hex.EncodeToString(h[:])
}

func (c *Catalog) putModule(ctx context.Context, sha string, module []byte) error {
	switch _, err := c.o.Records.GetRecord(ctx, kindModule, sha); {
	case err == nil:
		return nil
	case !errors.Is(err, queue.ErrNotFound):
		return fmt.Errorf("look for module %.12s: %w", sha, err)
	}
	head := moduleHead{SizeBytes: len(module)}
	for rest := module; ; {
		n := min(len(rest), moduleChunk)
		if _, err := c.o.Records.PutRecord(ctx, kindModule, chunkKey(sha, head.Chunks), rest[:n], queue.AnyRevision); err != nil {
			return fmt.Errorf("store module %.12s: %w", sha, err)
		}
		head.Chunks++
		if rest = rest[n:]; len(rest) == 0 {
			break
		}
	}
	value, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("encode the head of module %.12s: %w", sha, err)
	}
	if _, err := c.o.Records.PutRecord(ctx, kindModule, sha, value, queue.AnyRevision); err != nil {
		return fmt.Errorf("store module %.12s: %w", sha, err)
	}
	return nil
}

// Module returns the bytes of a module, checked against its hash.
func (c *Catalog) Module(ctx context.Context, sha string) ([]byte, error) {
	rec, err := c.o.Records.GetRecord(ctx, kindModule, sha)
	if err != nil {
		return nil, fmt.Errorf("read module %.12s: %w", sha, err)
	}
	var head moduleHead
	if err := json.Unmarshal(rec.Value, &head); err != nil {
		return nil, fmt.Errorf("the head of module %.12s cannot be read: %w", sha, err)
	}
	var module []byte
	for i := range head.Chunks {
		chunk, err := c.o.Records.GetRecord(ctx, kindModule, chunkKey(sha, i))
		if err != nil {
			return nil, fmt.Errorf("read chunk %d of module %.12s: %w", i, sha, err)
		}
		if head.Chunks == 1 {
			module = chunk.Value
			break
		}
		module = append(module, chunk.Value...)
	}
	if got := sum(module); got != sha {
		return nil, fmt.Errorf("module %.12s is damaged: its bytes have the hash %.12s", sha, got)
	}
	return module, nil
}
