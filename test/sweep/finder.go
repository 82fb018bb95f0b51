package sweep

import (
	"bytes"
	"encoding/binary"
	"sort"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// finder searches for many texts in one pass. Every text has at least window bytes.
type finder struct {
	texts []string
	// first maps the first bytes of a text to the texts that start with them; maybe is a cheaper
	// filter on two bytes.
	first map[uint64][]int
	maybe [1 << 16]bool
}

const (
	window = 8
	leadIn = 80
)

// newFinder prepares the search. It returns nil if a text is too short to be distinctive.
func newFinder(texts []string) *finder {
	f := &finder{texts: texts, first: map[uint64][]int{}}
	for i, t := range texts {
		if len(t) < window {
			return nil
		}
		key := binary.LittleEndian.Uint64([]byte(t))
		f.first[key] = append(f.first[key], i)
		f.maybe[uint16(key)] = true //nolint:gosec // G115: the first two bytes are meant
	}
	return f
}

// hit is a text that was found, with the bytes before it.
type hit struct {
	text   int
	before string
}

// find returns each text that occurs, once: as it is, or after removing up to two layers of JSON or
// JSON pointer escapes. Writers of JSON and logs change only the form of a text.
func (f *finder) find(b []byte) []hit {
	seen := map[int]string{}
	for range 3 {
		f.scan(b, seen)
		if bytes.Contains(b, []byte("~0")) || bytes.Contains(b, []byte("~1")) {
			f.scan(bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("~1"), []byte("/")), []byte("~0"), []byte("~")), seen)
		}
		if !bytes.Contains(b, []byte(`\`)) {
			break
		}
		b = unescape(b)
	}
	var out []hit
	for text, before := range seen {
		out = append(out, hit{text, before})
	}
	sort.Slice(out, func(i, k int) bool { return out[i].text < out[k].text })
	return out
}

func (f *finder) scan(b []byte, seen map[int]string) {
	for i := 0; i+window <= len(b); i++ {
		if !f.maybe[binary.LittleEndian.Uint16(b[i:])] {
			continue
		}
		for _, k := range f.first[binary.LittleEndian.Uint64(b[i:])] {
			if _, known := seen[k]; !known && len(b)-i >= len(f.texts[k]) && string(b[i:i+len(f.texts[k])]) == f.texts[k] {
				seen[k] = string(b[max(0, i-leadIn):i])
			}
		}
	}
}

// short are JSON's escapes of one letter.
var short = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'f': '\f'}

// unescape removes one layer of JSON escapes.
func unescape(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			out = append(out, b[i])
			continue
		}
		if c, ok := short[b[i+1]]; ok {
			out = append(out, c)
			i++
			continue
		}
		r, n := unicodeEscape(b[i:])
		if n == 0 {
			out = append(out, b[i])
			continue
		}
		if low, more := unicodeEscape(b[i+n:]); utf16.IsSurrogate(r) && more > 0 {
			r, n = utf16.DecodeRune(r, low), n+more
		}
		out = utf8.AppendRune(out, r)
		i += n - 1
	}
	return out
}

// unicodeEscape parses \uXXXX at the beginning of b; n is 0 if there is none.
func unicodeEscape(b []byte) (r rune, n int) {
	const size = 6
	if len(b) < size || b[0] != '\\' || b[1] != 'u' {
		return 0, 0
	}
	v, err := strconv.ParseUint(string(b[2:size]), 16, 16)
	if err != nil {
		return 0, 0
	}
	return rune(v), size
}
