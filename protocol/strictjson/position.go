package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/jsonpointer"
)

// Position is a place in a document, counted from 1. Columns count characters.
type Position struct{ Line, Column int }

// Positions returns a function that finds the position of a value or member by its JSON pointer. The
// place of a member is its name. A pointer to something that is missing has the place of what should have
// it. Of a document that is not JSON, it is the place of the error.
func Positions(doc []byte) func(pointer string) Position {
	if e, ok := errors.AsType[*Error](Check(doc, Limits{})); ok {
		return func(string) Position { return positionOf(doc, e.Offset) }
	}
	l := locator{d: json.NewDecoder(bytes.NewReader(doc)), doc: doc, at: map[string]int{}}
	if err := l.value(""); err != nil {
		return func(string) Position { return Position{1, 1} }
	}
	return func(pointer string) Position {
		for {
			if offset, ok := l.at[pointer]; ok {
				return positionOf(doc, offset)
			}
			i := strings.LastIndexByte(pointer, '/')
			if i < 0 {
				return Position{1, 1}
			}
			pointer = pointer[:i]
		}
	}
}

// locator records the offset of each value by its pointer.
type locator struct {
	d   *json.Decoder
	doc []byte
	at  map[string]int
}

// next is the offset of the next token.
func (l *locator) next() int {
	i := int(l.d.InputOffset())
	for i < len(l.doc) && strings.IndexByte(" \t\r\n,:", l.doc[i]) >= 0 {
		i++
	}
	return i
}

func (l *locator) value(pointer string) error {
	if _, known := l.at[pointer]; !known {
		l.at[pointer] = l.next()
	}
	t, err := l.d.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('{'):
		for l.d.More() {
			offset := l.next()
			name, err := l.d.Token()
			if err != nil {
				return err
			}
			text, _ := name.(string)
			below := pointer + "/" + jsonpointer.Escape(text)
			l.at[below] = offset
			if err := l.value(below); err != nil {
				return err
			}
		}
	case json.Delim('['):
		for i := 0; l.d.More(); i++ {
			if err := l.value(pointer + "/" + strconv.Itoa(i)); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = l.d.Token()
	return err
}

// positionOf converts an offset.
func positionOf(doc []byte, offset int) Position {
	before := doc[:min(offset, len(doc))]
	line := bytes.Count(before, []byte("\n")) + 1
	return Position{line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1}
}

// Problem is a mistake in a document that a person wrote.
type Problem struct { //nolint:errname // it is data, and an error where one mistake is reported
	// Path is a JSON pointer.
	Path    string
	Message string
	// Position is its place; zero if it is unknown.
	Position
}

// Error returns line, path and message.
func (p Problem) Error() string {
	text := fmt.Sprintf("at %q: %s", p.Path, p.Message)
	if p.Line > 0 {
		text = fmt.Sprintf("line %d, %s", p.Line, text)
	}
	return text
}

// Problems are all mistakes of a document.
type Problems []Problem //nolint:errname // as above

// Error has a line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].Error()
	}
	return strings.Join(lines, "\n")
}

// In returns the problems with their positions in the document.
func (p Problems) In(doc []byte) Problems {
	at := Positions(doc)
	out := make(Problems, len(p))
	for i := range p {
		out[i] = p[i]
		out[i].Position = at(p[i].Path)
	}
	return out
}
