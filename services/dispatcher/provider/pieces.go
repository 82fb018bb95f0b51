package provider

import (
	"encoding/json"
	"hash/maphash"
	"strings"
)

// pieces reads the pieces of a streamed text, of servers that send what is new in each piece and of those
// that repeat all text so far. It also leaves out a last piece that repeats the whole text. The zero
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
	// again is a piece that repeats the text of new pieces, and came repeats times. It is dropped if it is the
	// last one.
	again   string
	repeats int
	// ended is the text before this one, if it came in one piece: a server that repeats it adds nothing.
	ended string
	// received is the number of bytes of all pieces.
	received int
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
	// maxRepeats limits how often the text is repeated at its end.
	maxRepeats = 3
	// maxReceived limits the pieces of one text together: those that repeat it may add nothing.
	maxReceived = 64 * MaxAnswerBytes
	// A text of tellingBytes with tellingLetters different bytes is not repeated by chance. If the text grows
	// more than once, the letters alone tell it.
	tellingBytes   = 16
	tellingLetters = 6
)

func isTelling(text string) bool {
	return len(text) >= tellingBytes && isVaried(text)
}

func isVaried(text string) bool {
	seen := map[byte]bool{}
	for i := 0; i < len(text) && len(seen) < tellingLetters; i++ {
		seen[text[i]] = true
	}
	return len(seen) == tellingLetters
}

// add returns the text that a piece adds, as far as it is certain. A server that repeats its text must not
// change it.
func (p *pieces) add(piece string) (text string, err error) {
	if p.received += len(piece); p.received > maxReceived {
		return "", &Error{Code: CodeContentTooLong, Message: "the model's server sent more than 576 MiB for an answer"}
	}
	switch {
	case piece == "", piece == p.ended && isTelling(piece):
		return "", nil
	case p.form == formNew:
		return p.addNew(piece), nil
	case p.form == formWhole:
		return p.addWhole(piece)
	case len(p.unsure) == 0:
		p.unsure, p.sent = []string{piece}, certain(piece)
		return piece[:p.sent], nil
	}
	before := p.unsure[len(p.unsure)-1]
	if piece == before {
		piece = before // keep it once
	}
	p.unsure = append(p.unsure, piece)
	if len(piece) > len(before) {
		p.grown++
	}
	switch {
	case !strings.HasPrefix(piece, before[:certain(before)]):
		return p.decideNew(), nil
	case !p.isPeriodic() && (p.grown > 1 && isVaried(before) || p.grown == 1 && isTelling(before)):
		return p.decideWhole()
	case !p.isLarge():
		return "", nil
	case p.isRepeated():
		return p.decideWhole()
	}
	return p.decideNew(), nil
}

// isPeriodic reports whether the last piece has nothing but the first one again and again, as laughter and
// lines of stars have.
func (p *pieces) isPeriodic() bool {
	period, last := certain(p.unsure[0]), p.unsure[len(p.unsure)-1]
	return period > 0 && strings.HasPrefix(last, last[period:])
}

// isLarge reports whether more is kept than may be while the form is unknown.
func (p *pieces) isLarge() bool {
	n := 0
	for _, piece := range p.unsure {
		n += len(piece)
	}
	return len(p.unsure) > maxUnsure || n > maxUnsureBytes && (len(p.unsure) > 2 || !isTelling(p.unsure[0]))
}

// flush returns the rest of the text at its end. What follows is another text, unless the server repeats
// its text.
func (p *pieces) flush() (rest string) {
	switch {
	case p.form == formUnknown && len(p.unsure) > 1 && p.isRepeated():
		p.form, p.whole, p.unsure = formWhole, p.unsure[len(p.unsure)-1], nil
	case p.form == formUnknown && len(p.unsure) > 0:
		if len(p.unsure) == 1 {
			p.ended = p.unsure[0]
		}
		rest = p.decideNew()
	}
	if p.form == formWhole {
		rest = p.whole[p.sent:]
		p.sent = len(p.whole)
		return rest
	}
	*p = pieces{received: p.received, ended: p.ended}
	return rest
}

// isRepeated reports whether the pieces so far repeat the text.
func (p *pieces) isRepeated() bool {
	first, last := p.unsure[0], p.unsure[len(p.unsure)-1]
	switch {
	case p.grown == 0: // two equal lines are a text, two equal documents are not
		return len(p.unsure) == 2 && isDocument(first)
	case p.grown > 1 && !p.isPeriodic():
		return true
	}
	return len(first) > 1 && isTelling(last)
}

// isDocument reports whether a text is a JSON object or array.
func isDocument(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text))
}

// decideWhole returns what the last of the pieces that were kept adds: they repeat the text.
func (p *pieces) decideWhole() (text string, err error) {
	last := p.unsure[len(p.unsure)-1]
	p.form, p.whole, p.unsure = formWhole, p.unsure[0], nil
	return p.addWhole(last)
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

// addNew returns a piece, unless it repeats the whole text: then the next one decides.
func (p *pieces) addNew(piece string) (text string) {
	switch {
	case p.repeats > 0 && p.repeats < maxRepeats && piece == p.again,
		p.repeats == 0 && p.count > 1 && len(piece) == p.size && isTelling(piece) && maphash.String(p.sum.Seed(), piece) == p.sum.Sum64():
		p.again = piece
		p.repeats++
		return ""
	}
	text = strings.Repeat(p.again, p.repeats) + piece
	p.again, p.repeats = "", 0
	_, _ = p.sum.WriteString(text) // it never fails
	p.size += len(text)
	p.count++
	return text
}

// addWhole returns what a repeated text adds.
func (p *pieces) addWhole(piece string) (text string, err error) {
	switch {
	case strings.HasPrefix(p.whole, piece): // of an earlier state
		return "", nil
	case !strings.HasPrefix(piece, p.whole[:p.sent]):
		return "", newChangedError()
	}
	text, p.whole = piece[p.sent:max(p.sent, certain(piece))], piece
	p.sent += len(text)
	return text, nil
}

// certain returns the length of a piece without the replacement characters at its end: servers that repeat
// the text have them there for a character that is not complete.
func certain(piece string) int { return len(strings.TrimRight(piece, "\ufffd")) }
