package openapi

import (
	"encoding/json"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/discovery"
	"waybill.dev/waybill/services/gateway/engine"
	"waybill.dev/waybill/services/gateway/runview"
)

// reflected are the documents that are Go types of the gateway or the protocol.
var reflected = []reflect.Type{
	discovery.DocumentType, reflect.TypeFor[runstate.Snapshot](), reflect.TypeFor[runview.DiffReport](),
	reflect.TypeFor[engine.Annotation](), reflect.TypeFor[view.Run](), reflect.TypeFor[view.NodeInput](),
}

// names are the components of types that are not called as in Go.
var names = map[reflect.Type]string{
	discovery.DocumentType:                     "Capabilities",
	reflect.TypeFor[runstate.Snapshot]():       "RunSnapshot",
	reflect.TypeFor[runview.DiffReport]():      "RunDiff",
	reflect.TypeFor[engine.AnnotationTarget](): "AnnotatedPart",
}

// known are the components of types that are described elsewhere.
var known = map[reflect.Type]string{
	reflect.TypeFor[wire.Owner]():             "RunOwner",
	reflect.TypeFor[wire.Status]():            "RunStatus",
	reflect.TypeFor[wire.EventType]():         "EventType",
	reflect.TypeFor[wire.ForkMode]():          "ForkMode",
	reflect.TypeFor[interrupt.Kind]():         "InterruptKind",
	reflect.TypeFor[interrupt.Request]():      "InterruptRequest",
	reflect.TypeFor[runstate.OpenInterrupt](): "RunInterrupt",
	reflect.TypeFor[runstate.NodeStatus]():    "NodeStatus",
}

// document returns the schema of a Go type as encoding/json renders it.
func (b *builder) document(t reflect.Type) object {
	if name, ok := known[t]; ok {
		return ref(name)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return b.document(t.Elem())
	case reflect.Slice:
		if t == reflect.TypeFor[json.RawMessage]() {
			return object{}
		}
		return object{"type": "array", "items": b.document(t.Elem())}
	case reflect.Map:
		if values := b.document(t.Elem()); len(values) > 0 {
			return object{"type": "object", "additionalProperties": values}
		}
		return ref("JsonObject")
	case reflect.Interface:
		return object{}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		if values := view.Enums[t]; values != nil {
			return object{"type": "string", "enum": values}
		}
		return object{"type": "string"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Struct:
		if t == reflect.TypeFor[big.Int]() {
			return object{"type": "integer", "format": nil}
		}
		return b.structure(t)
	}
	return object{"type": "integer"}
}

// structure returns a reference to the component of a struct.
func (b *builder) structure(t reflect.Type) object {
	name := componentOf(t)
	if _, ok := b.reflected[t]; ok {
		return ref(name)
	}
	b.reflected[t] = struct{}{} // ends recursion
	props, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue // its fields are listed as well
		}
		member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		s := b.document(f.Type)
		if f.Type.Kind() == reflect.String && len(s) == 1 && s["type"] == "string" {
			s = textSchema(member)
		}
		if own, ok := b.member(name + "." + member); ok {
			s = own
		}
		if options != "omitempty" {
			required = append(required, member)
			if f.Type.Kind() == reflect.Pointer && s["$ref"] == nil { // structs are always set
				s["type"] = []any{s["type"], "null"}
			}
		}
		props[member] = s
	}
	for _, full := range slices.Sorted(maps.Keys(b.shapes.Members)) { // members that a handler adds
		if member, ok := strings.CutPrefix(full, name+"."); ok && props[member] == nil {
			props[member], _ = b.member(full)
		}
	}
	out := object{"type": "object", "properties": props}
	if len(required) > 0 {
		out["required"] = required
	}
	return b.define(name, out)
}

// componentOf names the component of a struct. Those of packages with many small types begin with the
// document's name.
func componentOf(t reflect.Type) string {
	if name, ok := names[t]; ok {
		return name
	}
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	switch t.PkgPath() {
	case reflect.TypeFor[view.Run]().PkgPath():
		return "View" + name
	case discovery.DocumentType.PkgPath():
		return "Capabilities" + name
	}
	return name
}
