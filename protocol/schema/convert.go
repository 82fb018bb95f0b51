package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
)

// Documents of older drafts and of OpenAPI 3.0 are converted to the dialect before they are compiled.
// Kinds are served, and schemas sent to models, in the dialect only (OpenWOP envelope contract §4).

// draft is a version of JSON Schema that is older than the dialect.
type draft int

const (
	current draft = iota
	draft2019
	draft7
	draft6
	draft4
)

// known are the accepted values of $schema, without a final #. Draft 5 has the meta-schema of draft 4.
var known = map[string]draft{
	dialect: current,
	"https://spec.openapis.org/oas/3.1/dialect/base": current,
	"https://json-schema.org/draft/2019-09/schema":   draft2019,
	"http://json-schema.org/draft-07/schema":         draft7,
	"https://json-schema.org/draft-07/schema":        draft7,
	"http://json-schema.org/draft-06/schema":         draft6,
	"https://json-schema.org/draft-06/schema":        draft6,
	"http://json-schema.org/draft-04/schema":         draft4,
	"https://json-schema.org/draft-04/schema":        draft4,
}

// notADialect is the reason for rejecting a value of $schema.
const notADialect = "only the dialect " + dialect + " and the drafts 2019-09, 07, 06 and 04 are understood"

// RuleConverted marks a keyword of an older draft or of OpenAPI 3.0 that is converted.
const RuleConverted = "converted"

// Conversion is a schema document in the dialect.
type Conversion struct {
	// Document is the source itself if it is in the dialect already.
	Document []byte
	// Changes names each converted keyword, by its path in the source.
	Changes []Finding

	moved map[string]string // paths in the source, by path in Document, where they differ
}

// Convert converts a schema of JSON Schema draft 2019-09, 07, 06 or 04, or of OpenAPI 3.0, to the
// dialect. Members keep their order and numbers their digits. The error is an *Error. The result
// may be an invalid schema; Compile reports that.
func Convert(doc []byte) (Conversion, error) {
	c, _, err := convert(doc)
	if err != nil {
		return Conversion{}, err
	}
	return c, nil
}

// convert is Convert, with the value of the converted document.
func convert(doc []byte) (Conversion, any, *Error) {
	limits := strictjson.Limits{MaxBytes: maxSchemaBytes, MaxDepth: maxSchemaDepth}
	v, err := strictjson.Value(doc, limits)
	if err != nil {
		return Conversion{}, nil, notJSON(err)
	}
	if !mayBeOlder(doc) || !isOlder(v) {
		return Conversion{Document: doc}, v, nil
	}
	c := converter{moved: map[string]string{}, now: map[string]string{}}
	out := c.schema(bytes.TrimSpace(doc), place{}, current)
	if c.misplaced != nil {
		return Conversion{}, nil, c.misplaced
	}
	if len(c.now) > 0 {
		out = c.repoint(out)
	}
	// Wrapping adds levels and bytes, so the limits apply again.
	if v, err = strictjson.Value(out, limits); err != nil {
		e := notJSON(err)
		e.Reason = "converted to the dialect, the schema is too large: " + e.Reason
		e.Path = ""
		return Conversion{}, nil, e
	}
	return Conversion{Document: out, Changes: c.changes, moved: c.moved}, v, nil
}

// Source returns the path in the source of a path in the converted document.
func (c Conversion) Source(path string) string {
	if len(c.moved) == 0 {
		return path
	}
	for at := path; ; {
		if old, ok := c.moved[at]; ok {
			return old + path[len(at):]
		}
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			return path
		}
		at = at[:i]
	}
}

// mayBeOlder excludes most documents without a look at their structure.
func mayBeOlder(doc []byte) bool {
	for _, name := range []string{`"nullable"`, `"exclusiveM`, `"$schema"`, `"items"`} {
		if bytes.Contains(doc, []byte(name)) {
			return true
		}
	}
	return false
}

