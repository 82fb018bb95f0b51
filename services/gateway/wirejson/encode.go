// Package wirejson is the JSON codec of the public API. It walks messages by reflection and
// writes what the protocol's schemas require and proto3's JSON mapping does not: integers as
// numbers, zero values present, open JSON byte for byte.
//
// A field marked optional in the proto file is omitted when unset; every other field is always
// written. A JsonDocument is written as its content.
package wirejson

import (
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/protocol/wire"
)

// Append appends the JSON of a message.
func Append(b []byte, m proto.Message) ([]byte, error) {
	if d, ok := m.(*openwopv1.JsonDocument); ok {
		return appendDocument(b, d), nil
	}
	return appendMessage(b, m.ProtoReflect())
}

func appendDocument(b []byte, d *openwopv1.JsonDocument) []byte {
	if len(d.GetJson()) == 0 {
		return append(b, "null"...)
	}
	return append(b, d.GetJson()...)
}

func appendMessage(b []byte, m protoreflect.Message) ([]byte, error) {
	if d, ok := m.Interface().(*openwopv1.JsonDocument); ok {
		return appendDocument(b, d), nil
	}
	b = append(b, '{')
	fields, first := m.Descriptor().Fields(), true
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.HasPresence() && !m.Has(f) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = wire.AppendString(b, f.JSONName())
		b = append(b, ':')
		var err error
		if b, err = appendField(b, f, m.Get(f)); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendField(b []byte, f protoreflect.FieldDescriptor, v protoreflect.Value) ([]byte, error) {
	if !f.IsList() {
		return appendValue(b, f, v)
	}
	list := v.List()
	b = append(b, '[')
	for i := range list.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendValue(b, f, list.Get(i)); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendValue(b []byte, f protoreflect.FieldDescriptor, v protoreflect.Value) ([]byte, error) {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return strconv.AppendBool(b, v.Bool()), nil
	case protoreflect.StringKind:
		return wire.AppendString(b, v.String()), nil
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return strconv.AppendInt(b, v.Int(), 10), nil
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return strconv.AppendUint(b, v.Uint(), 10), nil
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		if math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0) {
			return nil, fmt.Errorf("field %s: JSON has no such number", f.FullName())
		}
		return strconv.AppendFloat(b, v.Float(), 'g', -1, 64), nil
	case protoreflect.MessageKind:
		return appendMessage(b, v.Message())
	default:
		return nil, fmt.Errorf("field %s: the public API has no fields of kind %s", f.FullName(), f.Kind())
	}
}
