package strictjson

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// fields are the JSON members of a struct.
type fields struct {
	types map[string]reflect.Type
}

// allowed lists the valid members.
func (f *fields) allowed() string {
	if len(f.types) == 0 {
		return "no members are allowed here"
	}
	return "allowed here: " + listNames(slices.Sorted(maps.Keys(f.types)))
}

// fieldsOf reads the json tags of a struct, promoted fields included. An outer
// field hides a promoted one of its name.
func fieldsOf(t reflect.Type) *fields {
	f := &fields{types: map[string]reflect.Type{}}
	var promoted []reflect.Type
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if embedded, ok := embeddedStruct(field); ok && name == "" {
			promoted = append(promoted, embedded)
			continue
		}
		if !field.IsExported() || field.Tag.Get("json") == "-" {
			continue
		}
		if name == "" {
			name = field.Name
		}
		f.types[name] = field.Type
		if slices.Contains(strings.Split(options, ","), "string") {
			f.types[name] = reflect.TypeFor[any]() // a quoted number: left to encoding/json
		}
	}
	for _, p := range promoted {
		for name, target := range fieldsOf(p).types {
			if _, hidden := f.types[name]; !hidden {
				f.types[name] = target
			}
		}
	}
	return f
}

// embeddedStruct returns the struct whose fields are promoted through f.
func embeddedStruct(f reflect.StructField) (reflect.Type, bool) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t, f.Anonymous && t.Kind() == reflect.Struct
}
