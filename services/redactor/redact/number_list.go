package redact

import "math"

// Programs also print bytes as decimal numbers: [74, 111, 104]. In a JSON document these are an array
// of numbers.

// shortestList is the length of the shortest list of numbers that is searched: MinLength printable
// bytes have two digits each.
const shortestList = 3*MinLength - 1

func isListed(c byte) bool { return isDigit(c) || c == ',' || isSpace(c) }

// searchNumbers records the matches in lists of decimal numbers in a whole text.
func (ks *knownScan) searchNumbers(text []byte) {
	for i := shortestList - 1; i < len(text); i += shortestList {
		if !isListed(text[i]) {
			continue
		}
		start, end := i, i
		for start > 0 && isListed(text[start-1]) {
			start--
		}
		for end < len(text) && isListed(text[end]) {
			end++
		}
		if end-start >= shortestList {
			ks.searchList(text, start, end)
		}
		i = end
	}
}

// searchList records the matches in the numbers of text[start:end].
func (ks *knownScan) searchList(text []byte, start, end int) {
	var (
		listed []byte
		spans  [][2]int
	)
	flush := func() {
		if len(listed) >= MinLength {
			for _, m := range ks.searchWithin(listed) {
				ks.addWhole(knownMatch{start: spans[m.start][0], end: spans[m.end-1][1], pattern: m.pattern})
			}
		}
		listed, spans = listed[:0], spans[:0]
	}
	for i := start; i < end; {
		if !isDigit(text[i]) {
			i++
			continue
		}
		from, n := i, 0
		for ; i < end && isDigit(text[i]); i++ {
			n = min(10*n+int(text[i]-'0'), math.MaxUint8+1)
		}
		if n > math.MaxUint8 {
			flush()
			continue
		}
		listed, spans = append(listed, byte(n)), append(spans, [2]int{from, i})
	}
	flush()
}

// redactNumbers returns the marker of the secret whose bytes an array of JSON numbers lists.
func (s *Scrubber) redactNumbers(array []byte, call *callBudget) (text string, n int) {
	if s.known == nil || len(array) < shortestList {
		return "", 0
	}
	ks := newKnownScan(s.known)
	ks.held, ks.call = array, call
	if ks.searchNumbers(array); len(ks.layered) == 0 {
		return "", 0
	}
	return ks.layered[0].pattern.replacement, 1
}
