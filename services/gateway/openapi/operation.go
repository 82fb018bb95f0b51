package openapi

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/engine"
	"waybill.dev/waybill/services/gateway/rest"
)

// operation is what the description of an operation follows from.
type operation struct {
	id, noun string
	// method is the full name of the gRPC method; empty if there is none.
	method string
	// limited: the limits on load and rates apply.
	limited bool
	// body: it has one.
	body bool
	// keyed: a repetition with the same key gets the first answer.
	keyed bool
	// ofRun: the path names a run.
	ofRun bool
	// token: a token in the path is the credential.
	token bool
	// conditional: the answer has an ETag.
	conditional bool
	// headers are sent with each success, in addition to the common ones.
	headers []string
}

func newOperation(method, path string) *operation {
	name := method[strings.LastIndexByte(method, '/')+1:]
	return &operation{
		id:     lowerFirst(name),
		noun:   nounOf(path),
		method: method, limited: true,
		ofRun: strings.HasPrefix(path, "/v1/runs/{run_id}"),
	}
}

func (b *builder) route(r *rest.Route) object {
	m := rest.MethodOf(r.Method)
	o := newOperation(r.Method, r.Path)
	o.body, o.token, o.conditional = r.Body != nil, r.ByToken(), r.Conditional
	o.keyed = r.HTTP != http.MethodGet && engine.Repeatable(r.Method)
	if r.Method == openwopv1.Engine_GetCapabilities_FullMethodName {
		o.headers = []string{"Capabilities-Etag"}
	}
	op := b.describeOperation(o, b.successes(r, o, m))
	if params := b.parameters(r, o); len(params) > 0 {
		op["parameters"] = params
	}
	if r.Body != nil {
		media := object{"schema": b.body(r, m.Input())}
		if body := b.shapes.Examples[o.id].Body; body != nil {
			media["example"] = body
		}
		op["requestBody"] = object{"required": !r.BodyOptional, "content": object{"application/json": media}}
	}
	return op
}

// describeOperation describes what all operations have. ok are the answers that are no errors.
func (b *builder) describeOperation(o *operation, ok object) object {
	text := ""
	if o.method != "" {
		text = b.methodText(o.method)
	}
	responses := maps.Clone(ok)
	for status, codes := range b.errorsOf(o) {
		responses[strconv.Itoa(status)] = b.errorResponse(o, status, codes)
	}
	if !slices.ContainsFunc(b.tags, func(t object) bool { return t["name"] == o.noun }) {
		if b.shapes.Tags[o.noun] == "" {
			b.fail("tag %s has no text", o.noun)
		}
		b.tags = append(b.tags, object{"name": o.noun, "description": b.shapes.Tags[o.noun]})
	}
	op := object{
		"operationId": o.id,
		"summary":     sentence(o.id),
		"tags":        []string{o.noun},
		"responses":   responses,
		"security":    []object{},
	}
	if scopes, _ := auth.ScopesOf(o.method); len(scopes) > 0 {
		names := make([]string, 0, len(scopes))
		for _, s := range scopes {
			names = append(names, string(s))
		}
		op["security"] = []object{{"apiKey": names}}
		text += " Needs the scope " + strings.Join(names, " and the scope ") + "."
	}
	if o.token {
		text += " The token is the credential."
	}
	op["description"] = strings.TrimSpace(text)
	return op
}

// nounOf returns the noun of a path, which is its tag.
func nounOf(path string) string {
	if after, ok := strings.CutPrefix(path, "/v1/"); ok {
		return after[:strings.IndexAny(after+"/", "/:")]
	}
	if strings.HasPrefix(path, "/schemas/") {
		return "schemas"
	}
	return "discovery"
}

