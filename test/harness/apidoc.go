package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill.dev/waybill/protocol/jsonpointer"
)

// Description is an OpenAPI or AsyncAPI document of a host. It is stricter than for clients: a member
// that it does not name is an error, so that answers and the document cannot differ.
type Description struct {
	operations []described
	compiler   *jsonschema.Compiler

	mu       sync.Mutex // guards compiled
	compiled map[string]*jsonschema.Schema
}

// described is one operation of an OpenAPI document.
type described struct {
	method, path string
	pattern      *regexp.Regexp
	// loose also matches parameters with a colon.
	loose *regexp.Regexp
	// answers are the described answers by status.
	answers map[string]describedAnswer
	// parameters are those of the query and the headers, by "query name" and "header Name".
	parameters map[string]bool
}

// describedAnswer is one answer of an operation.
type describedAnswer struct {
	// media are its media types; an answer without a body has none.
	media []string
	// headers are its headers in canonical form, and whether each is always there.
	headers map[string]bool
	// names are the headers as they are described.
	names map[string]string
	// codes are the codes of an error.
	codes []string
}

// ReadDescription reads a document.
func ReadDescription(doc []byte) (*Description, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return nil, err
	}
	d := &Description{compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(descriptionURL, closed(v)); err != nil {
		return nil, err
	}
	d.operations = operationsOf(v)
	return d, nil
}

const descriptionURL = "https://host.example/description.json"

type members = map[string]any

