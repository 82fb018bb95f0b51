package strictjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
)

// Value checks b as Check does and returns what encoding/json returns with UseNumber:
// map[string]any, []any, string, json.Number, bool or nil. Strings and numbers share one copy of b.
func Value(b []byte, l Limits) (any, error) {
	if err := check(b, l.withDefaults()); err != nil {
		return nil, err
	}
	w := builder{walker: walker{scanner: scanner{b: b, maxDepth: len(b)}}, source: string(b)}
	w.space()
	return w.build(), nil
}

// builder makes Go values of a checked document. Strings are slices of one copy of it. Elements are
// collected first, so that each list and object is allocated once, at its final size.
type builder struct {
	walker
	source string
	names  []string
	values []any // including values of objects, one per name
}

// build returns the next value and skips it.
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

// pushed appends and doubles the capacity of a full list; append would copy long lists more often.
func pushed[T any](list []T, v T) []T {
	if len(list) == cap(list) {
		list = slices.Grow(list, max(len(list), 8))
	}
	return append(list, v)
}

func (w *builder) text() string {
	text, _ := w.walker.text() // checked before
	if text.escaped {
		return text.decode(w.b)
	}
	return w.source[text.start:text.end]
}

// Same reports whether two documents are equal, regardless of member order and space; numbers are
// compared as written. It applies the limits of Read. A document that Check rejects equals only its
// own bytes, because different readers could see different values in it.
func Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errA := Value(a, stored)
	y, errB := Value(b, stored)
	return errA == nil && errB == nil && reflect.DeepEqual(x, y)
}
