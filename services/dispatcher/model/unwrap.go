package model

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// Models wrap what they are asked for: in a list of one, in a member with a general name, in the call of a
// tool, in JSON text. What is wrapped is the answer if it satisfies the schema and the wrapper does not.

// maxWrappers limits the wrappers around a value.
const maxWrappers = 4

// wrapperNames are the members that models put an answer into, and the names of tools that they call with
// it, as plainName writes them.
//
//nolint:gochecknoglobals // a constant
var wrapperNames = []string{
	"value", "answer", "finalanswer", "response", "finalresponse", "result", "finalresult", "results", "output", "finaloutput",
	"data", "json", "object", "payload", "content", "text", "item", "items", "list", "structuredoutput", "structuredresponse",
	"jsontoolcall", "arguments", "args", "parameters", "params", "actioninput",
}

// noFilledSchema among the names says that values have a member properties of their own. No name has a
// space.
const noFilledSchema = "no filled schema"

// companion reports whether a member next to the wrapped value says only what kind of wrapper it is, or is
// the model's thinking.
func companion(name string, value json.RawMessage, names []string) bool {
	text, ok := strictjson.String(value)
	if !ok {
		return false
	}
	switch plain := plainName(name); plain {
	case "type":
		return slices.Contains([]string{"object", "function", "functioncall", "toolcall", "tooluse", "text", "outputtext", "json"}, plainName(text))
	case "role":
		return text == "assistant"
	case "name", "tool", "toolname", "function", "action", "recipientname":
		return slices.Contains(names, plainName(strings.TrimPrefix(text, "functions.")))
	case "id", "callid", "toolcallid":
		return true
	default:
		return isThinking(plain)
	}
}

// unwrap returns what a document may wrap. names are those that a wrapper can have.
func unwrap(raw json.RawMessage, names []string) (inner json.RawMessage, ok bool) {
	switch strictjson.KindOf(raw) {
	case "a string":
		return unfenced(raw)
	case "an array":
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil || len(items) != 1 {
			return nil, false
		}
		return items[0], true
	case "an object":
	default:
		return nil, false
	}
	members := strictjson.Object(raw)
	const most = 6 // a value, and what is next to it
	if len(members) > most {
		return nil, false
	}
	if filled, ok := filledSchema(members); ok && !slices.Contains(names, noFilledSchema) {
		return filled, true
	}
	for name, value := range members {
		plain := plainName(name)
		call := plain == "input" && len(members) > 1 // alone, it repeats the input
		switch {
		case inner == nil && (call || slices.Contains(names, plain)):
			inner = value
		case !companion(name, value, names):
			return nil, false
		}
	}
	return inner, inner != nil
}

// filledSchema returns the values of a schema that a model has filled in: members of properties that are
// values and not schemas themselves.
func filledSchema(members map[string]json.RawMessage) (json.RawMessage, bool) {
	values := strictjson.Object(members["properties"])
	if len(values) == 0 {
		return nil, false
	}
	for name := range members {
		if !slices.Contains([]string{"properties", "type", "title", "description", "required", "additionalProperties", "$schema", "$id"}, name) {
			return nil, false
		}
	}
	for _, value := range values {
		inner := strictjson.Object(value)
		for _, keyword := range []string{"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "description"} {
			if _, ok := inner[keyword]; ok {
				return nil, false
			}
		}
		if isEmpty(value) && value[0] == '{' {
			return nil, false
		}
	}
	return members["properties"], true
}

// unfenced returns the JSON document in a JSON string, also in a fenced block.
func unfenced(raw json.RawMessage) (json.RawMessage, bool) {
	text, _ := strictjson.String(raw)
	text = strings.TrimSpace(text)
	if body, fenced := strings.CutPrefix(text, fence); fenced {
		body = strings.TrimSuffix(body, fence)
		text = strings.TrimSpace(body[infoString(body):])
	}
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") || !json.Valid([]byte(text)) {
		return nil, false
	}
	return json.RawMessage(text), true
}

// plainName returns a name without its case and the marks between its words.
func plainName(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case 'A' <= c && c <= 'Z':
			return c + 'a' - 'A'
		case c == '_', c == '-', c == ' ', c == '.', c == '$':
			return -1
		}
		return c
	}, name)
}

// wrapperNames returns the names that a wrapper of a value of the schema can have: also those of the value,
// but no member of the value, whose own value may satisfy the schema by chance.
func (r *reader) wrapperNames(s *schema.Schema) []string {
	names := slices.Clone(wrapperNames)
	if r.emission != nil {
		for _, own := range []string{r.expected.name, r.expected.kind, r.expected.kind[strings.LastIndexByte(r.expected.kind, '.')+1:]} {
			if own != "" {
				names = append(names, plainName(own))
			}
		}
	}
	if s == nil {
		return names
	}
	members := r.membersOf(s)
	names = slices.DeleteFunc(names, func(name string) bool { return members[name] })
	if members["properties"] {
		names = append(names, noFilledSchema)
	}
	return names
}

// membersOf returns the plain names of the members of a schema's values.
func (r *reader) membersOf(s *schema.Schema) map[string]bool {
	if r.emission != nil {
		if requested := r.requestedSchema(); requested.schema == s {
			return requested.members
		}
	}
	return plainNames(memberNames(s.Document()))
}

func plainNames(names map[string]bool) map[string]bool {
	out := make(map[string]bool, len(names))
	for name := range names {
		out[plainName(name)] = true
	}
	return out
}

