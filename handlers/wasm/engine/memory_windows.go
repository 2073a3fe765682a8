package engine

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// reserve takes address space that nothing may touch yet.
func reserve(size uint64) ([]byte, error) {
	address, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE, windows.PAGE_NOACCESS)
	if err != nil {
		return nil, os.NewSyscallError("VirtualAlloc", err)
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), size), nil
}

// commit makes a part of a reservation readable and writable; it reads as zeros.
func commit(part []byte) error {
	_, err := windows.VirtualAlloc(uintptr(unsafe.Pointer(unsafe.SliceData(part))), uintptr(len(part)), windows.MEM_COMMIT, windows.PAGE_READWRITE)
	return os.NewSyscallError("VirtualAlloc", err)
}

// unreserve gives a whole reservation back.
func unreserve(region []byte) error {
	return os.NewSyscallError("VirtualFree", windows.VirtualFree(uintptr(unsafe.Pointer(unsafe.SliceData(region))), 0, windows.MEM_RELEASE))
}
