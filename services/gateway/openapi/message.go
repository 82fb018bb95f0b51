package openapi

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
)

// message returns a reference to the component of a message.
func (b *builder) message(d protoreflect.MessageDescriptor) object {
	// Clients generate types named XResponse of their own.
	name := strings.TrimSuffix(string(d.Name()), "Response")
	if name != string(d.Name()) {
		name += "Result"
	}
	if _, ok := b.messages[d.FullName()]; ok {
		return ref(name)
	}
	b.messages[d.FullName()] = struct{}{} // ends recursion
	s := b.inline(d, nil)
	s["description"] = b.messageText(d)
	return b.define(name, s)
}

func (b *builder) inline(d protoreflect.MessageDescriptor, skip []string) object {
	props, required := object{}, []string{}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if slices.Contains(skip, f.JSONName()) {
			continue
		}
		props[f.JSONName()] = b.field(f)
		if b.isRequired(d, f) {
			required = append(required, f.JSONName())
		}
	}
	out := object{"type": "object", "properties": props}
	if isRequest(d) {
		out["additionalProperties"] = false // answers are open: later releases may add members
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// isRequest reports whether clients send a message.
func isRequest(d protoreflect.MessageDescriptor) bool {
	return strings.HasSuffix(string(d.Name()), "Request") || strings.HasPrefix(string(d.Name()), "Annotation")
}

// isRequired reports whether a request must have a member, or an answer always has it. Handlers accept
// requests without a list unless the files say otherwise.
func (b *builder) isRequired(d protoreflect.MessageDescriptor, f protoreflect.FieldDescriptor) bool {
	name := string(f.FullName())
	if slices.Contains(b.shapes.Required, name) {
		b.used[name] = true
		return true
	}
	if slices.Contains(b.shapes.Optional, name) {
		b.used[name] = true
		return false
	}
	return !f.HasPresence() && (!isRequest(d) || !f.IsList())
}

// field returns the schema of a field, with its text.
func (b *builder) field(f protoreflect.FieldDescriptor) object {
	s := b.single(f)
	if f.IsList() {
		s = object{"type": "array", "items": s}
	}
	if own, ok := b.shapes.Bounds[string(f.FullName())]; ok {
		b.used[string(f.FullName())] = true
		for k, v := range resolved(own).(object) {
			s[k] = v
		}
	}
	if text := b.texts[string(f.FullName())]; text != "" && s["description"] == nil {
		s["description"] = text
	}
	return s
}

func (b *builder) single(f protoreflect.FieldDescriptor) object {
	if s, ok := b.member(string(f.FullName())); ok {
		return s
	}
	switch f.Kind() {
	case protoreflect.MessageKind:
		if f.Message().FullName() == (&openwopv1.JsonDocument{}).ProtoReflect().Descriptor().FullName() {
			b.fail("%s is open JSON: add it to shapes/members.yaml", f.FullName())
		}
		return b.message(f.Message())
	case protoreflect.BoolKind:
		return object{"type": "boolean"}
	case protoreflect.StringKind:
		return textSchema(f.JSONName())
	case protoreflect.DoubleKind:
		return object{"type": "number"}
	default:
		return object{"type": "integer"}
	}
}

// textSchema returns the schema of a string by the name of its member: times and addresses have names of
// one form.
func textSchema(name string) object {
	switch {
	case strings.HasSuffix(name, "At"), strings.HasSuffix(name, "Until"), name == "since", name == "until":
		return ref("Timestamp")
	case strings.HasSuffix(name, "Url"), name == "url":
		return object{"type": "string", "format": "uri"}
	}
	return object{"type": "string"}
}
