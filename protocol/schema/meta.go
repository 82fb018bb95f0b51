package schema

import (
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill.dev/waybill/protocol/schema/internal/judge"
)

// metaUnits is the budget for validating a document against the meta-schema. The document's size
// limits the cost, so it is never reached.
const metaUnits = 1 << 26

// metaSchema is the dialect's meta-schema. The library applies it too, but continues after the
// first problem, so a list of a thousand mistakes would cost as much as a thousand schemas. It
// therefore receives only documents that passed this check.
var metaSchema = sync.OnceValues(func() (*judge.Program, error) {
	c := newCompiler(patterns{})
	compiled, err := c.Compile(dialect)
	if err != nil {
		return nil, fmt.Errorf("the dialect's own schema: %w", err)
	}
	p, _, err := judge.NewProgram(compiled, judge.Source{Regex: seenAlready{}})
	return p, err
})

// seenAlready is for patterns that parse has checked.
type seenAlready struct{}

func (seenAlready) Size(string) int    { return 0 }
func (seenAlready) Check(string) error { return nil }

// newCompiler returns a compiler that loads no external documents.
func newCompiler(ps patterns) *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseRegexpEngine(ps.compile)
	c.UseLoader(noLoader{})
	return c
}

// notASchema returns why a document is not a schema of the dialect; nil if it is one.
func notASchema(doc any) *Error {
	meta, err := metaSchema()
	if err != nil {
		return &Error{Reason: err.Error()}
	}
	verdict, found := meta.Judge(doc, metaUnits)
	if verdict == judge.Holds {
		return nil
	}
	vs := finish(found)
	if len(vs) == 0 {
		return &Error{Reason: "not a JSON Schema, in more places than can be listed"}
	}
	return &Error{Path: vs[0].InstancePath, Reason: "not a JSON Schema: " + vs[0].Message}
}
