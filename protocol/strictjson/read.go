package strictjson

import (
	"encoding/json"
	"reflect"
)

// stored limits documents that were accepted earlier under other limits.
var stored = Limits{MaxBytes: 64 << 20, MaxDepth: 1024}

// Read checks b as Check does and stores the members named by v's types; it skips all others. It is
// for documents accepted earlier and reads the same values as Decode did then: encoding/json alone
// would accept "Model" for "model" and keep the last of both. Errors are an *Error, or one of
// encoding/json for a value of another type.
func Read(b []byte, v any) error {
	if err := check(b, stored); err != nil {
		return err
	}
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer {
		return &Error{Rule: RuleType, Reason: "the target is not a pointer"}
	}
	w := walker{scanner: scanner{b: b, maxDepth: len(b)}, fields: map[reflect.Type]*fields{}}
	w.space()
	return json.Unmarshal(w.pick(make([]byte, 0, len(b)), t.Elem()), v)
}

// pick appends the next value to out without the members that t does not have, and skips it. A
// value that does not fit t is appended unchanged.
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
		name, _ := w.text() // checked before
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