// isOlder reports whether a document has a keyword to convert.
func isOlder(doc any) bool {
	for p := range walk(doc) {
		o := p.object
		if d, ok := o["$schema"].(string); ok && strings.TrimSuffix(d, "#") != dialect {
			return true
		}
		_, nullable := o["nullable"].(bool)
		_, minimum := o["exclusiveMinimum"].(bool)
		_, maximum := o["exclusiveMaximum"].(bool)
		_, tuple := o["items"].([]any)
		if nullable || minimum || maximum || tuple {
			return true
		}
	}
	return false
}

// place is the path of a schema in the source and in the converted document.
type place struct{ old, now string }

type converter struct {
	changes   []Finding
	moved     map[string]string // source paths by converted path
	now       map[string]string // converted paths by source path
	misplaced *Error
}

func (c *converter) note(at, format string, args ...any) {
	c.changes = append(c.changes, Finding{Path: at, Rule: RuleConverted, Message: fmt.Sprintf(format, args...)})
}

// schema converts a schema and everything below it.
func (c *converter) schema(raw json.RawMessage, at place, d draft) json.RawMessage {
	if at.old != at.now {
		c.moved[at.now], c.now[at.old] = at.old, at.now
	}
	if len(raw) == 0 || raw[0] != '{' {
		return raw
	}
	o := readMembers(raw)
	d = c.draftOf(o, at, d)
	if d >= draft7 {
		c.onlyReference(o, at)
	}
	c.identify(o, at, d)
	c.recursive(o, at, d)
	c.exclusive(o, at, "exclusiveMinimum", "minimum")
	c.exclusive(o, at, "exclusiveMaximum", "maximum")
	tuple := c.tuple(o, at)
	c.dependencies(o, at, d)
	wraps := c.nullable(o, at)
	inside := at
	if wraps {
		inside.now += "/anyOf/0"
	}
	c.children(o, inside, at, d, tuple)
	if wraps {
		o = o.orNull()
	}
	return o.render()
}

// draftOf reads $schema and replaces it with the dialect's.
func (c *converter) draftOf(o *members, at place, inherited draft) draft {
	uri, ok := strictjson.String(o.get("$schema"))
	if !ok {
		return inherited
	}
	d, ok := known[strings.TrimSuffix(uri, "#")]
	if !ok {
		if c.misplaced == nil {
			c.misplaced = &Error{Path: at.old + "/$schema", Reason: notADialect}
		}
		return inherited
	}
	if strings.TrimSuffix(uri, "#") != dialect {
		c.note(at.old+"/$schema", "%s is converted to %s", uri, dialect)
		o.set("$schema", strictjson.RenderPlain(dialect))
	}
	return d
}

// annotations are the keywords that do not restrict values, and those that identify a schema or hold
// definitions.
var annotations = []string{
	"$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "title", "description", "default",
	"example", "examples", "deprecated", "readOnly", "writeOnly", "externalDocs", "xml", "discriminator",
}

func isAnnotation(name string) bool {
	return slices.Contains(annotations, name) || strings.HasPrefix(name, "x-")
}

// onlyReference removes what older drafts ignore next to $ref.
func (c *converter) onlyReference(o *members, at place) {
	if o.get("$ref") == nil {
		return
	}
	for _, name := range o.names() {
		if name != "$ref" && name != "nullable" && !isAnnotation(name) {
			o.drop(name)
			c.note(at.old+jsonpointer.Of(name), "ignored next to $ref, as the draft says")
		}
	}
}

// identify renames id, and turns an $id that is a fragment into an anchor.
func (c *converter) identify(o *members, at place, d draft) {
	if d == draft4 {
		if _, ok := strictjson.String(o.get("id")); ok && o.get("$id") == nil {
			o.rename("id", "$id")
			c.note(at.old+"/id", "read as $id")
		}
	}
	if d < draft7 {
		return
	}
	if id, ok := strictjson.String(o.get("$id")); ok && len(id) > 1 && id[0] == '#' {
		o.rename("$id", "$anchor")
		o.set("$anchor", strictjson.RenderPlain(id[1:]))
		c.note(at.old+"/$id", "read as $anchor")
	}
}

