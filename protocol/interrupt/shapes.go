package interrupt

import (
	"embed"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/workflow"
)

// JSON Schemas for the data and the answers, as far as a schema can express the rules.
//
//go:embed schemas
var shapeFiles embed.FS

// shapes maps file names to compiled schemas; compiled once.
var shapes = sync.OnceValue(func() map[string]*schema.Schema {
	files, err := shapeFiles.ReadDir("schemas")
	if err != nil {
		panic("interrupt: " + err.Error()) // embedded files, covered by a test
	}
	out := map[string]*schema.Schema{}
	for _, f := range files {
		doc, err := shapeFiles.ReadFile("schemas/" + f.Name())
		if err != nil {
			panic("interrupt: " + err.Error())
		}
		compiled, err := schema.Compile(f.Name(), doc)
		if err != nil {
			panic("interrupt: " + err.Error())
		}
		out[strings.TrimSuffix(f.Name(), ".json")] = compiled
	}
	return out
})

// checkShape validates a document against a shape; error paths start with below.
func checkShape(shape, below string, doc json.RawMessage) []workflow.Problem {
	return workflow.Violations(below, shapes()[shape], doc)
}

// violations converts the violations of an answer.
func violations(below string, vs []schema.Violation) []workflow.Problem {
	var out []workflow.Problem
	for _, v := range vs {
		out = append(out, workflow.Problem{Path: below + v.InstancePath, Rule: v.Keyword, Message: v.Message})
	}
	return out
}

// schemaProblem returns why an author's schema cannot be used; nil if it can.
func schemaProblem(path string, doc json.RawMessage) []workflow.Problem {
	_, err := schema.Compile(path, doc)
	if err == nil {
		return nil
	}
	p := workflow.Problem{Path: path, Rule: workflow.RuleSchema, Message: err.Error()}
	if e, ok := errors.AsType[*schema.Error](err); ok {
		p.Path, p.Message = path+e.Path, e.Reason
	}
	return []workflow.Problem{p}
}
