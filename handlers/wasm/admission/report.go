package admission

import (
	"fmt"
	"sort"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers"
)

// Report is what a module that was not refused contains.
type Report struct {
	Kind      handlers.Kind `json:"kind"`
	SizeBytes int64         `json:"size_bytes"`
	Imports   []string      `json:"imports"` // "module.name", sorted, each once
	Exports   []string      `json:"exports"` // "name (kind)", sorted

	// DeclaredMemory is what the module asks for; without a maximum that is 4 GiB. Memory is the same clamped to the limit.
	DeclaredMemory handlers.Memory `json:"declared_memory"`
	Memory         handlers.Memory `json:"memory"`

	Counts      Counts   `json:"counts"`
	Features    []string `json:"features"` // beyond the first version of WebAssembly, sorted
	HasStart    bool     `json:"has_start"`
	CustomBytes int64    `json:"custom_bytes"` // in custom sections: names, debug information

	Warnings       []string `json:"warnings"`        // about the module itself
	MemoryWarnings []string `json:"memory_warnings"` // about the module under this memory limit
}

// Counts are sizes of the parts of a module, and the largest of what the limits bound per function.
type Counts struct {
	Types          int `json:"types"`
	Imports        int `json:"imports"`
	Exports        int `json:"exports"`
	Functions      int `json:"functions"`
	Globals        int `json:"globals"`
	Elements       int `json:"elements"`
	ElementEntries int `json:"element_entries"`
	Datas          int `json:"datas"`
	MaxBodyBytes   int `json:"max_body_bytes"`
	MaxLocals      int `json:"max_locals"`
	MaxNesting     int `json:"max_nesting"`
	MaxBrTargets   int `json:"max_br_targets"`
	MaxLoopLocals  int `json:"max_loop_locals"`
}

// report is written once nothing is left to refuse.
func (s *scan) report(size int) *Report {
	rep := &Report{
		Kind:           handlers.KindCommand,
		SizeBytes:      int64(size),
		Imports:        []string{},
		Exports:        []string{},
		DeclaredMemory: s.declaredMemory(),
		Features:       s.features.names(),
		HasStart:       s.start != nil,
		CustomBytes:    s.custom,
		Warnings:       []string{},
		Counts: Counts{
			Types: len(s.types), Imports: len(s.imports), Exports: len(s.exports), Functions: len(s.funcs), Globals: s.globals,
			Elements: s.elements, ElementEntries: s.elementsTotal, Datas: s.datas, MaxBodyBytes: s.maxBody, MaxLocals: s.maxLocals,
			MaxNesting: s.maxNesting, MaxBrTargets: s.maxBrTargets, MaxLoopLocals: s.maxLoopLocals,
		},
	}
	if s.export(abi.ExportHandle) != nil {
		rep.Kind = handlers.KindReactor
	}
	rep.Memory, rep.MemoryWarnings, _ = JudgeMemory(rep.DeclaredMemory, s.limits.MemoryBytes) // judged before: no refusal
	seen := map[string]bool{}
	for _, imp := range s.imports {
		if full := string(imp.module) + "." + string(imp.name); !seen[full] {
			seen[full] = true
			rep.Imports = append(rep.Imports, full)
		}
	}
	for _, e := range s.exports {
		rep.Exports = append(rep.Exports, show(e.name)+" ("+kindName(e.kind)+")")
	}
	sort.Strings(rep.Imports)
	sort.Strings(rep.Exports)
	warn := func(format string, args ...any) { rep.Warnings = append(rep.Warnings, fmt.Sprintf(format, args...)) }
	if s.custom*2 > int64(size) {
		warn("%s of the module's %s are names and debug information; strip it to upload and start faster", bytesText(s.custom), bytesText(int64(size)))
	}
	if s.start != nil {
		warn("the module has a start section, which runs before every job; prefer %s", abi.ExportInitialize)
	}
	return rep
}
