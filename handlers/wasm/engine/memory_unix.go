//go:build unix

package engine

import (
	"os"

	"golang.org/x/sys/unix"
)

// reserve takes address space that nothing may touch yet.
func reserve(size uint64) ([]byte, error) {
	region, err := unix.Mmap(-1, 0, int(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	return region, os.NewSyscallError("mmap", err)
}

// commit makes a part of a reservation readable and writable; it reads as zeros.
func commit(part []byte) error {
	return os.NewSyscallError("mprotect", unix.Mprotect(part, unix.PROT_READ|unix.PROT_WRITE))
}

// unreserve gives a whole reservation back.
func unreserve(region []byte) error { return os.NewSyscallError("munmap", unix.Munmap(region)) }
