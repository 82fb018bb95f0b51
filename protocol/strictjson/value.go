package strictjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
)

// Value checks b as Check does and gives it as encoding/json would with
// UseNumber: map[string]any, []any, string, json.Number, bool or nil. It keeps
// nothing of b, but one copy of it for as long as any text or number of the value lives.
func Value(b []byte, l Limits) (any, error) {
	if err := check(b, l.withDefaults()); err != nil {
		return nil, err
	}
	w := builder{walker: walker{scanner: scanner{b: b, maxDepth: len(b)}}, source: string(b)}
	w.space()
	return w.build(), nil
}

// builder makes Go values of an accepted document. Texts are parts of one copy of it, and
// what stands in an object or a list is put aside until it is known how much that is, so that
// each is made once, at its size.
type builder struct {
	walker
	source string
	names  []string
	values []any // also those of objects, one for each name
}

// build gives the next value and steps past it.
func (w *builder) build() any {
	start := w.i
	switch w.peek() {
	case '{':
		return w.object()
	case '[':
		return w.list()
	case '"':
		return w.text()
	case 't':
		w.i += len("true")
		return true
	case 'f':
		w.i += len("false")
		return false
	case 'n':
		w.i += len("null")
		return nil
	}
	_ = w.number()
	return json.Number(w.source[start:w.i])
}

func (w *builder) object() map[string]any {
	names, values := len(w.names), len(w.values)
	for w.next('}') {
		name := w.text()
		w.space()
		w.i++ // the colon
		w.space()
		value := w.build()
		w.names, w.values = pushed(w.names, name), pushed(w.values, value)
	}
	object := make(map[string]any, len(w.names)-names)
	for i, name := range w.names[names:] {
		object[name] = w.values[values+i]
	}
	w.names, w.values = w.names[:names], w.values[:values]
	return object
}

func (w *builder) list() []any {
	values := len(w.values)
	for w.next(']') {
		value := w.build()
		w.values = pushed(w.values, value)
	}
	list := make([]any, len(w.values)-values)
	copy(list, w.values[values:])
	w.values = w.values[:values]
	return list
}

// pushed doubles the room of a list that is full: append would copy a long one more often.
func pushed[T any](list []T, v T) []T {
	if len(list) == cap(list) {
		list = slices.Grow(list, max(len(list), 8))
	}
	return append(list, v)
}

func (w *builder) text() string {
	text, _ := w.walker.text() // accepted before
	if text.escaped {
		return text.decode(w.b)
	}
	return w.source[text.start:text.end]
}

// Same reports whether two documents say the same, whatever the order of their members and
// the space between them; numbers are compared as they are written. It bounds them as Read
// does. What Check would refuse is the same as nothing but its own bytes: of two readers each
// could see something else in it.
func Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errA := Value(a, stored)
	y, errB := Value(b, stored)
	return errA == nil && errB == nil && reflect.DeepEqual(x, y)
}
