// Package words finds the words of runs and of searches: what is between two characters that are
// neither letters nor numbers, in lower case. A character of a script without spaces is a word. The
// package is pure, so that all databases find the same runs.
package words

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
)

// Limits. maxBytes limits a word, Max the words of a part of a run. A run gets no more parts when it has
// more words than Max.
const (
	maxBytes = 48
	Max      = 1000
	maxAsked = 8
)

// searched are the events with contents of a run: outputs, answers, questions and errors. Inputs are in
// its record. All of them were redacted before they were recorded.
var searched = []wire.EventType{
	wire.EventRunCompleted, wire.EventRunFailed, wire.EventNodeCompleted, wire.EventNodeFailed, wire.EventNodeRetried,
	wire.EventArtifactCreated, wire.EventInterruptRequested, wire.EventInterruptResolved, wire.EventClarificationRequested,
	wire.EventClarificationResolved, wire.EventEnvelopeRefusal,
}

// OfFrame returns the words of a frame, at most Max; none of a frame that cannot be read.
func OfFrame(f *frame.Frame) []string {
	var s set
	if f.Kind.Begins() {
		rec, err := f.Record()
		if err != nil {
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(rec.Inputs)) {
			s.addJSON(rec.Inputs[name])
		}
		return s.list
	}
	if !slices.ContainsFunc(f.Types, func(t wire.EventType) bool { return slices.Contains(searched, t) }) {
		return nil
	}
	events, err := f.Events()
	if err != nil {
		return nil
	}
	for _, e := range events {
		if slices.Contains(searched, e.Type) {
			s.addJSON(e.Payload)
		}
	}
	return s.list
}

// errShort: a search has no word that is long enough.
var errShort = errors.New("want a word of 2 letters or more")

// Asked returns the words of a search without single letters, which are part of too many words. A run
// must have words that begin with each of them.
func Asked(text string) ([]string, error) {
	var s set
	s.add(text)
	asked := slices.DeleteFunc(s.list, func(w string) bool {
		c, size := utf8.DecodeRuneInString(w)
		return size == len(w) && !whole(c)
	})
	switch {
	case len(asked) == 0:
		return nil, errShort
	case len(asked) > maxAsked:
		return nil, fmt.Errorf("want at most %d words, got %d", maxAsked, len(asked))
	}
	return asked, nil
}

// set are different words in their order.
type set struct {
	list []string
	has  map[string]bool
}

// addJSON adds the words of a document's values, not of its names.
func (s *set) addJSON(doc []byte) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var (
		objects []bool // whether each open list or object is an object
		name    bool   // whether the next string is a name
	)
	inside := func() bool { return len(objects) > 0 && objects[len(objects)-1] }
	for len(s.list) < Max {
		t, err := d.Token()
		if err != nil {
			return
		}
		switch v := t.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				objects = append(objects, v == '{')
			} else {
				objects = objects[:len(objects)-1]
			}
			name = inside()
			continue
		case string:
			if name {
				name = false
				continue
			}
			s.add(v)
		case json.Number:
			s.add(v.String())
		}
		name = inside()
	}
}

func (s *set) add(text string) {
	for text != "" && len(s.list) < Max {
		start := strings.IndexFunc(text, part)
		if start < 0 {
			return
		}
		text = text[start:]
		end := strings.IndexFunc(text, func(c rune) bool { return !part(c) })
		if end < 0 {
			end = len(text)
		}
		if at := strings.IndexFunc(text[:end], whole); at == 0 {
			_, end = utf8.DecodeRuneInString(text)
		} else if at > 0 {
			end = at
		}
		s.put(cut(strings.ToLower(text[:end])))
		text = text[end:]
	}
}

func (s *set) put(word string) {
	if s.has == nil {
		s.has = map[string]bool{}
	}
	if !s.has[word] {
		s.has[word] = true
		s.list = append(s.list, word)
	}
}

func part(c rune) bool {
	return c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsNumber(c) || unicode.IsMark(c))
}

// whole reports whether a character is a word of its own.
func whole(c rune) bool {
	return unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// cut limits a word without cutting a character.
func cut(word string) string {
	if len(word) <= maxBytes {
		return word
	}
	end := maxBytes
	for !utf8.RuneStart(word[end]) {
		end--
	}
	return word[:end]
}

// Union returns the words of both lists, those of the first one first, at most limit.
func Union(a, b []string, limit int) []string {
	if len(a) >= limit {
		return a[:limit]
	}
	s := set{}
	for _, list := range [][]string{a, b} {
		for _, w := range list {
			if len(s.list) == limit {
				return s.list
			}
			s.put(w)
		}
	}
	return s.list
}
