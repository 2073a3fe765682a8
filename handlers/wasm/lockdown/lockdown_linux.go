//go:build amd64 || arm64

package lockdown

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Apply locks this process down, for good, and tests it. Without rules.Apply it does nothing. An error means that the process must not
// go on: it is below rules.Least (a *BelowError), or in a state that nobody wants.
func Apply(rules Rules) (Report, error) {
	if !rules.Apply {
		return Report{Level: Off.String()}, nil
	}
	// What the self-test compares with must be read while files can be.
	r := Report{Layers: []Layer{namespacesLayer(rules)}}
	add := func(name, done, remedy string, err error) {
		l := Layer{Name: name, Holds: err == nil, Detail: done}
		if err != nil {
			l.Detail, l.Remedy = err.Error(), remedy
		}
		r.Layers = append(r.Layers, l)
	}
	// The thread that puts on seccomp must have no_new_privs itself, also where not all threads can be reached.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	add(LayerRlimits, fmt.Sprintf("at most %d descriptors, no core dumps", rules.OpenFiles), "", setRlimits(rules))
	add(LayerCapabilities, "none in any set", threadsRemedy, dropCapabilities())
	nnp := noNewPrivs()
	add(LayerNoNewPrivs, "set in every thread", threadsRemedy, nnp)
	landlock, err := restrictFiles(rules)
	add(LayerLandlock, landlock, landlockRemedy(err), err)
	filter := allowList(len(rules.Write) > 0)
	add(LayerSeccomp, fmt.Sprintf("%d system calls allowed, %d of them with conditions on their arguments", len(filter.allow)+len(filter.when), len(filter.when)),
		seccompRemedy, filter.install())
	selfTest(&r, rules)
	r.reach()
	if r.Reached() < rules.Least {
		return r, &BelowError{rules.Least, r}
	}
	return r, nil
}

const (
	threadsRemedy = "use the release build: with cgo, a Go program cannot reach all of its threads"
	seccompRemedy = "allow the seccomp system call: in a container, use the runtime's default profile"
)

// allThreads makes a system call in every thread of this process.
//
//go:uintptrescapes
func allThreads(what string, trap, a1, a2, a3, a4, a5 uintptr) error {
	if _, _, errno := syscall.AllThreadsSyscall6(trap, a1, a2, a3, a4, a5, 0); errno != 0 {
		if errno == syscall.ENOTSUP {
			return fmt.Errorf("%s: this build uses cgo and cannot reach all of its threads", what)
		}
		return fmt.Errorf("%s: %w", what, errno)
	}
	return nil
}

func noNewPrivs() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl: %w", err)
	}
	return allThreads("prctl", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// ownThreads is how many threads a process in a user namespace of its own may have. Elsewhere the limit counts all of the user's.
const ownThreads = 1024

func setRlimits(rules Rules) error {
	limits := map[string]struct {
		resource int
		value    uint64
	}{"RLIMIT_CORE": {unix.RLIMIT_CORE, 0}, "RLIMIT_NOFILE": {unix.RLIMIT_NOFILE, rules.OpenFiles}}
	if rules.FileBytes > 0 {
		limits["RLIMIT_FSIZE"] = struct {
			resource int
			value    uint64
		}{unix.RLIMIT_FSIZE, rules.FileBytes}
	}
	if rules.Namespaces {
		limits["RLIMIT_NPROC"] = struct {
			resource int
			value    uint64
		}{unix.RLIMIT_NPROC, ownThreads}
	}
	for name, l := range limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.resource, &now); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		value := min(l.value, now.Max)
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("%s = %d: %w", name, value, err)
		}
	}
	return nil
}

// namespaceNames are the namespaces a child gets.
var namespaceNames = []string{"ipc", "mnt", "net", "pid", "user", "uts"}

// outside lists the namespaces of this process.
func outside() ([]string, error) {
	var list []string
	for _, name := range namespaceNames {
		link, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			return nil, err
		}
		_, id, _ := strings.Cut(strings.TrimSuffix(link, "]"), ":[")
		list = append(list, name+"="+id)
	}
	return list, nil
}

// namespacesLayer compares the namespaces of this process with those of its supervisor.
func namespacesLayer(rules Rules) Layer {
	l := Layer{Name: LayerNamespaces, Remedy: "allow user namespaces: sysctl user.max_user_namespaces and, where it exists, kernel.unprivileged_userns_clone or " +
		"kernel.apparmor_restrict_unprivileged_userns; in a container, a seccomp profile that permits them"}
	mine, err := outside()
	theirs := strings.Split(rules.Outside, ",")
	switch {
	case !rules.Namespaces:
		l.Detail = "the process was started without: the kernel or the container refuses them"
	case err != nil:
		l.Detail = err.Error()
	case len(theirs) != len(namespaceNames):
		l.Detail = fmt.Sprintf("those of the supervisor are not known: %q", rules.Outside)
	default:
		for _, ns := range mine {
			if slices.Contains(theirs, ns) {
				l.Detail = "it shares one with its supervisor: " + ns
				return l
			}
		}
		if os.Getpid() != 1 {
			l.Detail = fmt.Sprintf("it is process %d of its process namespace, not the first", os.Getpid())
			return l
		}
		l.Holds, l.Detail, l.Remedy = true, "its own: "+strings.Join(namespaceNames, ", "), ""
	}
	return l
}

// dropCapabilities empties every capability set of every thread but the bounding set, which no_new_privs makes void.
func dropCapabilities() error {
	const version3 = unix.LINUX_CAPABILITY_VERSION_3
	if none, err := noCapabilities(); err == nil && none { // the ordinary case: not root
		return nil
	}
	if err := allThreads("clear the ambient capabilities", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header, data := unix.CapUserHeader{Version: version3}, [2]unix.CapUserData{}
	if err := allThreads("capset", unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0, 0, 0); err != nil {
		return err
	}
	none, err := noCapabilities()
	if err == nil && !none {
		err = errors.New("some are left")
	}
	return err
}

func noCapabilities() (bool, error) {
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false, fmt.Errorf("capget: %w", err)
	}
	return data == [2]unix.CapUserData{}, nil
}
