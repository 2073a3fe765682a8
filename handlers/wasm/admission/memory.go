package admission

import (
	"fmt"

	"github.com/taskhost/taskhost/handlers"
)

// JudgeMemory applies a memory limit (bytes; rounded down to whole pages) to what a module declares: the memory with its maximum
// clamped and what the author should know, or a refusal when the module begins with more than the limit.
func JudgeMemory(declared handlers.Memory, limit int64) (handlers.Memory, []string, *handlers.Refusal) {
	limit = min(limit/PageBytes, 65536) * PageBytes
	if declared.MinBytes > limit {
		return handlers.Memory{}, nil, &handlers.Refusal{Reason: fmt.Sprintf("the module begins with %s of memory; the limit is %s",
			bytesText(declared.MinBytes), bytesText(limit))}
	}
	var warnings []string
	if declared.MinBytes*4 > limit*3 {
		warnings = append(warnings, fmt.Sprintf("the module begins with %s of memory and the limit is %s; little is left to work with",
			bytesText(declared.MinBytes), bytesText(limit)))
	}
	if declared.MaxBytes > limit && declared.MaxBytes < noMaximum {
		warnings = append(warnings, fmt.Sprintf("the module asks for up to %s of memory; growing beyond the limit of %s fails",
			bytesText(declared.MaxBytes), bytesText(limit)))
	}
	return handlers.Memory{MinBytes: declared.MinBytes, MaxBytes: min(declared.MaxBytes, limit)}, warnings, nil
}

// noMaximum is what a memory without a maximum can grow to.
const noMaximum = 65536 * PageBytes

func (s *scan) declaredMemory() handlers.Memory {
	m := handlers.Memory{MinBytes: int64(s.memoryMin) * PageBytes, MaxBytes: noMaximum}
	if s.memoryHasMax {
		m.MaxBytes = int64(s.memoryMax) * PageBytes
	}
	return m
}
