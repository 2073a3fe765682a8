package wasi

import (
	"encoding/binary"
	"io"
	"runtime"
	"slices"
	"strconv"

	"github.com/taskhost/taskhost/abi"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
)

func argsGet(c *call) errno      { return c.putStrings([]string{c.Type}) }
func argsSizesGet(c *call) errno { return c.putSizes([]string{c.Type}) }

func environGet(c *call) errno      { return c.putStrings(environ(c.State)) }
func environSizesGet(c *call) errno { return c.putSizes(environ(c.State)) }

// environ is the environment of a command: what SPEC.md names, then the granted configuration by its own names, sorted. Configuration
// cannot replace the former, nor can it have a name or value that an environment cannot hold.
func environ(s *attempt.State) []string {
	env := []string{
		abi.EnvJobID + "=" + s.JobID,
		abi.EnvType + "=" + s.Type,
		abi.EnvTenant + "=" + s.Tenant,
		abi.EnvQueue + "=" + s.Queue,
		abi.EnvAttempt + "=" + strconv.Itoa(s.Attempt),
		abi.EnvMaxAttempts + "=" + strconv.Itoa(s.MaxAttempts),
		abi.EnvDeadlineMS + "=" + strconv.FormatInt(s.Deadline.UnixMilli(), 10),
	}
	own := len(env)
	for name, value := range s.Config {
		if name != "" && !hasAny(name, '=', 0) && !hasAny(value, 0) && !reserved(name) {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env[own:])
	return env
}

func hasAny(s string, bytes ...byte) bool {
	for i := range len(s) {
		if slices.Contains(bytes, s[i]) {
			return true
		}
	}
	return false
}

func reserved(name string) bool {
	switch name {
	case abi.EnvJobID, abi.EnvType, abi.EnvTenant, abi.EnvQueue, abi.EnvAttempt, abi.EnvMaxAttempts, abi.EnvDeadlineMS:
		return true
	}
	return false
}

func (c *call) putSizes(list []string) errno {
	size := 0
	for _, s := range list {
		size += len(s) + 1
	}
	if e := c.mem.put32(c.u32(0), uint32(len(list))); e != ok {
		return e
	}
	return c.mem.put32(c.u32(1), uint32(size))
}

// putStrings writes the strings, each ended by a zero, at the second argument, and their addresses at the first.
func (c *call) putStrings(list []string) errno {
	pointers, found := c.mem.records(c.u32(0), uint32(len(list)), 4)
	if !found {
		return eFAULT
	}
	at := c.u32(1)
	for i, s := range list {
		buf, found := c.mem.records(at, 1, uint64(len(s))+1)
		if !found {
			return eFAULT
		}
		copy(buf, s)
		buf[len(s)] = 0
		binary.LittleEndian.PutUint32(pointers[4*i:], at)
		at += uint32(len(s)) + 1
	}
	return ok
}

func randomGet(c *call) errno {
	buf, found := c.mem.Read(c.u32(0), c.u32(1))
	if !found {
		return eFAULT
	}
	c.ChargeBytes(4 * len(buf)) // they take so much longer than copying does
	if _, err := io.ReadFull(c.Random, buf); err != nil {
		return eIO
	}
	return ok
}

func procExit(c *call) errno {
	c.Unwind(attempt.EndExit, c.u32(0))
	return ok
}

func schedYield(*call) errno {
	runtime.Gosched()
	return ok
}
