package redact

// shapeStream is the second layer for a text in pieces: as written, and then with \uXXXX
// decoded.
type shapeStream struct{ scan, decodedScan *shapeScan }

func newShapeStream(s *Shapes) shapeStream {
	out := shapeStream{newShapeScan(s), newShapeScan(s)}
	out.decodedScan.decoded = &decodedText{}
	return out
}

// write adds a piece and returns the settled text.
func (s *shapeStream) write(piece []byte) (out []byte, count int) {
	if s.scan == nil {
		return piece, 0
	}
	before := s.count()
	out = s.decodedScan.write(nil, s.scan.write(nil, piece))
	return out, s.count() - before
}

func (s *shapeStream) count() int { return s.scan.count + s.decodedScan.count }

// close returns the rest.
func (s *shapeStream) close() (out []byte, count int) {
	if s.scan == nil {
		return nil, 0
	}
	before := s.count()
	out = s.decodedScan.write(nil, s.scan.close(nil))
	return s.decodedScan.close(out), s.count() - before
}

// heldBytes returns how many bytes are held back.
func (s *shapeStream) heldBytes() int {
	if s.scan == nil {
		return 0
	}
	return s.scan.heldBytes() + s.decodedScan.heldBytes()
}