// unwrapped returns the documents with the values of those that only wrap a value of the schema, or an
// envelope that the node accepts.
func (r *reader) unwrapped(ctx context.Context, docs []document, s *schema.Schema) ([]document, error) {
	docs = slices.Clone(docs)
	names := r.wrapperNames(s)
	for i, d := range docs {
		if listsScalar(d.raw) && d.path == pathBraces && (!d.alone || !d.labelled) {
			continue // an index or a citation
		}
		value, ok, err := r.unwrapValue(ctx, d.raw, s, names)
		if err != nil {
			return nil, err
		}
		if ok {
			docs[i].raw, docs[i].path = value, pathText
		}
	}
	return docs, nil
}

// listsScalar reports whether a document is a list of one value that is neither an object nor a list, nor
// JSON text of one.
func listsScalar(raw json.RawMessage) bool {
	var items []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &items) != nil || len(items) != 1 || items[0][0] == '{' || items[0][0] == '[' {
		return false
	}
	_, isText := unfenced(items[0])
	return !isText
}

// unwrapValue returns the value that a document wraps. ok is false if it wraps none, or is the value itself.
func (r *reader) unwrapValue(
	ctx context.Context, raw json.RawMessage, s *schema.Schema, names []string,
) (value json.RawMessage, ok bool, err error) {
	if isEnvelope(document{raw: raw}) {
		return nil, false, nil
	}
	for depth := range maxWrappers {
		inner, wraps := unwrap(raw, names)
		wraps = wraps && (raw[0] != '[' || !r.isAccepted(inner)) // or a list of envelopes
		if depth == 0 && !wraps && !hasTexts(raw) {
			return nil, false, nil
		}
		violations, err := r.violations(ctx, s, raw)
		switch {
		case err != nil:
			return nil, false, err
		case s != nil && len(violations) == 0:
			return raw, depth > 0, nil
		}
		if less, found := withoutTexts(raw, "", violations); found {
			violations, err = r.violations(ctx, s, less)
			if len(violations) == 0 || err != nil {
				return less, err == nil, err
			}
		}
		if !wraps {
			return nil, false, nil
		}
		if raw = inner; r.isAccepted(raw) {
			return raw, true, nil
		}
	}
	violations, err := r.violations(ctx, s, raw)
	return raw, s != nil && len(violations) == 0 && err == nil, err
}

func (r *reader) violations(ctx context.Context, s *schema.Schema, raw json.RawMessage) ([]schema.Violation, error) {
	if s == nil {
		return nil, nil
	}
	_, violations, err := r.validate(ctx, s, raw)
	return violations, err
}

// isAccepted reports whether a document is an envelope that the node accepts.
func (r *reader) isAccepted(raw json.RawMessage) bool {
	if r.emission == nil || r.expected.kind == "" && r.contract == nil || r.requestedSchema().namesEnvelope {
		return false
	}
	c, ok := newCandidate(document{raw: raw})
	return ok && r.accepts(c.kind)
}

// hasTexts reports whether a document may have JSON text in a string.
func hasTexts(raw json.RawMessage) bool {
	for _, begin := range []string{`"[`, `"{`, `"` + fence, `"\n`} {
		if bytes.Contains(raw, []byte(begin)) {
			return true
		}
	}
	return false
}

// maxTextDepth limits how deep a string is looked for. Each level reads what is below it.
const maxTextDepth = 32

// withoutTexts returns a document with the values of the strings that are JSON text where the schema wants
// an object or a list. All other bytes stay as they are. at is the place of raw in the document.
func withoutTexts(raw json.RawMessage, at string, violations []schema.Violation) (out json.RawMessage, found bool) {
	within := func(v schema.Violation) bool { return strings.HasPrefix(v.InstancePath, at+"/") }
	wrong := func(v schema.Violation) bool { return v.InstancePath == at && v.Keyword == "type" }
	switch kind := strictjson.KindOf(raw); {
	case kind == "a string" && at != "" && slices.ContainsFunc(violations, wrong):
		return unfenced(raw)
	case strings.Count(at, "/") == maxTextDepth || !slices.ContainsFunc(violations, within):
	case kind == "an object":
		out = json.RawMessage("{")
		ok := strictjson.Each(raw, func(name, value []byte) {
			less, changed := withoutTexts(value, at+jsonpointer.Of(string(name)), violations)
			if changed {
				value, found = less, true
			}
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(append(out, strictjson.RenderPlain(string(name))...), ':'), value...)
		})
		return append(out, '}'), ok && found
	case kind == "an array":
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return raw, false
		}
		for i, item := range items {
			if less, changed := withoutTexts(item, at+"/"+strconv.Itoa(i), violations); changed {
				items[i], found = less, true
			}
		}
		return joined(items), found
	}
	return raw, false
}

// joined returns a list of the items as they are.
func joined(items []json.RawMessage) json.RawMessage {
	out := []byte("[")
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return append(out, ']')
}

// turnDocuments returns the envelopes that a document lists, also one in a wrapper if the node accepts all
// that it lists.
func (r *reader) turnDocuments(d document) ([]document, bool) {
	if items, ok := turnDocuments(d); ok {
		return items, true
	}
	names := r.wrapperNames(r.requestedSchema().schema)
	for range maxWrappers {
		inner, ok := unwrap(d.raw, names)
		if !ok {
			break
		}
		d.raw, d.path = inner, pathText
		if items, ok := turnDocuments(d); ok {
			stray := slices.ContainsFunc(items, func(item document) bool {
				c, isEnvelope := newCandidate(item)
				return !isEnvelope || !r.accepts(c.kind)
			})
			return items, len(items) > 0 && !stray
		}
	}
	return nil, false
}
