package schema

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
)

//go:embed author.schema.json
var authorJSON []byte

// AuthorSchema is a JSON Schema of schemas that is closed: it finds misspelled keywords, which JSON Schema
// ignores.
func AuthorSchema() []byte { return authorJSON }

// keywordSchema is the closed part of AuthorSchema, compiled on first use. A test compiles it.
var keywordSchema = sync.OnceValue(func() *Schema {
	var doc struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	err := json.Unmarshal(authorJSON, &doc)
	var closed []byte
	if err == nil {
		closed, err = json.Marshal(map[string]any{"$ref": "#/$defs/schema", "$defs": doc.Defs})
	}
	var s *Schema
	if err == nil {
		s, err = Compile("keywords", closed)
	}
	if err != nil {
		panic("schema: the embedded schema of keywords: " + err.Error())
	}
	return s
})

// RuleUnknownKeyword is the rule of a keyword that JSON Schema does not have.
const RuleUnknownKeyword = "unknown-keyword"

// UnknownKeywords lists the keywords of a schema that neither JSON Schema nor OpenAPI has. Those that
// begin with x- are left out. Warning marks those that are not close to a keyword.
func UnknownKeywords(doc []byte) []Finding {
	var out []Finding
	if isExample(doc) {
		return []Finding{{Rule: RuleUnknownKeyword, Message: "no member is a keyword of JSON Schema, so it checks nothing; " +
			`describe the value, as in {"type": "object", "properties": {"NAME": {"type": "string"}}}`}}
	}
	for _, v := range keywordSchema().Validate(doc) {
		if !v.UnknownMember() {
			continue // reported when the schema is compiled
		}
		f := Finding{Path: v.InstancePath, Rule: RuleUnknownKeyword, Message: "JSON Schema has no such keyword, and ignores it"}
		if v.InstancePath == "/"+strings.TrimPrefix(versionMember, "x-") {
			f.Message += "; did you mean " + versionMember + "?"
			f.Warning = true
		} else if near := Near(lastToken(v.InstancePath), keywordSchema().members(v)); near != "" {
			f.Message += "; did you mean " + near + "?"
		} else {
			f.Message += "; names of your own begin with x-"
			f.Warning = true
		}
		out = append(out, f)
	}
	return append(out, misspelledVersion(doc)...)
}

// versionMember is the version of a kind, a member of its schema.
const versionMember = "x-schemaVersion"

// misspelledVersion finds a member that is probably meant as the version of the kind.
func misspelledVersion(doc []byte) (out []Finding) {
	members := strictjson.Object(doc)
	if members[versionMember] != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if strings.HasPrefix(name, "x-") && len(name) > len(versionMember)-3 && Near(name, []string{versionMember}) != "" {
			out = append(out, Finding{
				Path: "/" + jsonpointer.Escape(name), Rule: RuleUnknownKeyword, Warning: true,
				Message: "hosts do not read it; did you mean " + versionMember + "?",
			})
		}
	}
	return out
}

// isExample reports whether a document is an object none of whose members is a keyword: most likely an
// example of the value instead of its schema.
func isExample(doc []byte) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(doc, &object) != nil || len(object) == 0 {
		return false
	}
	known := keywords()
	for name := range object {
		if strings.HasPrefix(name, "x-") || slices.Contains(known, name) || Near(name, known) != "" {
			return false
		}
	}
	return true
}

// keywords are those of the closed schema.
var keywords = sync.OnceValue(func() []string {
	var doc struct {
		Defs struct {
			Schema struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"schema"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(authorJSON, &doc); err != nil {
		panic("schema: the embedded schema of keywords: " + err.Error())
	}
	return slices.Sorted(maps.Keys(doc.Defs.Schema.Properties))
})
