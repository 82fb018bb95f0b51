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

// The shapes of what is asked and answered, as far as a schema can say them.
//
//go:embed schemas
var shapeFiles embed.FS

// shapes by the name of their file; each is compiled once.
var shapes = sync.OnceValue(func() map[string]*schema.Schema {
	files, err := shapeFiles.ReadDir("schemas")
	if err != nil {
		panic("interrupt: " + err.Error()) // part of the binary, and a test reads them
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

// misfits holds a document against a shape; paths begin with below.
func misfits(shape, below string, doc json.RawMessage) []workflow.Problem {
	return violations(below, shapes()[shape].Validate(doc))
}

func violations(below string, vs []schema.Violation) []workflow.Problem {
	var out []workflow.Problem
	for _, v := range vs {
		out = append(out, workflow.Problem{Path: below + v.InstancePath, Rule: v.Keyword, Message: v.Message})
	}
	return out
}

// schemaProblem says why a schema that somebody wrote is none that could be applied;
// nil: it is one.
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

// escape writes a name as a token of a JSON pointer.
var escape = strings.NewReplacer("~", "~0", "/", "~1")
