package strictjson

// Each gives the members of an object in their order, each as its name and its value: as they are
// written, parts of b, but for a name with escapes. ok is false if b is no object or not sound; what
// came before was given all the same. It reads b once and keeps nothing. Of a name twice it makes
// nothing: both are given.
func Each(b []byte, visit func(name, value []byte)) (ok bool) {
	s := scanner{b: b, maxDepth: stored.MaxDepth, loose: true}
	return s.each('{', '}', func() bool {
		if s.peek() != '"' {
			return false
		}
		name, err := s.text()
		if err != nil {
			return false
		}
		if s.space(); s.peek() != ':' {
			return false
		}
		s.i++
		s.space()
		start := s.i
		if s.value(1) != nil {
			return false
		}
		if name.escaped {
			visit([]byte(name.decode(b)), b[start:s.i:s.i])
		} else {
			visit(name.raw(b), b[start:s.i:s.i])
		}
		return true
	})
}

// Items gives the values of an array in their order, as Each does.
func Items(b []byte, visit func(value []byte)) (ok bool) {
	s := scanner{b: b, maxDepth: stored.MaxDepth, loose: true}
	return s.each('[', ']', func() bool {
		start := s.i
		if s.value(1) != nil {
			return false
		}
		visit(b[start:s.i:s.i])
		return true
	})
}

// each reads what is the whole document, from an opening to a closing mark, one part after the other.
func (s *scanner) each(opens, closes byte, part func() bool) bool {
	s.space()
	if s.peek() != opens {
		return false
	}
	s.i++
	if s.space(); s.peek() != closes {
		for {
			if s.space(); !part() {
				return false
			}
			if s.space(); s.peek() != ',' {
				break
			}
			s.i++
		}
	}
	if s.peek() != closes {
		return false
	}
	s.i++
	s.space()
	return s.i == len(s.b)
}
