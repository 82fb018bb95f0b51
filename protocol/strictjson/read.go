package strictjson

import (
	"encoding/json"
	"reflect"
)

// stored bounds documents that were let in before, under limits of their own.
var stored = Limits{MaxBytes: 64 << 20, MaxDepth: 1024}

// Read checks b as Check does and stores what v's types name in the value v
// points to; other members are passed over. It reads a document that was let in
// before, and reads of it what the edge has read: encoding/json alone would take
// "Model" for "model", and of both the last. Errors are an *Error, or those of
// encoding/json for a value of another type than v's.
func Read(b []byte, v any) error {
	if err := check(b, stored); err != nil {
		return err
	}
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer {
		return &Error{Rule: RuleType, Reason: "the target is no pointer"}
	}
	w := walker{scanner: scanner{b: b, maxDepth: len(b)}, fields: map[reflect.Type]*fields{}}
	w.space()
	return json.Unmarshal(w.pick(make([]byte, 0, len(b)), t.Elem()), v)
}

// pick appends the next value to out without the members that t does not name,
// and steps past it. What does not fit t is appended as it is.
func (w *walker) pick(out []byte, t reflect.Type) []byte {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	own := reflect.PointerTo(t).Implements(unmarshalerType) || reflect.PointerTo(t).Implements(textUnmarshalerType)
	switch {
	case own || t == rawType:
	case w.peek() == '{' && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		return w.pickObject(out, t)
	case w.peek() == '[' && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		return w.pickArray(out, t.Elem())
	}
	return append(out, w.skip()...)
}

func (w *walker) pickObject(out []byte, t reflect.Type) []byte {
	out = append(out, '{')
	first := true
	for w.next('}') {
		start := w.i
		name, _ := w.text() // accepted before
		literal := w.b[start:w.i]
		target, unknown := w.target(t, name.decode(w.b))
		w.space()
		w.i++ // the colon
		w.space()
		if unknown != nil {
			w.skip()
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(append(out, literal...), ':')
		out = w.pick(out, target)
	}
	return append(out, '}')
}

func (w *walker) pickArray(out []byte, t reflect.Type) []byte {
	out = append(out, '[')
	for n := 0; w.next(']'); n++ {
		if n > 0 {
			out = append(out, ',')
		}
		out = w.pick(out, t)
	}
	return append(out, ']')
}
