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
	"strconv"
	"strings"
	"sync"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"waybill.dev/waybill/internal/version"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
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
	for _, r := range rest.Routes {
		op, err := b.operation(r)
		if err != nil {
			return nil, err
		}
		b.addPath(r.HTTP, jsonPath(r.Path), op)
	}
	b.addPath(http.MethodGet, jsonPath(rest.EventsPath), b.events())
	b.addPath(http.MethodGet, rest.WatchPath, b.watch())
	for _, o := range rest.Others {
		b.addPath(http.MethodGet, o.Path, b.other(o))
	}
	components := object{
		"responses":       b.errors,
		"securitySchemes": object{"apiKey": object{"type": "http", "scheme": "bearer"}},
	}
	components["schemas"] = b.reachable([]any{b.paths, components})
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Waybill, a host for OpenWOP", "version": version.Version,
			"description": "Runs, their events, and workflow definitions. Every error is the flat envelope {error, message, details}. " +
				"/v1/asyncapi.json describes streams, webhooks and NATS subjects.",
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":    []object{{"url": base + "/"}},
		"tags":       b.tags,
		"paths":      b.paths,
		"components": components,
	}, b.err
}

// Schemas returns the component schemas that a value refers to, directly or not. AsyncAPI has the same
// ones.
func Schemas(v any) (map[string]any, error) {
	b, err := newBuilder()
	if err != nil {
		return nil, err
	}
	b.message((&hostv1.RunSummary{}).ProtoReflect().Descriptor())
	return b.reachable(v), b.err
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
	// errors are the answers of failed requests, by name.
	errors object
	// tags are the nouns of paths, in order of appearance.
	tags      []object
	shapes    *shapes
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
	b := &builder{
		paths:     object{},
		schemas:   object{},
		errors:    errorResponses(),
		shapes:    s,
		reflected: map[reflect.Type]struct{}{},
		messages:  map[protoreflect.FullName]struct{}{},
		used:      map[string]bool{},
	}
	b.addShapes(s)
	b.define("Error", errorSchema())
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

// method returns the descriptor of a full method name, "/package.Service/Method".
func method(full string) (protoreflect.MethodDescriptor, error) {
	service, name, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", full, err)
	}
	sd, ok := d.(protoreflect.ServiceDescriptor)
	if !ok || sd.Methods().ByName(protoreflect.Name(name)) == nil {
		return nil, fmt.Errorf("describe %s: no such method", full)
	}
	return sd.Methods().ByName(protoreflect.Name(name)), nil
}

func (b *builder) operation(r rest.Route) (object, error) {
	m, err := method(r.Method)
	if err != nil {
		return nil, err
	}
	op := b.newOperation(string(m.Name()), nounOf(r.Path))
	op["responses"] = b.responses(r, m)
	b.addSecurity(op, r.Method)
	if params := b.parameters(r, m.Input()); len(params) > 0 {
		op["parameters"] = params
	}
	if r.Body != nil {
		op["requestBody"] = object{
			"required": !r.BodyOptional,
			"content":  object{"application/json": object{"schema": b.body(r, m.Input())}},
		}
	}
	return op, nil
}

// newOperation starts an operation with its id, summary and tag.
func (b *builder) newOperation(method, noun string) object {
	if !slices.ContainsFunc(b.tags, func(t object) bool { return t["name"] == noun }) {
		b.tags = append(b.tags, object{"name": noun})
	}
	return object{"operationId": lowerFirst(method), "summary": sentence(method), "tags": []string{noun}}
}

// nounOf returns the noun of a path, which is its tag.
func nounOf(path string) string {
	if after, ok := strings.CutPrefix(path, "/v1/"); ok {
		return after[:strings.IndexAny(after+"/", "/:")]
	}
	if after, ok := strings.CutPrefix(path, "/schemas/"); ok {
		return after[:strings.IndexByte(after+"/", '/')]
	}
	return "discovery"
}

