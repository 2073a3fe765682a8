package lockdown

import "fmt"

// Plan is how the children of a supervisor are locked down. The zero value is not at all.
type Plan struct {
	// Apply: put on every layer that can be had.
	Apply bool `json:"apply,omitempty"`
	// Least is the level below which a child refuses to go on.
	Least Level `json:"least,omitempty"`
	// Namespaces: children are started in namespaces of their own.
	Namespaces bool `json:"namespaces,omitempty"`
	// Outside are the namespaces of the supervisor, "ipc=4026531839,…,user=4026531837", from which those of a child must differ.
	Outside string `json:"outside,omitempty"`
}

// Args are the plan as arguments of a child; see Flag.
func (p Plan) Args() []string {
	if !p.Apply {
		return nil
	}
	args := []string{"--lockdown=" + p.Least.String()}
	if p.Namespaces {
		args = append(args, "--outside="+p.Outside)
	}
	return args
}

// FlagNames are the names of the flags that Args has.
func FlagNames() []string { return []string{"lockdown", "outside"} }

// Flag reads one of Args into the plan.
func (p *Plan) Flag(name, value string) error {
	switch name {
	case "lockdown":
		level, err := ParseLevel(value)
		if err != nil {
			return err
		}
		p.Apply, p.Least = true, level
	case "outside":
		p.Namespaces, p.Outside = true, value
	default:
		return fmt.Errorf("no flag --%s", name)
	}
	return nil
}

// Rules are what a child may still do. They are given by its role.
type Rules struct {
	Plan
	// Read are folders whose files may be read. One that does not exist is an error.
	Read []string
	// Write are folders below which files may be read, made, changed and removed. With none, no file can be opened for writing.
	Write []string
	// OpenFiles is the most descriptors it may have.
	OpenFiles uint64
	// FileBytes is the largest file it may write, memory files included; 0 = leave it as it is.
	FileBytes uint64
}
