package redact

// shapeStream is the second layer over a text that arrives in pieces: as it is
// written, and behind its escapes.
type shapeStream struct{ scan, decodedScan *shapeScan }

func newShapeStream(s *Shapes) shapeStream {
	out := shapeStream{newShapeScan(s), newShapeScan(s)}
	out.decodedScan.decoded = &decodedText{}
	return out
}

// write takes a piece and gives what may be shown.
func (s *shapeStream) write(piece []byte) (out []byte, count int) {
	if s.scan == nil {
		return piece, 0
	}
	before := s.count()
	out = s.decodedScan.write(nil, s.scan.write(nil, piece))
	return out, s.count() - before
}

func (s *shapeStream) count() int { return s.scan.count + s.decodedScan.count }

// close gives the rest.
func (s *shapeStream) close() (out []byte, count int) {
	if s.scan == nil {
		return nil, 0
	}
	before := s.count()
	out = s.decodedScan.write(nil, s.scan.close(nil))
	return s.decodedScan.close(out), s.count() - before
}

// size of the held text, for those who must bound it.
func (s *shapeStream) heldBytes() int {
	if s.scan == nil {
		return 0
	}
	return s.scan.heldBytes() + s.decodedScan.heldBytes()
}
