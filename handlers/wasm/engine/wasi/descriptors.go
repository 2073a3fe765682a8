package wasi

import (
	"encoding/binary"
	"math"

	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
)

const (
	stdin  = 0
	stdout = 1
	stderr = 2
)

// What a descriptor is and allows; numbers of the specification.
const (
	filetypeUnknown     = 0 // a character device would pass for a terminal
	rightFdRead         = 1 << 1
	rightFdstatSetFlags = 1 << 3
	rightFdWrite        = 1 << 6
	rightFilestatGet    = 1 << 21
	rightPollFd         = 1 << 27
	flagAppend          = 1
)

func (c *call) open(fd uint32) bool { return fd <= stderr && !c.Closed[fd] }

// onDescriptor answers e for an open descriptor, and EBADF for others. Sockets and directories are never open.
func onDescriptor(e errno) func(*call) errno {
	return func(c *call) errno {
		if !c.open(c.u32(0)) {
			return eBADF
		}
		return e
	}
}

// noPreopen ends the search for preopened directories that every libc makes at its start.
func noPreopen(*call) errno { return eBADF }

// onDirectory answers for calls relative to a directory. The standard streams are none; others do not exist.
func onDirectory(c *call) errno {
	if c.open(c.u32(0)) {
		return eNOTDIR
	}
	return eBADF
}

// symlink is path_symlink, the one call whose descriptor is not its first argument. Even an existing directory could not hold links.
func symlink(c *call) errno {
	if c.open(c.u32(2)) {
		return eNOTCAPABLE
	}
	return eBADF
}

func fdClose(c *call) errno {
	fd := c.u32(0)
	if !c.open(fd) {
		return eBADF
	}
	if fd == stderr {
		c.FlushStderr()
	}
	c.Closed[fd] = true
	return ok
}

// fdRenumber is dup2 and close in one. The three streams have fixed places here, so moving one onto another is not offered.
func fdRenumber(c *call) errno {
	from, to := c.u32(0), c.u32(1)
	switch {
	case !c.open(from) || !c.open(to):
		return eBADF
	case from == to:
		return ok
	}
	return eNOTSUP
}

func fdFdstatGet(c *call) errno {
	fd := c.u32(0)
	if !c.open(fd) {
		return eBADF
	}
	stat, found := c.mem.records(c.u32(1), 1, 24)
	if !found {
		return eFAULT
	}
	clear(stat)
	stat[0] = filetypeUnknown
	rights := uint64(rightFdstatSetFlags | rightFilestatGet | rightPollFd)
	if fd == stdin {
		rights |= rightFdRead
	} else {
		rights |= rightFdWrite
		stat[2] = flagAppend
	}
	binary.LittleEndian.PutUint64(stat[8:], rights)
	return ok
}

func fdFilestatGet(c *call) errno {
	fd := c.u32(0)
	if !c.open(fd) {
		return eBADF
	}
	stat, found := c.mem.records(c.u32(1), 1, 64)
	if !found {
		return eFAULT
	}
	clear(stat)
	binary.LittleEndian.PutUint64(stat[8:], uint64(fd)+1) // inode
	stat[16] = filetypeUnknown
	binary.LittleEndian.PutUint64(stat[24:], 1) // links
	return ok
}

func fdRead(c *call) errno {
	if fd := c.u32(0); !c.open(fd) || fd != stdin {
		return eBADF
	}
	start := c.Stdin
	c.ChargeItems(c.u32(2))
	e := c.mem.iovecs(c.u32(1), c.u32(2), func(buf []byte) bool {
		c.Stdin += copy(buf, c.Payload[c.Stdin:])
		return c.Stdin < len(c.Payload)
	})
	if e == ok {
		e = c.mem.put32(c.u32(3), uint32(c.Stdin-start))
	}
	if e != ok {
		c.Stdin = start
	}
	c.ChargeBytes(c.Stdin - start)
	return e
}

func fdWrite(c *call) errno {
	fd := c.u32(0)
	if !c.open(fd) || fd == stdin {
		return eBADF
	}
	var n uint64
	c.ChargeItems(c.u32(2))
	// All is checked before anything is taken, so that a call fails or works as a whole.
	if e := c.mem.iovecs(c.u32(1), c.u32(2), func(buf []byte) bool { n += uint64(len(buf)); return true }); e != ok {
		return e
	}
	if n > math.MaxUint32 {
		return eINVAL
	}
	c.ChargeBytes(int(n))
	if e := c.mem.put32(c.u32(3), uint32(n)); e != ok {
		return e
	}
	return c.mem.iovecs(c.u32(1), c.u32(2), func(buf []byte) bool {
		if fd == stderr {
			c.Stderr(buf)
		} else if _, fits := c.Write(buf); !fits {
			c.Unwind(attempt.EndOversize, 0)
		}
		return true
	})
}
