package attempt

import "fmt"

// End is why a host function unwound the guest.
type End int

// Why a host function unwound the guest.
const (
	EndNone     End = iota
	EndExit         // proc_exit
	EndDeadline     // the deadline passed
	EndStopped      // it was told to stop, and went on
	EndOversize     // the result went over its limit
	EndFuel         // it used up its fuel
)

// Unwound is the value Unwind panics with. The engine recovers it as the error of the call.
type Unwound struct{ End End }

func (u *Unwound) Error() string { return fmt.Sprintf("guest unwound (%d)", u.End) }

// Unwind ends the guest from within a host function and does not return. The instance stays as it is: closing it would free memory that
// frames below still refer to.
func (s *State) Unwind(end End, exitCode uint32) {
	s.end, s.exitCode = end, exitCode
	panic(&Unwound{end})
}

// Ended tells why the guest was unwound, and the exit code if that was EndExit.
func (s *State) Ended() (End, uint32) { return s.end, s.exitCode }
