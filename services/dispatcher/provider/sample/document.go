package sample

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// object is a JSON object that keeps the order of its members: answers come in
// the order in which the schema lists the properties, as vendors do it.
type object struct {
	names  []string
	values map[string]any
}

func newObject() *object { return &object{values: map[string]any{}} }

func (o *object) set(name string, v any) {
	if _, ok := o.values[name]; !ok {
		o.names = append(o.names, name)
	}
	o.values[name] = v
}

func (o *object) has(name string) bool {
	_, ok := o.values[name]
	return ok
}

// hasAny reports whether o has one of the members.
func (o *object) hasAny(names ...string) bool { return slices.ContainsFunc(names, o.has) }

func (o *object) text(name string) string {
	s, _ := o.values[name].(string)
	return s
}

func (o *object) list(name string) []any {
	l, _ := o.values[name].([]any)
	return l
}

func (o *object) object(name string) *object {
	m, ok := o.values[name].(*object)
	if !ok {
		return newObject()
	}
	return m
}

// texts are the strings among a member's items.
func (o *object) texts(name string) []string {
	var out []string
	for _, v := range o.list(name) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// maxNesting bounds the recursion of decode.
const maxNesting = 512

var errNesting = errors.New("nested too deeply")

// decode reads a JSON document into nil, bool, string, json.Number, []any and
// *object. raw must be valid JSON.
func decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return decodeValue(d, 0)
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxNesting {
		return nil, errNesting
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		return decodeObject(d, depth)
	case json.Delim('['):
		return decodeArray(d, depth)
	default:
		return t, nil
	}
}

func decodeObject(d *json.Decoder, depth int) (any, error) {
	o := newObject()
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		s, _ := name.(string) // the decoder takes nothing else for a name
		o.set(s, v)
	}
	_, err := d.Token()
	return o, err
}

func decodeArray(d *json.Decoder, depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

// encode writes what decode reads, without spaces.
func encode(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case *object:
		encodeObject(b, v)
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			encode(b, item)
		}
		b.WriteByte(']')
	case string:
		encodeString(b, v)
	case json.Number:
		b.WriteString(v.String())
	case bool:
		if v {
			b.WriteString("true")
			return
		}
		b.WriteString("false")
	default:
		b.WriteString("null")
	}
}

func encodeObject(b *bytes.Buffer, o *object) {
	b.WriteByte('{')
	for i, name := range o.names {
		if i > 0 {
			b.WriteByte(',')
		}
		encodeString(b, name)
		b.WriteByte(':')
		encode(b, o.values[name])
	}
	b.WriteByte('}')
}

func encodeString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)         // a string always encodes, into a buffer that never fails
	b.Truncate(b.Len() - 1) // the encoder's newline
}

// key is a value's text, for comparing values.
func key(v any) string {
	var b bytes.Buffer
	encode(&b, v)
	return b.String()
}