// sentence spells a method's name as words: ListRuns becomes "List runs".
func sentence(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// addSecurity adds the scopes that an operation requires.
func (b *builder) addSecurity(op object, method string) {
	scopes, _ := auth.ScopesOf(method)
	if len(scopes) == 0 {
		op["security"] = []object{}
		return
	}
	names := make([]string, 0, len(scopes))
	for _, s := range scopes {
		names = append(names, string(s))
	}
	op["security"] = []object{{"apiKey": names}}
	op["description"] = "Needs the scope " + strings.Join(names, " and the scope ") + "."
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// jsonPath spells path parameters as the API's JSON does.
func jsonPath(p string) string {
	return strings.NewReplacer("{run_id}", "{runId}", "{workflow_id}", "{workflowId}", "{node_id}", "{nodeId}", "{webhook_id}", "{webhookId}").Replace(p)
}

// parameters returns path parameters and, for reads, all other fields as query parameters.
func (b *builder) parameters(r rest.Route, in protoreflect.MessageDescriptor) []object {
	var out []object
	for i := range in.Fields().Len() {
		f := in.Fields().Get(i)
		switch {
		case strings.Contains(r.Path, "{"+string(f.Name())+"}"):
			out = append(out, object{"name": f.JSONName(), "in": "path", "required": true, "schema": b.field(f)})
		case r.Body == nil:
			out = append(out, object{"name": f.JSONName(), "in": "query", "schema": b.field(f)})
		}
	}
	if r.HTTP != http.MethodGet {
		out = append(out, object{
			"name":   "Idempotency-Key",
			"in":     "header",
			"schema": object{"type": "string", "maxLength": 255},
		})
	}
	return out
}

func (b *builder) body(r rest.Route, in protoreflect.MessageDescriptor) object {
	if _, ok := r.Body().(*openwopv1.JsonDocument); ok { // the only field of the input
		return b.field(in.Fields().Get(0))
	}
	if len(r.FromPath) == 0 {
		return b.message(in)
	}
	// Members from the path are not part of the body.
	return b.inline(in, r.FromPath)
}

func (b *builder) responses(r rest.Route, m protoreflect.MethodDescriptor) object {
	if r.Success == http.StatusNoContent {
		return withErrors(object{strconv.Itoa(r.Success): object{"description": "done"}}, r.Method)
	}
	media := "application/json"
	if strings.HasPrefix(r.Path, "/schemas/") {
		media = "application/schema+json"
	}
	good := object{"description": "done", "content": object{media: object{"schema": b.answer(r, m.Output())}}}
	all := object{strconv.Itoa(r.Success): good}
	if r.Also != 0 {
		all[strconv.Itoa(r.Also)] = good
	}
	if r.Conditional {
		all["304"] = object{"description": "the version of If-None-Match is still valid"}
	}
	if r.ByToken() { // the question may require more than a token
		all["403"] = errorRef(http.StatusForbidden)
	}
	return withErrors(all, r.Method)
}

func (b *builder) answer(r rest.Route, out protoreflect.MessageDescriptor) object {
	if r.Document != "" {
		return b.field(out.Fields().ByName(protoreflect.Name(r.Document)))
	}
	return b.message(out)
}

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
	return b.define(name, b.inline(d, nil))
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
	if strings.HasSuffix(string(d.Name()), "Request") {
		out["additionalProperties"] = false // answers are open: later releases may add members
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// isRequired reports whether a request must have a member, or an answer always has it.
func (b *builder) isRequired(d protoreflect.MessageDescriptor, f protoreflect.FieldDescriptor) bool {
	if slices.Contains(b.shapes.Required, string(f.FullName())) {
		b.used[string(f.FullName())] = true
		return true
	}
	return !f.HasPresence() && !optionalList(d, f)
}

// optionalList reports whether a request may omit a list.
func optionalList(d protoreflect.MessageDescriptor, f protoreflect.FieldDescriptor) bool {
	return f.IsList() && strings.HasSuffix(string(d.Name()), "Request") && f.Name() == "tags"
}

func (b *builder) field(f protoreflect.FieldDescriptor) object {
	s := b.single(f)
	if f.IsList() {
		return object{"type": "array", "items": s}
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
		return object{"type": "string"}
	case protoreflect.DoubleKind:
		return object{"type": "number"}
	default:
		return object{"type": "integer"}
	}
}
