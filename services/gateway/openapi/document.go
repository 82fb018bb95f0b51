package openapi

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strings"

	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/view"
)

// documents are the types of documents that this host defines, by the method that returns them.
var documents = map[string]reflect.Type{
	hostv1.Host_GetRunView_FullMethodName:   reflect.TypeFor[view.Run](),
	hostv1.Host_GetNodeInput_FullMethodName: reflect.TypeFor[view.NodeInput](),
}

// document returns the schema of a Go type as encoding/json renders it. Structs become components
// that are named after the package and the type.
func (b *builder) document(t reflect.Type) object {
	if t == reflect.TypeFor[json.RawMessage]() {
		return object{} // any value
	}
	switch t.Kind() {
	case reflect.Map:
		return object{"type": "object", "additionalProperties": b.document(t.Elem())}
	case reflect.Pointer:
		return b.document(t.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": b.document(t.Elem())}
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
		if t != reflect.TypeFor[big.Int]() {
			return b.structure(t)
		}
	}
	return object{"type": "integer"}
}

func (b *builder) structure(t reflect.Type) object {
	_, pkg, _ := strings.Cut(t.PkgPath(), "/protocol/")
	name := strings.ToUpper(pkg[:1]) + pkg[1:] + t.Name()
	if b.schemas[name] == nil {
		b.schemas[name] = object{} // ends recursion
		props, required := object{}, []string{}
		for _, f := range reflect.VisibleFields(t) {
			if f.Anonymous {
				continue // its fields are listed as well
			}
			member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			props[member] = b.document(f.Type)
			if options != "omitempty" {
				required = append(required, member)
			}
		}
		b.schemas[name] = object{"type": "object", "properties": props, "required": required, "additionalProperties": false}
	}
	return object{"$ref": "#/components/schemas/" + name}
}
