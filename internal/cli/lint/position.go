package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/strictjson"
)

// position is a place in a file, counted from 1. Columns count characters.
type position struct{ Line, Column int }

// locate returns the position of a value or member by its JSON pointer. The place of a member is its
// name. A pointer to something that is missing has the place of what should have it. Of a document that
// is not JSON, it is the place of the error.
func locate(doc []byte, pointer string) position {
	l := locator{d: json.NewDecoder(bytes.NewReader(doc)), doc: doc, at: map[string]int{}}
	if err := strictjson.Check(doc, strictjson.Limits{}); err != nil {
		if e, ok := errors.AsType[*strictjson.Error](err); ok {
			return placeOf(doc, e.Offset)
		}
	}
	if err := l.value(""); err != nil {
		return position{1, 1}
	}
	for {
		if offset, ok := l.at[pointer]; ok {
			return placeOf(doc, offset)
		}
		i := strings.LastIndexByte(pointer, '/')
		if i < 0 {
			return position{1, 1}
		}
		pointer = pointer[:i]
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
			below := pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(text)
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

// placeOf converts an offset.
func placeOf(doc []byte, offset int) position {
	before := doc[:min(offset, len(doc))]
	line := bytes.Count(before, []byte("\n")) + 1
	return position{line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1}
}
