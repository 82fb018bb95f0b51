package wirejson

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// Decode reads a request body into a message. Unknown members and values of the wrong type
// are rejected, with their place. Members listed in path come from the request's path and
// are not accepted in the body. Documents in m are slices of the body.
func Decode(body []byte, limits strictjson.Limits, m proto.Message, path ...string) error {
	if err := strictjson.Check(body, limits); err != nil {
		return asFault(err, limits)
	}
	if d, ok := m.(*openwopv1.JsonDocument); ok {
		d.Json = body
		return nil
	}
	return decodeMessage(body, "", m.ProtoReflect(), path)
}

// asFault converts an error of strictjson.
func asFault(err error, limits strictjson.Limits) error {
	e, ok := errors.AsType[*strictjson.Error](err)
	if !ok {
		return fault.New(fault.ValidationError, "the body is not JSON").Wrap(err)
	}
	if e.Rule == strictjson.RuleSize {
		return fault.New(fault.PayloadTooLarge, "%s", e.Reason).With("limitBytes", limits.MaxBytes)
	}
	return invalid(e.Path, e.Reason)
}

func invalid(path, message string) error {
	return fault.Invalid(fault.Problem{Path: path, Message: message})
}

func decodeMessage(body []byte, at string, m protoreflect.Message, skip []string) error {
	if strictjson.KindOf(body) != "an object" {
		return invalid(at, "want an object, got "+strictjson.KindOf(body))
	}
	fields := m.Descriptor().Fields()
	var first error
	strictjson.Each(body, func(text, raw []byte) {
		if first != nil {
			return
		}
		name := string(text)
		f := fields.ByJSONName(name)
		if f == nil || contains(skip, name) {
			first = fault.Invalid(unknown(at+"/"+jsonpointer.Escape(name), name, names(fields, skip)))
			return
		}
		first = decodeField(raw, at+"/"+jsonpointer.Escape(name), m, f)
	})
	return first
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// unknown is the problem of a member that an object does not have.
func unknown(path, name string, known []string) fault.Problem {
	p := fault.Problem{
		Path: path, Allowed: known, Suggestion: schema.Near(name, known),
		Message: "unknown member; known are " + strings.Join(known, ", "),
	}
	if p.Suggestion != "" {
		p.Message += "; did you mean " + p.Suggestion + "?"
	}
	return p
}

func names(fields protoreflect.FieldDescriptors, skip []string) (out []string) {
	for i := range fields.Len() {
		if n := fields.Get(i).JSONName(); !contains(skip, n) {
			out = append(out, n)
		}
	}
	return out
}

func decodeField(raw json.RawMessage, at string, m protoreflect.Message, f protoreflect.FieldDescriptor) error {
	if !f.IsList() {
		v, err := decodeValue(raw, at, m.NewField(f), f)
		if err != nil {
			return err
		}
		m.Set(f, v)
		return nil
	}
	var items []json.RawMessage
	if strictjson.KindOf(raw) != "an array" || json.Unmarshal(raw, &items) != nil {
		return invalid(at, "want an array, got "+strictjson.KindOf(raw))
	}
	list := m.Mutable(f).List()
	for i, item := range items {
		v, err := decodeValue(item, at+"/"+strconv.Itoa(i), list.NewElement(), f)
		if err != nil {
			return err
		}
		list.Append(v)
	}
	return nil
}

func decodeValue(raw json.RawMessage, at string, zero protoreflect.Value, f protoreflect.FieldDescriptor) (protoreflect.Value, error) {
	switch f.Kind() {
	case protoreflect.MessageKind:
		if d, ok := zero.Message().Interface().(*openwopv1.JsonDocument); ok {
			d.Json = raw
			return zero, nil
		}
		return zero, decodeMessage(raw, at, zero.Message(), nil)
	case protoreflect.StringKind:
		var s string
		if strictjson.KindOf(raw) != "a string" || json.Unmarshal(raw, &s) != nil {
			return zero, invalid(at, "want a string, got "+strictjson.KindOf(raw))
		}
		return protoreflect.ValueOfString(s), nil
	case protoreflect.BoolKind:
		var v bool
		if strictjson.KindOf(raw) != "a boolean" || json.Unmarshal(raw, &v) != nil {
			return zero, invalid(at, "want a boolean, got "+strictjson.KindOf(raw))
		}
		return protoreflect.ValueOfBool(v), nil
	case protoreflect.Int32Kind:
		var n int32
		if strictjson.KindOf(raw) != "a number" || json.Unmarshal(raw, &n) != nil {
			return zero, invalid(at, "want an integer of 32 bits")
		}
		return protoreflect.ValueOfInt32(n), nil
	default:
		return zero, invalid(at, "members of kind "+f.Kind().String()+" cannot be set")
	}
}
