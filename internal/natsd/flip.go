package natsd

// flipBack looks for the one bit of p whose value makes good report true. It leaves p so, and
// returns the index of the byte; -1 if there is none, with p unchanged.
func flipBack(p []byte, good func() bool) int {
	for i := range p {
		for bit := range 8 {
			p[i] ^= 1 << bit
			if good() {
				return i
			}
			p[i] ^= 1 << bit
		}
	}
	return -1
}

// work limits what the search for flipped bits hashes in a start, in bytes: a second or two.
const work = 8 << 30

// correct looks for a flipped bit in a record that extends from at to end, and puts it right. A
// checksum of 64 bits matches by chance once in 2^64 tries.
func (b *block) correct(at, end int, left *int) bool {
	size := end - at
	if size < recordHead+checksum || size > longest {
		return false
	}
	length, headers := b.length(at)
	for _, h := range []bool{headers, !headers} { // a flip in the length, or in the flag next to it
		b.setLength(at, size, h)
		if b.sound(at, size) {
			return true
		}
	}
	b.setLength(at, size, headers)
	p := b.buf[at+4 : end]
	if 8*size*size > *left { // the start of the record, at least, which matters most
		p = p[:min(len(p), 256)]
	}
	if *left -= 8 * len(p) * size; *left > 0 && flipBack(p, func() bool { return b.sound(at, size) }) >= 0 {
		return true
	}
	b.setLength(at, length, headers)
	return false
}
