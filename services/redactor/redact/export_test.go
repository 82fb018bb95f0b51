package redact

// TextAlone is Text without layers, like a stream.
func (s *Scrubber) TextAlone(text string) (out string, count int) {
	ks := newKnownScan(s.known)
	ks.layer = maxLayers
	return string(ks.scanAll([]byte(text))), ks.count
}
