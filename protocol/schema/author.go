package schema

import (
	_ "embed"
	"encoding/json"
	"sync"
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
// begin with x- are left out.
func UnknownKeywords(doc []byte) []Finding {
	var out []Finding
	for _, v := range keywordSchema().Validate(doc) {
		if !v.UnknownMember() {
			continue // reported when the schema is compiled
		}
		f := Finding{Path: v.InstancePath, Rule: RuleUnknownKeyword, Message: "JSON Schema has no such keyword, and ignores it"}
		if f.Meant = Near(lastToken(v.InstancePath), keywordSchema().members(v)); f.Meant != "" {
			f.Message += "; did you mean " + f.Meant + "?"
		} else {
			f.Message += "; names of your own begin with x-"
		}
		out = append(out, f)
	}
	return out
}
