package meter

import (
	"errors"
	"fmt"
	"strconv"
)

// Names of what is added to a module. A module that uses one of them is refused.
const (
	TickModule = "taskhost_meter" // imported: TickModule.TickName () -> ()
	TickName   = "tick"

	reserved    = "__taskhost_"
	ExportFuel  = reserved + "fuel"  // global, mutable i64, 0 at first: the host sets it before it calls anything
	ExportStart = reserved + "start" // function () -> (), the start section's; absent without one
	exportState = reserved + "g"     // and the global's index in the original module
)

// ExportGlobal is the export name of the mutable global with that index in the original module.
func ExportGlobal(index uint32) string { return exportState + strconv.FormatUint(uint64(index), 10) }

// ErrReserved is what a ReservedError is.
var ErrReserved = errors.New("reserved name")

// ReservedError says that a module uses a name that the rewriting adds: it imports from TickModule, or exports
// something whose name begins with "__taskhost_". It is an ErrReserved.
type ReservedError struct{ Name string }

func (e *ReservedError) Error() string {
	return fmt.Sprintf("the name %q is reserved: imports from %q and exports that begin with %q are the host's", e.Name, TickModule, reserved)
}

// Is makes errors.Is(err, ErrReserved) true.
func (e *ReservedError) Is(target error) bool { return target == ErrReserved }