// recursive converts the recursive references of draft 2019-09. In a document that refers to no
// other, they lead to its root.
func (c *converter) recursive(o *members, at place, d draft) {
	if d != draft2019 {
		return
	}
	o.drop("$recursiveAnchor")
	if o.get("$recursiveRef") != nil && o.get("$ref") == nil {
		o.rename("$recursiveRef", "$ref")
		c.note(at.old+"/$recursiveRef", "read as $ref")
	}
}

// exclusive converts a boolean exclusive bound.
func (c *converter) exclusive(o *members, at place, exclusive, bound string) {
	switch value := string(o.get(exclusive)); {
	case value == "true" && o.get(bound) != nil:
		o.drop(exclusive)
		o.rename(bound, exclusive)
		c.note(at.old+"/"+exclusive, "read as %s with the value of %s", exclusive, bound)
	case value == "true" || value == "false":
		o.drop(exclusive)
		c.note(at.old+"/"+exclusive, "left out: it has no effect")
	}
}

// tuple converts a list of schemas in items.
func (c *converter) tuple(o *members, at place) bool {
	items := o.get("items")
	if len(items) == 0 || items[0] != '[' {
		return false
	}
	o.rename("items", "prefixItems")
	c.note(at.old+"/items", "read as prefixItems")
	if o.get("additionalItems") != nil {
		o.rename("additionalItems", "items")
		c.note(at.old+"/additionalItems", "read as items")
	}
	if string(o.get("prefixItems")) == "[]" { // not allowed to be empty
		o.drop("prefixItems")
	}
	return true
}

// dependencies splits dependencies of older drafts by what they hold.
func (c *converter) dependencies(o *members, at place, d draft) {
	all := o.get("dependencies")
	if d < draft7 || len(all) == 0 || all[0] != '{' {
		return
	}
	required, schemas := &members{}, &members{}
	for _, m := range readMembers(all).list {
		if len(m.value) > 0 && m.value[0] == '[' {
			required.list = append(required.list, m)
		} else {
			schemas.list = append(schemas.list, m)
		}
	}
	o.drop("dependencies")
	for _, part := range []struct {
		name string
		of   *members
	}{{"dependentRequired", required}, {"dependentSchemas", schemas}} {
		if len(part.of.list) > 0 && o.get(part.name) == nil {
			o.set(part.name, part.of.render())
			c.note(at.old+"/dependencies", "read as %s", part.name)
		}
	}
}

// children converts the subschemas. Definitions stay outside of a wrapped schema.
func (c *converter) children(o *members, inside, outside place, d draft, tuple bool) {
	o.eachSchema(func(value json.RawMessage, keyword string, name ...string) json.RawMessage {
		at := inside
		if isAnnotation(keyword) {
			at = outside
		}
		return c.schema(value, place{
			old: at.old + jsonpointer.Of(append([]string{sourceName(keyword, d, tuple)}, name...)...),
			now: at.now + jsonpointer.Of(append([]string{keyword}, name...)...),
		}, d)
	})
}

// sourceName returns the source's name of a converted keyword.
func sourceName(name string, d draft, tuple bool) string {
	switch {
	case tuple && name == "prefixItems":
		return "items"
	case tuple && name == "items":
		return "additionalItems"
	case d >= draft7 && name == "dependentSchemas":
		return "dependencies"
	}
	return name
}

// repoint changes references to places that moved.
func (c *converter) repoint(raw json.RawMessage) json.RawMessage {
	var visit func(raw json.RawMessage, _ string, _ ...string) json.RawMessage
	visit = func(raw json.RawMessage, _ string, _ ...string) json.RawMessage {
		if len(raw) == 0 || raw[0] != '{' {
			return raw
		}
		o := readMembers(raw)
		if ref, ok := strictjson.String(o.get("$ref")); ok && strings.HasPrefix(ref, "#/") {
			target := ref[1:]
			if plain, err := url.PathUnescape(target); err == nil {
				target = plain
			}
			if now, ok := c.now[target]; ok {
				o.set("$ref", strictjson.RenderPlain("#"+(&url.URL{Path: now}).EscapedPath()))
			}
		}
		o.eachSchema(visit)
		return o.render()
	}
	return visit(raw, "")
}
