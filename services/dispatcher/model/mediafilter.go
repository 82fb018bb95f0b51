package model

import (
	"bytes"
	"fmt"
	"strings"

	"waybill.dev/waybill/protocol/dataurl"
)

// MediaFilter replaces large values in streamed JSON that may be surrounded by text: members named
// base64 and strings that are data: URLs. A text that begins with "data:" and is none stays. It belongs
// to one goroutine.
//
// Every quote may begin a string. Text around a document can contain any number of quotes, so
// counting them could mistake the inside of a string for the outside.
type MediaFilter struct {
	max      int // bytes of an asset that may be shown
	state    filterState
	decoder  stringDecoder
	name     []byte // start of a string that may be a name or a data: URL
	head     []byte // start of a value that may be a data: URL
	buffered []byte // the value so far, as written
	chars    int    // base64 characters of the value
	replaced bool   // the value was replaced; its rest is dropped
}

// filterState is the filter's position in the text.
type filterState int

const (
	between   filterState = iota // outside of names and values
	inName                       // after a quote
	afterName                    // after the name base64
	afterColon
	inHead // after data:, until its text is known to be a data: URL
	inValue
)

const (
	assetMember = "base64"
	dataScheme  = "data:"
	// maxHead limits the part of a data: URL before its data, in characters. A longer text is none.
	maxHead = 1024
)

// NewMediaFilter returns a filter that passes assets of up to maxBytes.
func NewMediaFilter(maxBytes int) *MediaFilter { return &MediaFilter{max: maxBytes} }

// Write consumes a piece and returns the text that can be shown. A value is held back until its
// size is known to be allowed. With last, the rest is returned.
func (f *MediaFilter) Write(piece string, last bool) string {
	var out strings.Builder
	out.Grow(len(piece))
	for i := 0; i < len(piece); {
		if f.state == between {
			n := strings.IndexByte(piece[i:], '"')
			if n < 0 {
				out.WriteString(piece[i:])
				break
			}
			out.WriteString(piece[i : i+n])
			i += n
		}
		f.readByte(&out, piece[i])
		i++
	}
	if last {
		out.Write(f.buffered)
		*f = MediaFilter{max: f.max}
	}
	return out.String()
}

// readByte consumes one byte.
func (f *MediaFilter) readByte(out *strings.Builder, b byte) {
	switch f.state {
	case inHead:
		f.readHead(out, b)
		return
	case inValue:
		f.readValue(out, b)
		return
	}
	out.WriteByte(b)
	switch f.state {
	case between:
		f.startString() // Write stops at quotes only
	case inName:
		f.readName(b)
	case afterName, afterColon:
		switch {
		case b == ' ' || b == '\t' || b == '\r' || b == '\n':
		case b == ':' && f.state == afterName:
			f.state = afterColon
		case b == '"' && f.state == afterColon:
			f.startValue()
		case b == '"':
			f.startString()
		default:
			f.state = between
		}
	}
}

func (f *MediaFilter) startString() {
	f.state, f.name, f.decoder = inName, f.name[:0], stringDecoder{}
}

func (f *MediaFilter) startHead() {
	f.startValue()
	f.state, f.head = inHead, append(f.head[:0], dataScheme...)
}

func (f *MediaFilter) startValue() {
	f.state, f.chars, f.replaced, f.decoder = inValue, 0, false, stringDecoder{}
}

// readName consumes a byte of a string that may be a name.
func (f *MediaFilter) readName(b byte) {
	if f.decoder.ends(b) {
		if string(f.name) == assetMember {
			f.state = afterName
			return
		}
		f.startString() // the end of one string, or the start of another
		return
	}
	c, whole := f.decoder.feed(b)
	if !whole {
		return
	}
	if c <= 0 || c > 0x7f {
		f.state = between
		return
	}
	f.name = append(f.name, byte(c))
	switch lower := strings.ToLower(string(f.name)); {
	case lower == dataScheme:
		f.startHead()
	case !strings.HasPrefix(assetMember, string(f.name)) && !strings.HasPrefix(dataScheme, lower):
		f.state = between
	}
}

// readHead consumes a byte of a string that begins with data:. It is held back until it is known
// whether the string is a data: URL.
func (f *MediaFilter) readHead(out *strings.Builder, b byte) {
	if f.decoder.ends(b) {
		f.endValue(out, b)
		return
	}
	f.buffered = append(f.buffered, b)
	c, whole := f.decoder.feed(b)
	if !whole {
		return
	}
	f.chars++
	if c < 0 {
		c = ' '
	}
	f.head = append(f.head, string(c)...)
	switch {
	case c == ',' && dataurl.Head(string(f.head)) > 0:
		f.state = inValue
		f.limit(out)
	case len(f.head) > maxHead: // no text is that long without a space or a comma
		f.state = inValue
		f.limit(out)
	case (c == ',' || c <= ' ') && bytes.Count(f.head, []byte{'"'})%2 == 0:
		out.Write(f.buffered)
		f.buffered, f.state = f.buffered[:0], between
	}
}

// readValue consumes a byte of a value.
func (f *MediaFilter) readValue(out *strings.Builder, b byte) {
	if f.decoder.ends(b) {
		f.endValue(out, b)
		return
	}
	if f.replaced {
		f.decoder.feed(b)
		return
	}
	f.buffered = append(f.buffered, b)
	if c, whole := f.decoder.feed(b); whole && c != '=' {
		f.chars++
	}
	f.limit(out)
}

// endValue writes a value that is not replaced, and the quote after it.
func (f *MediaFilter) endValue(out *strings.Builder, quote byte) {
	out.Write(f.buffered)
	out.WriteByte(quote)
	f.buffered, f.state = f.buffered[:0], between
}

// limit replaces a value that is too large.
func (f *MediaFilter) limit(out *strings.Builder) {
	if f.chars*3/4 > f.max {
		f.replaced, f.buffered = true, nil
		fmt.Fprintf(out, "[omitted: an asset of more than %d bytes]", f.max)
	}
}

// stringDecoder decodes the characters of a JSON string.
type stringDecoder struct {
	escaped bool
	digits  int // remaining digits of \uXXXX
	code    rune
}

// ends reports whether a byte is the quote that ends the string. A quote within the digits of an
// escape is invalid JSON and ends it too.
func (u *stringDecoder) ends(b byte) bool { return b == '"' && !u.escaped }

// decode consumes a byte. whole is true if it completes a character; the character is -1 for
// invalid JSON.
func (u *stringDecoder) feed(b byte) (c rune, whole bool) {
	switch {
	case u.digits > 0:
		u.digits--
		d := strings.IndexByte("0123456789abcdef", b|0x20)
		if d < 0 {
			u.digits = 0
			return -1, true
		}
		u.code = u.code<<4 | rune(d) //nolint:gosec // G115: a digit
		return u.code, u.digits == 0
	case u.escaped:
		u.escaped = false
		if b == 'u' {
			u.digits, u.code = 4, 0
			return 0, false
		}
		switch b {
		case '"', '\\', '/':
			return rune(b), true
		case 'b', 'f', 'n', 'r', 't':
			return ' ', true // white space, which is the same to those who search
		}
		return -1, true
	case b == '\\':
		u.escaped = true
		return 0, false
	default:
		return rune(b), true
	}
}
