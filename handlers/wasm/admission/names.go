package admission

// customSection bounds the one custom section whose counts an engine believes: "name". Others are stepped over.
func (s *scan) customSection(r *reader) {
	s.custom += int64(len(r.b))
	if string(r.name()) != "name" {
		return
	}
	r.what = "the name section"
	for r.rest() > 0 && !r.failed() {
		kind := r.byte()
		sub := r.sub(r.count("bytes of a part of the name section"), r.what)
		switch kind {
		case 0:
			sub.name()
		case 1:
			s.nameMap(sub)
		case 2:
			n := sub.count("functions with named locals")
			s.countNames(n)
			for i := 0; i < n && !r.failed(); i++ {
				sub.u32()
				s.nameMap(sub)
			}
		default:
			continue // later additions, which engines step over
		}
		sub.done()
	}
}

func (s *scan) nameMap(r *reader) {
	n := r.count("names")
	s.countNames(n)
	for i := 0; i < n && !r.failed(); i++ {
		r.u32()
		r.name()
	}
}

func (s *scan) countNames(n int) {
	if s.nameEntries += n; s.nameEntries > s.limits.NameEntries {
		s.refuse("the name section has more than %d names; build without debug information", s.limits.NameEntries)
	}
}