// closed returns a document whose schemas allow only the members they name, and whose unions select
// their variant by the discriminator alone, which reports the variant's own violations.
func closed(v any) any {
	switch v := v.(type) {
	case members:
		out := members{}
		for name, m := range v {
			out[name] = closed(m)
		}
		if u, ok := v["discriminator"].(members); ok {
			return selected(u)
		}
		if _, ok := v["properties"].(members); ok && v["additionalProperties"] == nil {
			out["additionalProperties"] = false
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, m := range v {
			out[i] = closed(m)
		}
		return out
	default:
		return v
	}
}

// selected returns the schema of a union with a discriminator.
func selected(u members) members {
	name, _ := u["propertyName"].(string)
	mapping, _ := u["mapping"].(members)
	values, variants := []any{}, []any{}
	for _, value := range slices.Sorted(maps.Keys(mapping)) {
		values = append(values, value)
		variants = append(variants, members{
			"if":   members{"properties": members{name: members{"const": value}}},
			"then": members{"$ref": mapping[value]},
		})
	}
	return members{
		"type": "object", "required": []any{name}, "properties": members{name: members{"enum": values}},
		"allOf": variants,
	}
}

var pathParameter = regexp.MustCompile(`\\\{[^}]+\\\}`)

// operationsOf lists the operations of an OpenAPI document, those without parameters first.
func operationsOf(doc any) (out []described) {
	root, _ := doc.(members)
	paths, _ := root["paths"].(members)
	for path, item := range paths {
		for method, op := range item.(members) {
			quoted := regexp.QuoteMeta(path)
			d := described{
				method: strings.ToUpper(method), path: path, answers: map[string]describedAnswer{}, parameters: map[string]bool{},
				pattern: regexp.MustCompile("^" + pathParameter.ReplaceAllString(quoted, "[^/:]+") + "$"),
				loose:   regexp.MustCompile("^" + pathParameter.ReplaceAllString(quoted, "[^/]+") + "$"),
			}
			responses, _ := op.(members)["responses"].(members)
			for status, r := range responses {
				d.answers[status] = answerOf(r.(members))
			}
			parameters, _ := op.(members)["parameters"].([]any)
			for _, p := range parameters {
				name, _ := p.(members)["name"].(string)
				d.parameters[fmt.Sprint(p.(members)["in"], " ", name)] = true
			}
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b described) int {
		return strings.Compare(strconv.FormatBool(strings.Contains(a.path, "{"))+a.path, strconv.FormatBool(strings.Contains(b.path, "{"))+b.path)
	})
	return out
}

func answerOf(r members) describedAnswer {
	content, _ := r["content"].(members)
	out := describedAnswer{media: slices.Sorted(maps.Keys(content)), headers: map[string]bool{}, names: map[string]string{}}
	headers, _ := r["headers"].(members)
	for name, h := range headers {
		canonical := http.CanonicalHeaderKey(name)
		out.headers[canonical] = h.(members)["required"] == true
		out.names[canonical] = name
	}
	codes, _ := r["x-error-codes"].([]any)
	for _, c := range codes {
		out.codes = append(out.codes, fmt.Sprint(c))
	}
	return out
}

// ordinary are headers that HTTP, a proxy or a tracing library handles. They are not described.
var ordinary = []string{
	"Content-Type", "Content-Length", "Date", "Connection", "Transfer-Encoding", "Traceparent", "X-Content-Type-Options",
	"X-Accel-Buffering", "Allow", "Vary", "Content-Encoding",
}

// headers validates the headers of an answer: each is described, each that is always there is sent.
func (d *Description) headers(o *described, status string, h http.Header) error {
	known := o.answers[status]
	for name, values := range h {
		name = http.CanonicalHeaderKey(name)
		if slices.Contains(ordinary, name) {
			continue
		}
		if _, ok := known.headers[name]; !ok {
			return fmt.Errorf("%s %s: the header %s is not described for %s", o.method, o.path, name, status)
		}
		at := []string{"components", "headers", known.names[name], "schema"}
		doc, err := json.Marshal(values[0])
		if err != nil {
			return err
		}
		if n := []byte(values[0]); json.Valid(n) && d.Validate(at, doc) != nil {
			doc = n // not a text
		}
		if err := d.Validate(at, doc); err != nil {
			return fmt.Errorf("%s %s: header %s: %w", o.method, o.path, name, err)
		}
	}
	for name, always := range known.headers {
		if always && h.Get(name) == "" && h[known.names[name]] == nil {
			return fmt.Errorf("%s %s: %s without the header %s", o.method, o.path, status, name)
		}
	}
	return nil
}

// Request validates a request that a host accepted: its operation describes each parameter, each header
// that is not ordinary, and the body.
func (d *Description) Request(method, target, body string, header http.Header) error {
	u, err := url.Parse(target)
	if err != nil || undescribed(u.Path) {
		return nil //nolint:nilerr // hosts get such requests, too
	}
	o := d.find(method, u.Path)
	if o == nil {
		return nil
	}
	scoped := len(o.answers["401"].codes) > 0 // public documents ignore parameters
	for name := range u.Query() {
		if scoped && !o.parameters["query "+name] {
			return fmt.Errorf("%s %s: the parameter %s is not described, but was accepted", method, o.path, name)
		}
	}
	for _, name := range []string{"If-None-Match", "Last-Event-ID", "X-Dedup", "X-Force-Engine-Version", "Waybill-Interrupt-Id", "Range"} {
		if header.Get(name) != "" && !o.parameters["header "+name] && method != http.MethodGet {
			return fmt.Errorf("%s %s: the header %s is not described", method, o.path, name)
		}
	}
	if strings.TrimSpace(body) == "" || !json.Valid([]byte(body)) || method == http.MethodGet || method == http.MethodDelete {
		return nil
	}
	at := []string{"paths", o.path, strings.ToLower(method), "requestBody", "content", "application/json", "schema"}
	if err := d.Validate(at, []byte(body)); err != nil {
		return fmt.Errorf("%s %s: the request was accepted: %w", method, o.path, err)
	}
	return nil
}

// find returns the operation of a request; nil if there is none.
func (d *Description) find(method, path string) *described {
	for _, loose := range []bool{false, true} {
		for i := range d.operations {
			o := &d.operations[i]
			if o.method == method && (o.pattern.MatchString(path) || loose && o.loose.MatchString(path)) {
				return o
			}
		}
	}
	return nil
}

// undescribed reports whether a path is no part of the API: the console, test seams, and the absent
// pack registry.
func undescribed(path string) bool {
	return ownErrors(path) || path == "/" || path == "/console" || strings.HasPrefix(path, "/console/")
}

// Answer validates an answer: its operation, status, media type and body.
func (d *Description) Answer(method, path string, a *Answer) error {
	if method == http.MethodHead || undescribed(path) {
		return nil
	}
	o := d.find(method, path)
	if o == nil {
		if a.Status < http.StatusBadRequest {
			return fmt.Errorf("%s %s: %d, but the API description has no such operation", method, path, a.Status)
		}
		return d.Validate([]string{"components", "schemas", "Error"}, a.Body)
	}
	status := strconv.Itoa(a.Status)
	known, ok := o.answers[status]
	if !ok {
		return fmt.Errorf("%s %s: status %s is not described: %s", method, o.path, status, a.Body)
	}
	if err := d.headers(o, status, a.Header); err != nil {
		return err
	}
	// The host's router has no such path, for example one with an unknown verb after a colon.
	unrouted := a.Code() == "not_found" && strings.Contains(string(a.Body), "no resource at this path")
	if len(known.codes) > 0 && !slices.Contains(known.codes, a.Code()) && !unrouted {
		return fmt.Errorf("%s %s: the code %q is not described for %s: %s", method, o.path, a.Code(), status, a.Body)
	}
	media := known.media
	if unrouted {
		return d.Validate([]string{"components", "schemas", "Error"}, a.Body)
	}
	if len(media) == 0 || slices.Contains(media, "*/*") {
		return nil
	}
	typ, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if !slices.Contains(media, typ) && slices.Contains(media, "application/*") && strings.HasPrefix(typ, "application/") {
		typ = "application/*"
	}
	if !slices.Contains(media, typ) {
		return fmt.Errorf("%s %s: media type %q is not described for %s", method, o.path, typ, status)
	}
	if typ == "text/event-stream" || typ == "text/plain" {
		return nil
	}
	at := []string{"paths", o.path, strings.ToLower(method), "responses", status, "content", typ, "schema"}
	if err := d.Validate(at, a.Body); err != nil {
		return fmt.Errorf("%s %s: %w", method, o.path, err)
	}
	return nil
}

// head validates the status and the headers of a stream.
func (d *Description) head(method, target string, a *Answer) error {
	path, _, _ := strings.Cut(target, "?")
	o := d.find(method, path)
	if o == nil {
		return nil
	}
	return d.headers(o, strconv.Itoa(a.Status), a.Header)
}

// frameSchemas are the schemas of frames that are not events, by their names.
var frameSchemas = map[string]string{
	"state.snapshot": "RunSnapshot", "ai.message.chunk": "OutputChunk", "batch": "RunEvents",
	"run.annotated": "Annotation", "run": "RunSummary",
}

// Frame validates the data of a server-sent event.
func (d *Description) Frame(f Frame) error {
	if f.Event == "" { // a comment
		return nil
	}
	name, ok := frameSchemas[f.Event]
	if !ok {
		name = "RunEvent"
	}
	return d.Validate([]string{"components", "schemas", name}, []byte(f.Data))
}

// Validate validates a JSON document against the schema at a place of the description.
func (d *Description) Validate(at []string, doc []byte) error {
	s, err := d.schema(at)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return fmt.Errorf("%w in %s", err, doc)
	}
	if err := s.Validate(v); err != nil {
		return fmt.Errorf("%w\n%s", err, doc)
	}
	return nil
}

