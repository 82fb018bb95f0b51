// Package withhold keeps large assets out of a text that is recorded while it
// arrives. An asset above the inline cap stands in no event, whichever way it
// gets there (OpenWOP envelope contract §17); the rest of the text streams on.
package withhold

import (
	"fmt"
	"strings"
)

// Filter reads JSON that arrives in pieces, among whatever text a model puts
// around it, and replaces the values that are too large: those of members named
// base64, and texts that are data: URLs. It belongs to one goroutine.
//
// It takes any quote for the beginning of a string. Text around a document may
// have quotes in any number, and a filter that counted them could be led to take
// the inside of a string for the outside.
type Filter struct {
	max   int // bytes of an asset that may be shown
	place place
	unit  unit
	name  []byte // what was read of a string that may be a name or a data: URL
	held  []byte // the value so far, as it is spelled
	chars int    // characters of the value that count
	gone  bool   // the value was replaced; the rest of it is dropped
}

// place is where in the text the filter is.
type place int

const (
	between   place = iota // nothing of interest
	inName                 // after a quote
	afterName              // after the name base64
	afterColon
	inValue
)

const (
	member = "base64"
	scheme = "data:"
)

// New makes a filter that lets assets of up to maxBytes through.
func New(maxBytes int) *Filter { return &Filter{max: maxBytes} }

// Write takes a piece and gives what may be shown. A value is held back until it
// is known to be small enough; with last, all that is left comes out.
func (f *Filter) Write(piece string, last bool) string {
	var out strings.Builder
	out.Grow(len(piece))
	for i := 0; i < len(piece); {
		if f.place == between {
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
		*f = Filter{max: f.max}
	}
	return out.String()
}

// step reads one byte.
func (f *Filter) step(out *strings.Builder, b byte) {
	if f.place == inValue {
		f.value(out, b)
		return
	}
	out.WriteByte(b)
	switch f.place {
	case between:
		f.begin() // Write stops at quotes only
	case inName:
		f.read(b)
	case afterName, afterColon:
		switch {
		case b == ' ' || b == '\t' || b == '\r' || b == '\n':
		case b == ':' && f.place == afterName:
			f.place = afterColon
		case b == '"' && f.place == afterColon:
			f.enter()
		case b == '"':
			f.begin()
		default:
			f.place = between
		}
	}
}

func (f *Filter) begin() { f.place, f.name, f.unit = inName, f.name[:0], unit{} }

func (f *Filter) enter() { f.place, f.chars, f.gone, f.unit = inValue, 0, false, unit{} }

// read takes a byte of a string that may be a name.
func (f *Filter) read(b byte) {
	if f.unit.ends(b) {
		if string(f.name) == member {
			f.place = afterName
			return
		}
		f.begin() // the end of one string, or the beginning of another
		return
	}
	c, whole := f.unit.feed(b)
	if !whole {
		return
	}
	if c <= 0 || c > 0x7f {
		f.place = between
		return
	}
	f.name = append(f.name, byte(c))
	switch lower := strings.ToLower(string(f.name)); {
	case lower == scheme:
		f.enter()
	case !strings.HasPrefix(member, string(f.name)) && !strings.HasPrefix(scheme, lower):
		f.place = between
	}
}

// value takes a byte of a value.
func (f *Filter) value(out *strings.Builder, b byte) {
	if f.unit.ends(b) {
		out.Write(f.held)
		out.WriteByte(b)
		f.held, f.place = f.held[:0], between
		return
	}
	if f.gone {
		f.unit.feed(b)
		return
	}
	f.held = append(f.held, b)
	if c, whole := f.unit.feed(b); whole && c != '=' {
		f.chars++
	}
	if f.chars*3/4 > f.max {
		f.gone, f.held = true, nil
		fmt.Fprintf(out, "[omitted: an asset of more than %d bytes]", f.max)
	}
}

// unit reads the characters of a JSON string, escaped or not.
type unit struct {
	escaped bool
	digits  int // of \uXXXX that are still to come
	code    rune
}

// ends reports that a byte is the quote that ends the string. A quote within the
// digits of an escape is no JSON, and ends it, too.
func (u *unit) ends(b byte) bool { return b == '"' && !u.escaped }

// feed takes a byte; whole is true when it completes a character. Of what is no
// JSON the character is -1.
func (u *unit) feed(b byte) (c rune, whole bool) {
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
		return -1, true // no other one has a place in what is looked for
	case b == '\\':
		u.escaped = true
		return 0, false
	default:
		return rune(b), true
	}
}
