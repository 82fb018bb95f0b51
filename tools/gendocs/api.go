package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/services/gateway/openapi"
)

const apiHead = "# The REST API\n\n" +
	"Generated from the OpenAPI document by `make gen`; do not edit.\n\n" +
	"Every operation that `GET /v1/openapi.json` describes, with what it takes and which scope it needs. That document has the schemas of the bodies as well, and the API page\n" +
	"of the [console](../console.md) tries them. Requests carry `Authorization: Bearer KEY` where a scope is named, and all but GET may carry an `Idempotency-Key`. What is\n" +
	"refused is one of [these errors](../errors.md); events are [these](../events.md). Required is what has no default; a request that\n" +
	"lacks something else that it needs gets `validation_error`.\n"

// operation is one operation of the page.
type operation struct {
	Summary    string   `json:"summary"`
	Tags       []string `json:"tags"`
	Parameters []struct {
		Name string `json:"name"`
		In   string `json:"in"`
	} `json:"parameters"`
	RequestBody *struct {
		Content map[string]struct {
			Schema apiSchema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
	Responses map[string]json.RawMessage `json:"responses"`
	Security  []map[string][]string      `json:"security"`
}

// apiSchema is the schema of a body.
type apiSchema struct {
	Ref        string                     `json:"$ref"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
}

type apiDocument struct {
	Tags []struct {
		Name string `json:"name"`
	} `json:"tags"`
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]apiSchema `json:"schemas"`
	} `json:"components"`
}

// apiPage renders the console's API page as Markdown.
func apiPage() (string, error) {
	text, err := openapi.Document("")
	if err != nil {
		return "", err
	}
	var doc apiDocument
	if err := json.Unmarshal(text, &doc); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(apiHead)
	for _, tag := range doc.Tags {
		fmt.Fprintf(&b, "\n## %s\n\n| request | does | parameters | body | answers | scope |\n|---|---|---|---|---|---|\n", upperFirst(tag.Name))
		for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
			for _, verb := range slices.Sorted(maps.Keys(doc.Paths[path])) {
				if op := doc.Paths[path][verb]; slices.Contains(op.Tags, tag.Name) {
					fmt.Fprintf(&b, "| `%s %s` | %s | %s | %s | %s | %s |\n", strings.ToUpper(verb), path, op.Summary, op.parameters(), doc.body(op), op.successes(), op.scopes())
				}
			}
		}
	}
	return b.String(), nil
}

// parameters omits path parameters, which the path shows, and the key, which the page's
// introduction explains.
func (o operation) parameters() string {
	var names []string
	for _, p := range o.Parameters {
		if p.In != "path" && p.Name != "Idempotency-Key" {
			names = append(names, "`"+p.Name+"`")
		}
	}
	return strings.Join(names, ", ")
}

// body names the members of the request body, required ones first.
func (d *apiDocument) body(o operation) string {
	if o.RequestBody == nil {
		return ""
	}
	s := o.RequestBody.Content["application/json"].Schema
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		s = d.Components.Schemas[name]
	}
	if len(s.Properties) == 0 {
		return "a JSON object"
	}
	var required, optional []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if slices.Contains(s.Required, name) {
			required = append(required, "`"+name+"` (required)")
		} else {
			optional = append(optional, "`"+name+"`")
		}
	}
	return strings.Join(slices.Concat(required, optional), ", ")
}

func (o operation) successes() string {
	var good []string
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		if strings.HasPrefix(status, "2") {
			good = append(good, status)
		}
	}
	return strings.Join(good, ", ")
}

func (o operation) scopes() string {
	var names []string
	for _, s := range o.Security {
		for _, scope := range s["apiKey"] {
			names = append(names, "`"+scope+"`")
		}
	}
	return strings.Join(names, " and ")
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