func (d *Description) schema(at []string) (*jsonschema.Schema, error) {
	place := ""
	for _, token := range at {
		place += "/" + url.PathEscape(jsonpointer.Escape(token))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.compiled[place]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile(descriptionURL + "#" + place)
	if err != nil {
		return nil, fmt.Errorf("API description: %w", err)
	}
	d.compiled[place] = s
	return s, nil
}

// descriptions are the documents that hosts served, by their digest, and hosts by their address: hosts
// of one binary serve the same one.
var (
	descriptionsMu sync.Mutex
	descriptions   = map[[sha256.Size]byte]*Description{}
	descriptionOf  = map[string]*Description{}
)

// description returns the host's own description of its API; nil while it serves none, or below a base
// path.
func (c *Client) description() (*Description, error) {
	descriptionsMu.Lock()
	defer descriptionsMu.Unlock()
	if d, ok := descriptionOf[c.Base]; ok {
		return d, nil
	}
	doc := c.fetch("/v1/openapi.json")
	if doc == nil {
		return nil, nil //nolint:nilnil // the host has gone
	}
	sum := sha256.Sum256(doc)
	d := descriptions[sum]
	if d == nil {
		var err error
		if d, err = ReadDescription(doc); err != nil {
			return nil, fmt.Errorf("API description: %w", err)
		}
		descriptions[sum] = d
	}
	descriptionOf[c.Base] = d
	return d, nil
}

// fetch returns a public JSON document; nil if the host does not serve it.
func (c *Client) fetch(path string) []byte {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, c.Base+path, http.NoBody)
	if err != nil {
		return nil
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return nil
	}
	defer func() { _ = res.Body.Close() }()
	doc, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || !json.Valid(doc) {
		return nil
	}
	return doc
}
