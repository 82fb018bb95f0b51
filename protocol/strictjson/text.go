package strictjson

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// HasText reports whether valid JSON holds a string, as a value or member name, of at least min
// bytes after unescaping. A document without one cannot hold a secret of that length and needs no
// redaction. The result is meaningless if Check rejects b.
func HasText(b []byte, min int) bool {
	for {
		open := bytes.IndexByte(b, '"')
		if open < 0 {
			return false
		}
		length, rest := textLength(b[open+1:])
		if length >= min {
			return true
		}
		b = rest
	}
}

// MayHold reports whether valid JSON could hold a secret of at least min bytes: a string as of
// HasText, a number of that length, one with an exponent, which is longer than it looks, or min
// numbers in a row, which may be its bytes.
func MayHold(b []byte, min int) bool {
	for {
		open := bytes.IndexByte(b, '"')
		if open < 0 {
			return hasNumber(b, min)
		}
		if hasNumber(b[:open], min) {
			return true
		}
		length, rest := textLength(b[open+1:])
		if length >= min {
			return true
		}
		b = rest
	}
}

// hasNumber reports whether the part of a document between two strings has a number of at least min
// bytes, one with an exponent, or min numbers in a row.
func hasNumber(b []byte, min int) bool {
	row := 0
	for i := 0; i < len(b); i++ {
		if c := b[i]; c != '-' && (c < '0' || c > '9') {
			if c != ',' && c != ' ' && c != '\n' && c != '\r' && c != '\t' {
				row = 0
			}
			continue
		}
		if row++; row >= min {
			return true
		}
		start := i
		for ; i < len(b) && bytes.IndexByte(numberBytes, b[i]) >= 0; i++ {
			if b[i] == 'e' || b[i] == 'E' {
				return true
			}
		}
		if i-start >= min {
			return true
		}
		i-- // what ends the number counts
	}
	return false
}

var numberBytes = []byte("0123456789+-.eE")

// textLength returns the decoded length of the string literal whose inside starts b, and the input
// after its closing quote.
func textLength(b []byte) (length int, rest []byte) {
	for {
		stop := bytes.IndexAny(b, `"\`)
		if stop < 0 {
			return length + len(b), nil
		}
		length += stop
		if b[stop] == '"' {
			return length, b[stop+1:]
		}
		n, skip := escapeLength(b[stop:])
		length += n
		b = b[stop+skip:]
	}
}

// escapeLength returns the decoded and the encoded length of the escape at the start of b, in
// bytes.
func escapeLength(b []byte) (decoded, taken int) {
	r, ok := hex4(b)
	switch {
	case !ok:
		return 1, min(2, len(b))
	case utf16.IsSurrogate(r):
		return 2, 6 // a pair is one rune of four bytes
	default:
		return utf8.RuneLen(r), 6
	}
}
