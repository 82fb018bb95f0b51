package strictjson

// Member finds a member of an object: its value as it is written, a part of b.
// ok is false when b is no object, is not sound as far as it was read, or has no
// such member. It keeps and copies nothing, so that a document can be measured
// before it is decoded; only Check says whether all of it is sound.
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
