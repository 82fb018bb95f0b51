package strictjson

import (
	"encoding"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

var (
	rawType             = reflect.TypeFor[json.RawMessage]()
	numberType          = reflect.TypeFor[json.Number]()
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// conform compares a checked document with the type of v.
func conform(b []byte, v any) error {
	w := walker{scanner: scanner{b: b, maxDepth: len(b)}, fields: map[reflect.Type]*fields{}}
	if err := w.walk(v); err != nil {
		return err
	}
	return nil
}

// nonconforming is conform that goes on after an error and finds all of them.
func nonconforming(b []byte, v any) []*Error {
	w := walker{scanner: scanner{b: b, maxDepth: len(b)}, fields: map[reflect.Type]*fields{}, collect: true}
	if err := w.walk(v); err != nil {
		return []*Error{err}
	}
	return w.found
}

// walker compares a document that the scanner has accepted with Go types.
type walker struct {
	scanner
	fields map[reflect.Type]*fields // struct types already analyzed
	// collect adds errors of members and elements to found, and continues.
	collect bool
	found   []*Error
}

func (w *walker) walk(v any) *Error {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer {
		return &Error{Rule: RuleType, Reason: "the target is not a pointer"}
	}
	w.space()
	return w.value(t.Elem())
}

// child compares the value of a member or an element with t and steps past it. Its errors are placed
// below token.
func (w *walker) child(token string, t reflect.Type) *Error {
	start, before := w.i, len(w.found)
	err := w.value(t)
	if err != nil && w.collect {
		w.found = append(w.found, err)
		w.i = start
		w.skip()
		err = nil
	}
	for _, e := range w.found[before:] {
		_ = e.under(token) // in place
	}
	if err != nil {
		return err.under(token)
	}
	return nil
}

// skip skips one value and returns its bytes.
func (w *walker) skip() []byte {
	start := w.i
	_ = w.scanner.value(0) // checked before
	return w.b[start:w.i]
}

func (w *walker) wrong(want string) *Error {
	return w.fail(RuleType, "want "+want+", got "+KindOf([]byte{w.peek()}))
}

// value compares the next value with t and skips it.
func (w *walker) value(t reflect.Type) *Error {
	switch {
	case t.Kind() == reflect.Interface || t == rawType:
		w.skip()
		return nil
	case t.Kind() == reflect.Pointer:
		if w.peek() == 'n' {
			w.skip()
			return nil
		}
		return w.value(t.Elem())
	case reflect.PointerTo(t).Implements(unmarshalerType), reflect.PointerTo(t).Implements(textUnmarshalerType):
		return w.custom(t)
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return w.object(t)
	case reflect.Slice, reflect.Array:
		return w.array(t)
	default:
		return w.scalar(t)
	}
}

// custom lets a type with its own unmarshaler validate its value.
func (w *walker) custom(t reflect.Type) *Error {
	start := w.i
	raw := w.skip()
	err := json.Unmarshal(raw, reflect.New(t).Interface())
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{Path: e.Path, Offset: start + e.Offset, Rule: e.Rule, Reason: e.Reason}
	}
	// The type's error may quote the value, so it is not passed on.
	return &Error{Offset: start, Rule: RuleType, Reason: "not a valid " + t.Name()}
}

func (w *walker) object(t reflect.Type) *Error {
	if w.peek() != '{' {
		return w.wrong("an object")
	}
	for w.next('}') {
		start := w.i
		name, _ := w.text() // checked before
		member := name.decode(w.b)
		target, err := w.target(t, member)
		if err != nil {
			err.Offset = start
			if !w.collect {
				return err.under(member)
			}
			w.found = append(w.found, err.under(member))
			target = reflect.TypeFor[any]()
		}
		w.space()
		w.i++ // the colon
		w.space()
		if err := w.child(member, target); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) array(t reflect.Type) *Error {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		if w.peek() != '"' {
			return w.wrong("a string of base64")
		}
		return w.custom(t)
	}
	if w.peek() != '[' {
		return w.wrong("an array")
	}
	for n := 0; w.next(']'); n++ {
		if err := w.child(strconv.Itoa(n), t.Elem()); err != nil {
			return err
		}
	}
	return nil
}

// next skips the opening bracket or comma and the space around it, and reports whether an element
// follows. If not, it skips the closing bracket too.
func (w *walker) next(closing byte) bool {
	w.space()
	if w.peek() == closing {
		w.i++
		return false
	}
	w.i++
	w.space()
	if w.peek() == closing { // empty
		w.i++
		return false
	}
	return true
}

// target returns the type that a member of t decodes into.
func (w *walker) target(t reflect.Type, member string) (reflect.Type, *Error) {
	if t.Kind() == reflect.Map {
		return t.Elem(), nil
	}
	f, ok := w.fields[t]
	if !ok {
		f = fieldsOf(t)
		w.fields[t] = f
	}
	if target, ok := f.types[member]; ok {
		return target, nil
	}
	return nil, &Error{Rule: RuleUnknown, Reason: "unknown member; " + f.allowed(), Known: slices.Sorted(maps.Keys(f.types))}
}

func (w *walker) scalar(t reflect.Type) *Error {
	c := w.peek()
	isNumber := c == '-' || '0' <= c && c <= '9'
	switch {
	case t == numberType:
		if !isNumber {
			return w.wrong("a number")
		}
	case t.Kind() == reflect.String:
		if c != '"' {
			return w.wrong("a string")
		}
	case t.Kind() == reflect.Bool:
		if c != 't' && c != 'f' {
			return w.wrong("true or false")
		}
	case reflect.Int <= t.Kind() && t.Kind() <= reflect.Float64:
		if !isNumber {
			return w.wrong("a number")
		}
		return w.numeric(t)
	}
	w.skip()
	return nil
}

// numeric checks that the number fits t as encoding/json reads it.
func (w *walker) numeric(t reflect.Type) *Error {
	start := w.i
	literal := string(w.skip())
	var err error
	want := "an integer, without fraction or exponent, of " + t.Kind().String() + " range"
	switch {
	case t.Kind() >= reflect.Float32:
		want = "a number of " + t.Kind().String() + " range"
		_, err = strconv.ParseFloat(literal, t.Bits())
	case t.Kind() >= reflect.Uint:
		_, err = strconv.ParseUint(literal, 10, t.Bits())
	default:
		_, err = strconv.ParseInt(literal, 10, t.Bits())
	}
	if err != nil {
		return &Error{Offset: start, Rule: RuleType, Reason: "want " + want}
	}
	return nil
}

// listNames joins names for a reason, and stops before it gets long.
func listNames(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
