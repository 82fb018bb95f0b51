package redact

// shapeStream is the second layer over a text that arrives in pieces: as it is
// written, and behind its escapes.
type shapeStream struct{ scan, behind *scan }

func newShapeStream(s *Shapes) shapeStream {
	out := shapeStream{newScan(s), newScan(s)}
	out.behind.view = &decoded{}
	return out
}

// write takes a piece and gives what may be shown.
func (s *shapeStream) write(piece []byte) (out []byte, count int) {
	if s.scan == nil {
		return piece, 0
	}
	before := s.count()
	out = s.behind.write(nil, s.scan.write(nil, piece))
	return out, s.count() - before
}

func (s *shapeStream) count() int { return s.scan.count + s.behind.count }

// close gives the rest.
func (s *shapeStream) close() (out []byte, count int) {
	if s.scan == nil {
		return nil, 0
	}
	before := s.count()
	out = s.behind.write(nil, s.scan.end(nil))
	return s.behind.end(out), s.count() - before
}

// size of the held text, for those who must bound it.
func (s *shapeStream) size() int {
	if s.scan == nil {
		return 0
	}
	return s.scan.held() + s.behind.held()
}
