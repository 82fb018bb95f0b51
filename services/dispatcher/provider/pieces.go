package provider

import (
	"hash/maphash"
	"strings"
)

// pieces reads the pieces of a streamed text, of servers that send what is new in each piece and of those
// that repeat all text so far. It also leaves out a piece that repeats the whole text at its end. The zero
// pieces are ready.
type pieces struct {
	form pieceForm
	// unsure are the pieces so far while the form is unknown. Each begins with the one before; grown of them
	// continue it.
	unsure []string
	grown  int
	// whole is the text so far of a server that repeats it. sent bytes of it, or of the first piece, were
	// returned.
	whole string
	sent  int
	// sum, size and count describe the text of new pieces.
	sum         maphash.Hash
	size, count int
}

type pieceForm int

const (
	formUnknown pieceForm = iota
	formNew               // pieces have what is new
	formWhole             // pieces repeat the text
)

const (
	// maxUnsure and maxUnsureBytes limit what is kept while the form is unknown, such as a line of dashes. A
	// second piece that repeats the first may be longer.
	maxUnsure      = 64
	maxUnsureBytes = 64 << 10
	// A text of tellingBytes with tellingLetters different bytes is not repeated by chance.
	tellingBytes   = 16
	tellingLetters = 6
)

func isTelling(text string) bool {
	if len(text) < tellingBytes {
		return false
	}
	seen := map[byte]bool{}
	for i := 0; i < len(text) && len(seen) < tellingLetters; i++ {
		seen[text[i]] = true
	}
	return len(seen) == tellingLetters
}

// add returns the text that a piece adds, as far as it is certain. ok is false if a server that repeats its
// text changes it.
func (p *pieces) add(piece string) (text string, ok bool) {
	switch {
	case piece == "":
		return "", true
	case p.form == formNew:
		return p.addNew(piece), true
	case p.form == formWhole:
		return p.addWhole(piece)
	case len(p.unsure) == 0:
		p.unsure, p.sent = []string{piece}, certain(piece)
		return piece[:p.sent], true
	}
	before := p.unsure[len(p.unsure)-1]
	if piece == before {
		piece = before // keep it once
	}
	p.unsure = append(p.unsure, piece)
	if len(piece) > len(before) {
		p.grown++
	}
	if !strings.HasPrefix(piece, before[:certain(before)]) || p.grown < 2 && p.isLarge() {
		return p.decideNew(), true
	}
	if p.grown > 1 || p.grown == 1 && isTelling(before) {
		p.form, p.whole, p.unsure = formWhole, p.unsure[0], nil
		return p.addWhole(piece)
	}
	return "", true
}

// isLarge reports whether more is kept than may be while the form is unknown.
func (p *pieces) isLarge() bool {
	n := 0
	for _, piece := range p.unsure {
		n += len(piece)
	}
	return len(p.unsure) > maxUnsure || n > maxUnsureBytes && (len(p.unsure) > 2 || !isTelling(p.unsure[0]))
}

// flush returns the rest of the text at its end.
func (p *pieces) flush() string {
	switch {
	case p.form == formNew || p.form == formUnknown && len(p.unsure) == 0:
		return ""
	case p.form == formUnknown && len(p.unsure) > 1 && !p.isRepeated():
		return p.decideNew()
	case p.form == formUnknown:
		p.form, p.whole = formWhole, p.unsure[len(p.unsure)-1]
	}
	rest := p.whole[p.sent:]
	p.sent = len(p.whole)
	return rest
}

// isRepeated reports whether the only pieces repeat the text.
func (p *pieces) isRepeated() bool {
	first, last := p.unsure[0], p.unsure[len(p.unsure)-1]
	if p.grown == 0 {
		return len(p.unsure) == 2 && isTelling(first)
	}
	return len(first) > 1 && isTelling(last)
}

// decideNew returns the text of the pieces that were kept: they have what is new.
func (p *pieces) decideNew() string {
	var text strings.Builder
	for _, piece := range p.unsure {
		text.WriteString(p.addNew(piece))
	}
	p.form, p.unsure = formNew, nil
	return text.String()[p.sent:]
}

// addNew returns a piece, unless it repeats the whole text.
func (p *pieces) addNew(piece string) string {
	if p.count > 1 && len(piece) == p.size && isTelling(piece) && maphash.String(p.sum.Seed(), piece) == p.sum.Sum64() {
		return ""
	}
	_, _ = p.sum.WriteString(piece) // it never fails
	p.size += len(piece)
	p.count++
	return piece
}

// addWhole returns what a repeated text adds.
func (p *pieces) addWhole(piece string) (text string, ok bool) {
	switch {
	case strings.HasPrefix(p.whole, piece): // of an earlier state
		return "", true
	case !strings.HasPrefix(piece, p.whole[:p.sent]):
		return "", false
	}
	text, p.whole = piece[p.sent:max(p.sent, certain(piece))], piece
	p.sent += len(text)
	return text, true
}

// certain returns the length of a piece without the replacement characters at its end: servers that repeat
// the text have them there for a character that is not complete.
func certain(piece string) int { return len(strings.TrimRight(piece, "\ufffd")) }
