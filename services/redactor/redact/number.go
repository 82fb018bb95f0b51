package redact

import (
	"bytes"
	"math/big"
	"strings"
)

// A secret of digits, such as a card's number, may be written as a JSON number. The number
// becomes the marker, which is a string: no number could say that something was removed.

// isNumeric reports a pattern that may be a part of a JSON number.
func isNumeric(p pattern) bool { return p.text != "" && strings.Trim(p.text, "0123456789+-.eE") == "" }

// maxExpanded limits the exponent of numbers that are written out for the search.
const maxExpanded = 64

// redactNumber returns the marker of the secret that a JSON number contains, as it is written or
// written out: 4.929e3 is 4929.
func (s *Scrubber) redactNumber(raw []byte) (text string, n int) {
	if s.known == nil || !s.known.numeric || len(raw) < MinLength && !bytes.ContainsAny(raw, "eE") {
		return "", 0
	}
	for _, form := range [][]byte{expand(raw), raw} {
		ks := newKnownScan(s.known)
		if ks.runAutomaton(form); len(ks.matches) > 0 {
			return ks.matches[0].pattern.replacement, 1
		}
	}
	return "", 0
}

// expand returns the digits of an integer that is written with a fraction or an exponent; nil for
// other numbers.
func expand(raw []byte) []byte {
	if !bytes.ContainsAny(raw, ".eE") {
		return nil
	}
	if i := bytes.IndexAny(raw, "eE"); i >= 0 {
		exponent, ok := new(big.Int).SetString(strings.TrimPrefix(string(raw[i+1:]), "+"), 10)
		if !ok || !exponent.IsInt64() || exponent.Int64() > maxExpanded || exponent.Int64() < -maxExpanded {
			return nil
		}
	}
	r, ok := new(big.Rat).SetString(string(raw))
	if !ok || !r.IsInt() {
		return nil
	}
	return []byte(r.Num().String())
}
