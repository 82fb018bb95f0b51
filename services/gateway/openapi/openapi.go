// Package openapi generates the OpenAPI 3.1 description of the REST API from the table of routes, the
// messages' descriptors, the Go types of documents and the table of errors. Shapes that none of these
// has, such as the payloads of events, are written by hand in shapes/, and the black-box tests validate
// every answer of a host against them.
package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"waybill.dev/waybill/internal/version"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/rest"
)

type object = map[string]any

// Document renders the description for a host with a base path: empty, or a path such as
// /a/b.
func Document(base string) ([]byte, error) {
	b, err := newBuilder()
	if err != nil {
		return nil, err
	}
	doc, err := b.describe(base)
	if err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

func (b *builder) describe(base string) (object, error) {
	for i := range rest.Routes {
		r := &rest.Routes[i]
		b.addPath(r.HTTP, jsonPath(r.Path), b.route(r))
	}
	b.addPath(http.MethodGet, jsonPath(rest.EventsPath), b.events())
	b.addPath(http.MethodGet, rest.WatchPath, b.watch())
	for _, o := range rest.Others {
		b.addPath(http.MethodGet, o.Path, b.other(o))
	}
	b.addStatusErrors()
	components := object{
		"headers":         withoutNames(headers),
		"securitySchemes": object{"apiKey": object{"type": "http", "scheme": "bearer", "description": "An API key of the host."}},
	}
	components["schemas"] = b.reachable([]any{b.paths, ref("Error"), ref("StreamData")})
	doc := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Waybill, a host for OpenWOP", "version": version.Version,
			"description": "Runs, their events, and workflow definitions. Every error is an Error: {error, message, details}. " +
				"Lists are read page by page: nextCursor of a page is the parameter cursor of the next one, and absent on the last. " +
				"Integers are JSON numbers. A null is sent only where a type includes it; other unknown values are absent. " +
				"A traceparent header is accepted and returned everywhere. /v1/asyncapi.json describes streams, webhooks and NATS subjects.",
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":    []object{{"url": base + "/"}},
		"tags":       b.tags,
		"paths":      b.paths,
		"components": components,
	}
	return withFormats(doc).(object), b.err
}

// withFormats returns a copy of a schema, or of what has schemas, in which every integer has a size. A
// format of nil is none.
func withFormats(v any) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for name, m := range v {
			if name != "example" {
				m = withFormats(m)
			}
			out[name] = m
		}
		if format, set := v["format"]; v["type"] == "integer" && !set {
			out["format"] = "int64"
		} else if set && format == nil {
			delete(out, "format")
		}
		return out
	case []object:
		out := make([]object, len(v))
		for i, m := range v {
			out[i] = withFormats(m).(object)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, m := range v {
			out[i] = withFormats(m)
		}
		return out
	default:
		return v
	}
}

// Schemas returns the component schemas that a value refers to, directly or not. AsyncAPI has the same
// ones.
func Schemas(v any) (map[string]any, error) {
	b, err := newBuilder()
	if err != nil {
		return nil, err
	}
	b.message((&hostv1.RunSummary{}).ProtoReflect().Descriptor())
	return withFormats(b.reachable(v)).(object), b.err
}

// Handler serves the description. It is rendered for the first request.
func Handler(base string) http.Handler {
	return Serve(func() ([]byte, error) { return Document(base) })
}

// Serve serves a document that is rendered for the first request.
func Serve(render func() ([]byte, error)) http.Handler {
	render = sync.OnceValues(render)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		doc, err := render()
		if err != nil {
			panic(err) // covered by tests: the document depends on the base path only
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "public, max-age=300")
		_, _ = w.Write(doc) // the client may have gone
	})
}

type builder struct {
	paths   object
	schemas object
	// errors are the codes of all operations.
	errors errorsByStatus
	// tags are the nouns of paths, in order of appearance.
	tags      []object
	shapes    *shapes
	texts     map[string]string
	reflected map[reflect.Type]struct{}
	messages  map[protoreflect.FullName]struct{}
	// used are the members of shapes that were used.
	used map[string]bool
	// err is the first error.
	err error
}

// newBuilder returns a builder with the schemas of all documents.
func newBuilder() (*builder, error) {
	s, err := readShapes()
	if err != nil {
		return nil, err
	}
	texts, err := readTexts()
	if err != nil {
		return nil, err
	}
	b := &builder{
		paths:     object{},
		schemas:   object{},
		errors:    errorsByStatus{},
		shapes:    s,
		texts:     texts,
		reflected: map[reflect.Type]struct{}{},
		messages:  map[protoreflect.FullName]struct{}{},
		used:      map[string]bool{},
	}
	b.addShapes(s)
	b.addErrors()
	b.define("RunStatus", object{"type": "string", "enum": wire.Statuses()})
	b.define("InterruptKind", object{"type": "string", "enum": interrupt.Kinds()})
	b.define("EventType", object{"type": "string", "enum": slices.Sorted(maps.Keys(s.Variants["RunEvent"].By))})
	for _, t := range reflected {
		b.structure(t)
	}
	return b, b.err
}

// define adds a component and returns a reference to it. Each name has one origin.
func (b *builder) define(name string, schema object) object {
	if _, taken := b.schemas[name]; taken {
		b.fail("schema %s has two origins", name)
	}
	b.schemas[name] = schema
	return ref(name)
}

func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("describe the API: "+format, args...)
	}
}

// member returns the schema that the files have for a member.
func (b *builder) member(name string) (object, bool) {
	s, ok := b.shapes.Members[name]
	if !ok {
		return nil, false
	}
	b.used[name] = true
	return resolved(s).(object), true
}

// reachable returns the schemas that a value refers to, directly or not.
func (b *builder) reachable(v any) object {
	out := object{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case object:
			if to, ok := v["$ref"].(string); ok {
				if name, ok := strings.CutPrefix(to, refPrefix); ok && out[name] == nil {
					s, known := b.schemas[name]
					if !known {
						b.fail("no schema %s", name)
						return
					}
					out[name] = s
					walk(s)
				}
			}
			for _, m := range v {
				walk(m)
			}
		case []object:
			for _, m := range v {
				walk(m)
			}
		case []any:
			for _, m := range v {
				walk(m)
			}
		}
	}
	walk(v)
	return out
}

func (b *builder) addPath(method, path string, op object) {
	item, ok := b.paths[path].(object)
	if !ok {
		item = object{}
		b.paths[path] = item
	}
	item[strings.ToLower(method)] = op
}
