package strictjson

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Value checks b as Check does and gives it as encoding/json would with
// UseNumber: map[string]any, []any, string, json.Number, bool or nil. It keeps
// nothing of b.
func Value(b []byte, l Limits) (any, error) {
	if err := check(b, l.withDefaults()); err != nil {
		return nil, err
	}
	w := walker{scanner: scanner{b: b, maxDepth: len(b)}}
	w.space()
	return w.build(), nil
}

// build gives the next value of an accepted document and steps past it.
func (w *walker) build() any {
	start := w.i
	switch w.peek() {
	case '{':
		object := map[string]any{}
		for w.next('}') {
			name, _ := w.text() // accepted before
			w.space()
			w.i++ // the colon
			w.space()
			object[name.decode(w.b)] = w.build()
		}
		return object
	case '[':
		list := []any{}
		for w.next(']') {
			list = append(list, w.build())
		}
		return list
	case '"':
		text, _ := w.text()
		return text.decode(w.b)
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
	return json.Number(w.b[start:w.i])
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
