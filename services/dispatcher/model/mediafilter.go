package model

import (
	"fmt"
	"strings"
)

// MediaFilter reads JSON that arrives in pieces, among whatever text a model puts
// around it, and replaces the values that are too large: those of members named
// base64, and texts that are data: URLs. It belongs to one goroutine.
//
// It takes any quote for the beginning of a string. Text around a document may
// have quotes in any number, and a filter that counted them could be led to take
// the inside of a string for the outside.
type MediaFilter struct {
	max      int // bytes of an asset that may be shown
	state    filterState
	decoder  stringDecoder
	name     []byte // what was read of a string that may be a name or a data: URL
	buffered []byte // the value so far, as it is spelled
	chars    int    // characters of the value that count
	replaced bool   // the value was replaced; the rest of it is dropped
}

// filterState is where in the text the filter is.
type filterState int

const (
	between   filterState = iota // nothing of interest
	inName                       // after a quote
	afterName                    // after the name base64
	afterColon
	inValue
)

const (
	assetMember = "base64"
	dataScheme  = "data:"
)

// NewMediaFilter makes a filter that lets assets of up to maxBytes through.
func NewMediaFilter(maxBytes int) *MediaFilter { return &MediaFilter{max: maxBytes} }

// Write takes a piece and gives what may be shown. A value is held back until it
// is known to be small enough; with last, all that is left comes out.
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

// readByte reads one byte.
func (f *MediaFilter) readByte(out *strings.Builder, b byte) {
	if f.state == inValue {
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

func (f *MediaFilter) startString() { f.state, f.name, f.decoder = inName, f.name[:0], stringDecoder{} }

func (f *MediaFilter) startValue() {
	f.state, f.chars, f.replaced, f.decoder = inValue, 0, false, stringDecoder{}
}

// readName takes a byte of a string that may be a name.
func (f *MediaFilter) readName(b byte) {
	if f.decoder.ends(b) {
		if string(f.name) == assetMember {
			f.state = afterName
			return
		}
		f.startString() // the end of one string, or the beginning of another
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
		f.startValue()
	case !strings.HasPrefix(assetMember, string(f.name)) && !strings.HasPrefix(dataScheme, lower):
		f.state = between
	}
}

// readValue takes a byte of a value.
func (f *MediaFilter) readValue(out *strings.Builder, b byte) {
	if f.decoder.ends(b) {
		out.Write(f.buffered)
		out.WriteByte(b)
		f.buffered, f.state = f.buffered[:0], between
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
	if f.chars*3/4 > f.max {
		f.replaced, f.buffered = true, nil
		fmt.Fprintf(out, "[omitted: an asset of more than %d bytes]", f.max)
	}
}

// stringDecoder reads the characters of a JSON string, escaped or not.
type stringDecoder struct {
	escaped bool
	digits  int // of \uXXXX that are still to come
	code    rune
}

// ends reports that a byte is the quote that ends the string. A quote within the
// digits of an escape is no JSON, and ends it, too.
func (u *stringDecoder) ends(b byte) bool { return b == '"' && !u.escaped }

// feed takes a byte; whole is true when it completes a character. Of what is no
// JSON the character is -1.
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
		if b == '/' {
			return '/', true
		}
		return -1, true // no other escape can occur in what is looked for
	case b == '\\':
		u.escaped = true
		return 0, false
	default:
		return rune(b), true
	}
}