// sentence spells an id as words: listRuns becomes "List runs".
func sentence(id string) string {
	var b strings.Builder
	for i, r := range id {
		switch {
		case i == 0:
			r = unicode.ToUpper(r)
		case unicode.IsUpper(r):
			b.WriteByte(' ')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// jsonPath spells path parameters as the API's JSON does.
func jsonPath(p string) string {
	return strings.NewReplacer("{run_id}", "{runId}", "{workflow_id}", "{workflowId}", "{node_id}", "{nodeId}", "{webhook_id}", "{webhookId}", "{view_id}", "{viewId}").Replace(p)
}

// parameters returns those of the path, the query and the headers.
func (b *builder) parameters(r *rest.Route, o *operation) []object {
	var out []object
	fields := r.Input().Fields()
	for _, m := range braces.FindAllStringSubmatch(r.Path, -1) {
		out = append(out, b.pathParameter(fields.ByName(protoreflect.Name(m[1])).JSONName()))
	}
	for _, f := range r.QueryFields() {
		s := maps.Clone(b.field(f))
		p := object{"name": f.JSONName(), "in": "query", "description": s["description"]}
		delete(s, "description")
		if p["schema"] = s; p["description"] == nil {
			b.fail("parameter %s has no text", f.FullName())
		}
		if slices.Contains(b.shapes.Required, string(f.FullName())) {
			b.used[string(f.FullName())] = true
			p["required"] = true
		}
		out = append(out, p)
	}
	if o.keyed || r.HTTP == http.MethodDelete {
		out = append(out, keyParameter)
	}
	if o.conditional {
		out = append(out, conditionParameter)
	}
	switch r.Method {
	case openwopv1.Engine_CreateRun_FullMethodName:
		out = append(out, dedupParameter, engineParameter)
	case openwopv1.Engine_ResolveInterruptByRun_FullMethodName:
		out = append(out, interruptParameter)
	}
	return out
}

// braces match a path parameter.
var braces = regexp.MustCompile(`\{([^}]+)\}`)

// pathParameter describes a parameter of a path by its name.
func (b *builder) pathParameter(name string) object {
	own, ok := b.shapes.Path[name]
	if !ok {
		b.fail("path parameter %s is missing in the files", name)
	}
	out := object{"name": name, "in": "path", "required": true}
	maps.Copy(out, resolved(own).(object))
	return out
}

func (b *builder) body(r *rest.Route, in protoreflect.MessageDescriptor) object {
	if _, ok := r.Body().(*openwopv1.JsonDocument); ok { // the only field of the input
		return b.field(in.Fields().Get(0))
	}
	if len(r.FromPath) == 0 {
		return b.message(in)
	}
	// Members from the path are not part of the body.
	return b.inline(in, r.FromPath)
}

// successes describes the answers of a route that are no errors.
func (b *builder) successes(r *rest.Route, o *operation, m protoreflect.MethodDescriptor) object {
	good := object{"description": b.messageText(m.Output()), "headers": o.successHeaders()}
	if r.Success == http.StatusNoContent {
		good["description"] = "Done."
		return object{strconv.Itoa(r.Success): good}
	}
	media := "application/json"
	if strings.HasPrefix(r.Path, "/schemas/") {
		media = "application/schema+json"
	}
	good["content"] = object{media: b.media(o, b.answer(r, m.Output()))}
	all := object{strconv.Itoa(r.Success): good}
	if r.Also != 0 {
		all[strconv.Itoa(r.Also)] = good
	}
	if r.Conditional {
		all["304"] = object{"description": "The version of If-None-Match is still valid.", "headers": o.successHeaders()}
	}
	return all
}

// media describes the body of an answer, with its example.
func (b *builder) media(o *operation, schema object) object {
	out := object{"schema": schema}
	if answer := b.shapes.Examples[o.id].Answer; answer != nil {
		out["example"] = answer
	}
	return out
}

func (b *builder) answer(r *rest.Route, out protoreflect.MessageDescriptor) object {
	if r.Document != "" {
		return b.field(out.Fields().ByName(protoreflect.Name(r.Document)))
	}
	return b.message(out)
}
