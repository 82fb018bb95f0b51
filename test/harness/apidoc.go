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
	// media are the media types of the answer by status; a status without a body has none.
	media map[string][]string
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
				method: strings.ToUpper(method), path: path, media: map[string][]string{},
				pattern: regexp.MustCompile("^" + pathParameter.ReplaceAllString(quoted, "[^/:]+") + "$"),
				loose:   regexp.MustCompile("^" + pathParameter.ReplaceAllString(quoted, "[^/]+") + "$"),
			}
			responses, _ := op.(members)["responses"].(members)
			for status, r := range responses {
				content, _ := r.(members)["content"].(members)
				d.media[status] = slices.Sorted(maps.Keys(content))
			}
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b described) int {
		return strings.Compare(strconv.FormatBool(strings.Contains(a.path, "{"))+a.path, strconv.FormatBool(strings.Contains(b.path, "{"))+b.path)
	})
	return out
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

// eventsTemplate is the path of the event stream.
const eventsTemplate = "/v1/runs/{runId}/events"

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
	media, ok := o.media[status]
	if !ok {
		return fmt.Errorf("%s %s: status %s is not described: %s", method, o.path, status, a.Body)
	}
	if a.Status >= http.StatusBadRequest {
		if a.Status == http.StatusRequestedRangeNotSatisfiable {
			return nil
		}
		return d.Validate([]string{"components", "schemas", "Error"}, a.Body)
	}
	if len(media) == 0 || slices.Contains(media, "*/*") {
		return nil
	}
	typ, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if o.path == eventsTemplate && typ == "application/json" { // described in words
		return d.Validate([]string{"components", "schemas", "PollRunEventsResult"}, a.Body)
	}
	if !slices.Contains(media, typ) {
		return fmt.Errorf("%s %s: media type %q is not described for %s", method, o.path, typ, status)
	}
	if typ == "text/event-stream" {
		return nil
	}
	at := []string{"paths", o.path, strings.ToLower(method), "responses", status, "content", typ, "schema"}
	if err := d.Validate(at, a.Body); err != nil {
		return fmt.Errorf("%s %s: %w", method, o.path, err)
	}
	return nil
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

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

func (d *Description) schema(at []string) (*jsonschema.Schema, error) {
	place := ""
	for _, token := range at {
		place += "/" + url.PathEscape(pointer.Replace(token))
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
