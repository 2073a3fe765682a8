package admission

import (
	"github.com/taskhost/taskhost/handlers"
)

// Section numbers of the binary format.
const (
	secCustom    = 0
	secType      = 1
	secImport    = 2
	secFunction  = 3
	secTable     = 4
	secMemory    = 5
	secGlobal    = 6
	secExport    = 7
	secStart     = 8
	secElement   = 9
	secCode      = 10
	secData      = 11
	secDataCount = 12
	secTag       = 13
)

// funcType points into the module; nothing is copied.
type funcType struct{ params, results []byte }

type imported struct {
	module, name []byte
	kind         byte
	typeIndex    uint32 // functions only
}

type exported struct {
	name  []byte
	kind  byte
	index uint32
}

// scan is the state of one check.
type scan struct {
	limits  Limits
	refusal *handlers.Refusal

	types         []funcType
	imports       []imported
	importedFuncs []uint32 // type index of each imported function
	funcs         []uint32 // type index of each defined function
	exports       []exported
	start         *uint32
	globals       int
	elements      int
	elementsTotal int
	datas         int
	dataCount     *uint32
	bodies        int

	memories                 int
	memoryMin, memoryMax     uint32 // pages
	memoryHasMax             bool
	tables                   int
	tableMin, tableMax       uint32
	tableHasMax, tableGrows  bool
	tableGrowsIn             int // function index of the first table.grow
	custom                   int64
	nameEntries              int
	features                 feature
	maxBody, maxLocals       int
	maxNesting, maxBrTargets int
	maxLoopLocals            int
}

// Check scans a module. Exactly one of the results is nil. The report's strings are copies: it keeps nothing of the module.
func Check(module []byte, limits Limits) (*Report, *handlers.Refusal) {
	s := &scan{limits: limits.WithDefaults()}
	if len(module) > s.limits.SizeBytes {
		s.refuse("the module has %s; at most %s are accepted", bytesText(int64(len(module))), bytesText(int64(s.limits.SizeBytes)))
		return nil, s.refusal
	}
	for _, step := range []func(){
		func() { s.preamble(module) },
		func() { s.sections(module) },
		s.agreement,
		s.table,
		s.importContract,
		s.memoryContract,
		s.exportContract,
	} {
		if step(); s.refusal != nil {
			return nil, s.refusal
		}
	}
	return s.report(len(module)), nil
}

// agreement checks what two sections say about each other.
func (s *scan) agreement() {
	if s.bodies != len(s.funcs) {
		s.refuse("the module is damaged or cut short: functions declared %d, with code %d", len(s.funcs), s.bodies)
	}
	if s.dataCount != nil && int(*s.dataCount) != s.datas {
		s.refuse("the module is damaged or cut short: data segments announced %d, present %d", *s.dataCount, s.datas)
	}
	if s.start != nil {
		if t, ok := s.funcType(*s.start); !ok {
			s.refuse("the module is damaged: its start function %d does not exist", *s.start)
		} else if len(t.params)+len(t.results) > 0 {
			s.refuse("the module is damaged: its start function has the signature %s; () -> () is needed", signature(t.params, t.results))
		}
	}
}

// table applies the bound on the table. A table cannot grow but by table.grow: the host never grows one and tables are not
// imported. So a maximum matters only in a module that has the instruction; without it (a Go guest's table has no maximum)
// the initial size is what counts.
func (s *scan) table() {
	limit := uint32(s.limits.TableEntries)
	switch {
	case s.tables == 1 && s.tableMin > limit:
		s.refuse("the table begins with %d entries; at most %d are accepted", s.tableMin, limit)
	case s.tables == 1 && s.tableGrows && !s.tableHasMax:
		s.refuse("function %d grows the table, which has no maximum; declare one of at most %d entries", s.tableGrowsIn, limit)
	case s.tables == 1 && s.tableGrows && s.tableMax > limit:
		s.refuse("function %d grows the table, whose maximum is %d entries; at most %d are accepted", s.tableGrowsIn, s.tableMax, limit)
	}
}

// funcType returns the type of a function by its index, imported functions first.
func (s *scan) funcType(index uint32) (funcType, bool) {
	i := uint64(index)
	var t uint32
	switch n := uint64(len(s.importedFuncs)); {
	case i < n:
		t = s.importedFuncs[i]
	case i-n < uint64(len(s.funcs)):
		t = s.funcs[i-n]
	default:
		return funcType{}, false
	}
	return s.types[t], true // every type index was checked when it was read
}
