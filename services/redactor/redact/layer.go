package redact

import (
	"unicode/utf16"
	"unicode/utf8"
)

// maxLayers is how many layers of JSON's escapes are looked behind: a model's
// answer is a JSON text, of which a string may be a JSON text again.
const maxLayers = 2

// layer is a pass's text as it reads behind JSON's escapes: of the text itself, or
// of the layer above. Its positions are still those of the text, so that a match
// tells what to take out there.
type layer struct {
	state int32
	// from are the positions of the last characters, as many as may still become
	// part of a match.
	from []int
	// held is an escape that is not complete.
	held []char
}

// char is a byte of a layer, and what stands for it in the text.
type char struct {
	c          byte
	start, end int
}

// wake begins the layers at a backslash: up to there they are the text as it is.
func (p *pass) wake(pos int) {
	p.awake = true
	for k := range p.layers {
		l := &p.layers[k]
		l.state, l.from, l.held = p.state, l.from[:0], l.held[:0]
		for i := pos - int(p.a.pending[p.state]); i < pos; i++ {
			l.from = append(l.from, i)
		}
	}
}

// rest ends the layers where they are the text again: all they may still find
// begins behind the last escape, and the text's own state has it too.
func (p *pass) rest() {
	for k := range p.layers {
		if l := &p.layers[k]; len(l.held) > 0 || len(l.from) > 0 && l.from[0] < p.escaped {
			return
		}
	}
	p.awake = false
}

// open is the first position that a match to come may begin at.
func (p *pass) open() int {
	at := p.pos - int(p.a.pending[p.state])
	if !p.awake {
		return at
	}
	for k := range p.layers {
		l := &p.layers[k]
		if len(l.from) > 0 {
			at = min(at, l.from[0])
		}
		if len(l.held) > 0 {
			at = min(at, l.held[0].start)
		}
	}
	return at
}

// read gives a character of the layer above to layer k, which decodes it.
func (p *pass) read(k int, c char) {
	if k == len(p.layers) {
		return
	}
	l := &p.layers[k]
	if len(l.held) == 0 && c.c != '\\' {
		p.show(k, c)
		return
	}
	l.held = append(l.held, c)
	text, size, ok := decode(l.held)
	if !ok {
		return // more must come
	}
	// What follows the escape, or the backslash that began none, is read anew: it
	// may begin one.
	first, end := l.held[0], l.held[size-1].end
	if size > 1 {
		p.escaped = end
	}
	var rest [2 * escapeSize]char
	n := copy(rest[:], l.held[size:])
	l.held = l.held[:0]
	for i := range len(text) {
		p.show(k, char{text[i], first.start, end})
	}
	for _, c := range rest[:n] {
		p.read(k, c)
	}
}

// show moves layer k on by a character, and the layers below it.
func (p *pass) show(k int, c char) {
	l := &p.layers[k]
	l.state = p.a.next(l.state, c.c)
	l.from = append(l.from, c.start)
	if m := p.a.match[l.state]; m >= 0 {
		p.note(span{l.from[len(l.from)-len(p.a.patterns[m].text)], c.end, m})
	}
	l.from = l.from[len(l.from)-int(p.a.pending[l.state]):]
	p.read(k+1, c)
}

// escapeSize is the length of \uXXXX.
const escapeSize = 6

// decode reads the escape that held begins with: what it stands for, and how long
// it is. A backslash that begins none stands for itself. ok is false while that
// cannot be told.
func decode(held []char) (text string, size int, ok bool) {
	if len(held) < 2 {
		return "", 0, false
	}
	switch c := held[1].c; c {
	case '"', '\\', '/':
		return string(rune(c)), 2, true
	case 'n':
		return "\n", 2, true
	case 'r':
		return "\r", 2, true
	case 't':
		return "\t", 2, true
	case 'b':
		return "\b", 2, true
	case 'f':
		return "\f", 2, true
	case 'u':
		return decodeUnicode(held)
	case '~': // an escaped slash whose text became a name in a JSON pointer
		if len(held) < 3 {
			return "", 0, false
		}
		if held[2].c == '1' {
			return "/", 3, true
		}
		return `\`, 1, true
	default:
		return `\`, 1, true
	}
}

func decodeUnicode(held []char) (text string, size int, ok bool) {
	high, whole, valid := unit(held)
	switch {
	case !valid:
		return `\`, 1, true
	case !whole:
		return "", 0, false
	case !utf16.IsSurrogate(high):
		return string(high), escapeSize, true
	}
	low, whole, valid := unit(held[escapeSize:])
	r := utf16.DecodeRune(high, low)
	switch {
	case valid && !whole:
		return "", 0, false
	case !valid || r == utf8.RuneError: // half a pair stands for nothing
		return string(utf8.RuneError), escapeSize, true
	default:
		return string(r), 2 * escapeSize, true
	}
}

// unit reads \uXXXX; valid is false if this is none, whole if it has not ended.
func unit(held []char) (v rune, whole, valid bool) {
	for i, h := range held[:min(len(held), escapeSize)] {
		digit := hexDigit(h.c)
		switch {
		case i == 0 && h.c == '\\', i == 1 && h.c == 'u':
		case i < 2 || digit < 0:
			return 0, false, false
		default:
			v = v<<4 | digit
		}
	}
	return v, len(held) >= escapeSize, true
}

func hexDigit(c byte) rune {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0')
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10
	default:
		return -1
	}
}
