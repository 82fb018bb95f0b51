package strictjson

// Member returns the value of an object's member, a slice of b. ok is false if b is not an object,
// is invalid up to the member, or lacks it. It copies nothing, so that a document can be measured
// before it is decoded. Only Check validates all of it.
func Member(b []byte, name string) (value []byte, ok bool) {
	s := scanner{b: b, maxDepth: stored.MaxDepth}
	s.space()
	if s.peek() != '{' {
		return nil, false
	}
	s.i++
	for {
		s.space()
		if s.peek() != '"' {
			return nil, false
		}
		read, err := s.text()
		if err != nil {
			return nil, false
		}
		if s.space(); s.peek() != ':' {
			return nil, false
		}
		s.i++
		s.space()
		start := s.i
		if s.value(1) != nil {
			return nil, false
		}
		if read.decode(b) == name {
			return b[start:s.i], true
		}
		if s.space(); s.peek() != ',' {
			return nil, false
		}
		s.i++
	}
}
