// Package openapi generates the OpenAPI 3.1 description of the REST API from the table of
// routes, the messages' descriptors and the table of errors. Only texts such as the title are
// written by hand.
package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"waybill.dev/waybill/internal/version"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/rest"
)

type object = map[string]any

// Document renders the description for a host with a base path: empty, or a path such as
// /a/b.
func Document(base string) ([]byte, error) {
	b := &builder{schemas: object{}}
	paths := object{}
	for _, r := range rest.Routes {
		op, err := b.operation(r)
		if err != nil {
			return nil, err
		}
		path := jsonPath(r.Path)
		item, ok := paths[path].(object)
		if !ok {
			item = object{}
			paths[path] = item
		}
		item[strings.ToLower(r.HTTP)] = op
	}
	paths[jsonPath(rest.EventsPath)] = object{"get": b.events()}
	paths[rest.WatchPath] = object{"get": b.watch()}
	b.schemas["Error"] = errorSchema()
	return json.Marshal(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Waybill, a host for OpenWOP", "version": version.Version,
			"description": "Runs, their events, and workflow definitions. Every error is the flat envelope {error, message, details}.",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers": []object{{"url": base + "/"}},
		"tags":    b.tags,
		"paths":   paths,
		"components": object{
			"schemas":         b.schemas,
			"securitySchemes": object{"apiKey": object{"type": "http", "scheme": "bearer"}},
		},
	})
}

// Handler serves the description.
func Handler(base string) (http.Handler, error) {
	doc, err := Document(base)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "public, max-age=300")
		_, _ = w.Write(doc) // the client may have gone
	}), nil
}

type builder struct {
	schemas object
	// tags are the nouns of paths, in order of appearance.
	tags []object
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
	op := b.newOperation(string(m.Name()), r.Path)
	op["responses"] = b.responses(r, m)
	b.addSecurity(op, r.Method)
	if params := b.parameters(r, m.Input()); len(params) > 0 {
		op["parameters"] = params
	}
	if r.Body != nil {
		op["requestBody"] = object{
			"required": !r.BodyOptional,
			"content":  object{"application/json": object{"schema": b.body(r)}},
		}
	}
	return op, nil
}

// newOperation starts an operation with its id, summary and tag, which is the noun of its
// path.
func (b *builder) newOperation(method, path string) object {
	noun := "discovery"
	if after, ok := strings.CutPrefix(path, "/v1/"); ok {
		noun = after[:strings.IndexAny(after+"/", "/:")]
	} else if after, ok := strings.CutPrefix(path, "/schemas/"); ok {
		noun = after[:strings.IndexByte(after+"/", '/')]
	}
	if !slices.ContainsFunc(b.tags, func(t object) bool { return t["name"] == noun }) {
		b.tags = append(b.tags, object{"name": noun})
	}
	return object{"operationId": lowerFirst(method), "summary": sentence(method), "tags": []string{noun}}
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

func (b *builder) body(r rest.Route) object {
	if _, ok := r.Body().(*openwopv1.JsonDocument); ok {
		return object{"type": "object"}
	}
	s := b.message(r.Body().ProtoReflect().Descriptor())
	if len(r.FromPath) == 0 {
		return s
	}
	// Members from the path are not part of the body.
	return b.inline(r.Body().ProtoReflect().Descriptor(), r.FromPath)
}

func (b *builder) responses(r rest.Route, m protoreflect.MethodDescriptor) object {
	good := object{"description": "done", "content": object{"application/json": object{"schema": b.answer(r, m.Output())}}}
	if r.Success == http.StatusNoContent {
		return b.withErrors(object{strconv.Itoa(r.Success): object{"description": "done"}}, r.Method)
	}
	all := object{strconv.Itoa(r.Success): good}
	if r.Also != 0 {
		all[strconv.Itoa(r.Also)] = good
	}
	return b.withErrors(all, r.Method)
}

func (b *builder) answer(r rest.Route, out protoreflect.MessageDescriptor) object {
	if doc, ok := documents[r.Method]; ok {
		return b.document(doc)
	}
	if r.Document != "" {
		return object{"type": "object"}
	}
	return b.message(out)
}

// withErrors adds the error codes of every status that an operation may answer with.
func (b *builder) withErrors(out object, method string) object {
	byStatus := map[int][]string{}
	scopes, _ := auth.ScopesOf(method)
	for _, c := range fault.Codes() {
		status := fault.Lookup(c).HTTP
		if status == 0 || (len(scopes) == 0 && (status == 401 || status == 403)) || c == fault.InvalidArgument {
			continue
		}
		byStatus[status] = append(byStatus[status], string(c))
	}
	for status, codes := range byStatus {
		slices.Sort(codes)
		out[strconv.Itoa(status)] = object{
			"description": strings.Join(codes, ", "),
			"content":     object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Error"}}},
		}
	}
	return out
}

// message returns a reference to the schema of a message.
func (b *builder) message(d protoreflect.MessageDescriptor) object {
	if d.FullName() == (&openwopv1.JsonDocument{}).ProtoReflect().Descriptor().FullName() {
		return object{}
	}
	name := string(d.Name())
	if b.schemas[name] == nil {
		b.schemas[name] = object{} // ends recursion
		b.schemas[name] = b.inline(d, nil)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (b *builder) inline(d protoreflect.MessageDescriptor, skip []string) object {
	props, required := object{}, []string{}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if slices.Contains(skip, f.JSONName()) {
			continue
		}
		props[f.JSONName()] = b.field(f)
		// Requests require fields without a default; responses always contain them.
		if !f.HasPresence() && !optionalList(d, f) {
			required = append(required, f.JSONName())
		}
	}
	out := object{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
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
	switch f.Kind() {
	case protoreflect.MessageKind:
		return b.message(f.Message())
	case protoreflect.BoolKind:
		return object{"type": "boolean"}
	case protoreflect.StringKind:
		return object{"type": "string"}
	default:
		return object{"type": "integer"}
	}
}

func errorSchema() object {
	codes := []string{}
	for _, c := range fault.Codes() {
		if fault.Lookup(c).HTTP != 0 {
			codes = append(codes, string(c))
		}
	}
	return object{
		"type": "object", "required": []string{"error", "message"}, "additionalProperties": false,
		"properties": object{
			"error":   object{"type": "string", "description": "one of " + strings.Join(codes, ", ")},
			"message": object{"type": "string"},
			"details": object{"type": "object"},
		},
	}
}
