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
	max        int // bytes of an assetText that may be shown
	assetPlace assetPlace
	textUnit   textUnit
	name       []byte // what was read of a string that may be a name or a data: URL
	held       []byte // the value so far, as it is spelled
	chars      int    // characters of the value that count
	gone       bool   // the value was replaced; the rest of it is dropped
}

// assetPlace is where in the text the filter is.
type assetPlace int

const (
	between   assetPlace = iota // nothing of interest
	inName                      // after a quote
	afterName                   // after the name base64
	afterColon
	inValue
)

const (
	member = "base64"
	scheme = "data:"
)

// NewMediaFilter makes a filter that lets assets of up to maxBytes through.
func NewMediaFilter(maxBytes int) *MediaFilter { return &MediaFilter{max: maxBytes} }

// Write takes a piece and gives what may be shown. A value is held back until it
// is known to be small enough; with last, all that is left comes out.
func (f *MediaFilter) Write(piece string, last bool) string {
	var out strings.Builder
	out.Grow(len(piece))
	for i := 0; i < len(piece); {
		if f.assetPlace == between {
			n := strings.IndexByte(piece[i:], '"')
			if n < 0 {
				out.WriteString(piece[i:])
				break
			}
			out.WriteString(piece[i : i+n])
			i += n
		}
		f.step(&out, piece[i])
		i++
	}
	if last {
		out.Write(f.held)
		*f = MediaFilter{max: f.max}
	}
	return out.String()
}

// step reads one byte.
func (f *MediaFilter) step(out *strings.Builder, b byte) {
	if f.assetPlace == inValue {
		f.value(out, b)
		return
	}
	out.WriteByte(b)
	switch f.assetPlace {
	case between:
		f.begin() // Write stops at quotes only
	case inName:
		f.read(b)
	case afterName, afterColon:
		switch {
		case b == ' ' || b == '\t' || b == '\r' || b == '\n':
		case b == ':' && f.assetPlace == afterName:
			f.assetPlace = afterColon
		case b == '"' && f.assetPlace == afterColon:
			f.enter()
		case b == '"':
			f.begin()
		default:
			f.assetPlace = between
		}
	}
}

func (f *MediaFilter) begin() { f.assetPlace, f.name, f.textUnit = inName, f.name[:0], textUnit{} }

func (f *MediaFilter) enter() {
	f.assetPlace, f.chars, f.gone, f.textUnit = inValue, 0, false, textUnit{}
}

// read takes a byte of a string that may be a name.
func (f *MediaFilter) read(b byte) {
	if f.textUnit.ends(b) {
		if string(f.name) == member {
			f.assetPlace = afterName
			return
		}
		f.begin() // the end of one string, or the beginning of another
		return
	}
	c, whole := f.textUnit.feed(b)
	if !whole {
		return
	}
	if c <= 0 || c > 0x7f {
		f.assetPlace = between
		return
	}
	f.name = append(f.name, byte(c))
	switch lower := strings.ToLower(string(f.name)); {
	case lower == scheme:
		f.enter()
	case !strings.HasPrefix(member, string(f.name)) && !strings.HasPrefix(scheme, lower):
		f.assetPlace = between
	}
}

// value takes a byte of a value.
func (f *MediaFilter) value(out *strings.Builder, b byte) {
	if f.textUnit.ends(b) {
		out.Write(f.held)
		out.WriteByte(b)
		f.held, f.assetPlace = f.held[:0], between
		return
	}
	if f.gone {
		f.textUnit.feed(b)
		return
	}
	f.held = append(f.held, b)
	if c, whole := f.textUnit.feed(b); whole && c != '=' {
		f.chars++
	}
	if f.chars*3/4 > f.max {
		f.gone, f.held = true, nil
		fmt.Fprintf(out, "[omitted: an asset of more than %d bytes]", f.max)
	}
}

// textUnit reads the characters of a JSON string, escaped or not.
type textUnit struct {
	escaped bool
	digits  int // of \uXXXX that are still to come
	code    rune
}

// ends reports that a byte is the quote that ends the string. A quote within the
// digits of an escape is no JSON, and ends it, too.
func (u *textUnit) ends(b byte) bool { return b == '"' && !u.escaped }

// feed takes a byte; whole is true when it completes a character. Of what is no
// JSON the character is -1.
func (u *textUnit) feed(b byte) (c rune, whole bool) {
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
		return -1, true // no other one has a assetPlace in what is looked for
	case b == '\\':
		u.escaped = true
		return 0, false
	default:
		return rune(b), true
	}
}
