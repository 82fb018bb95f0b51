package workflow

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// SchemaJSON is the JSON Schema of definitions that Parse applies.
//
//go:embed definition.schema.json
var SchemaJSON []byte

// shape is the compiled SchemaJSON, made on first use: it never changes.
var shape = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile("workflow-definition", SchemaJSON)
	if err != nil {
		panic(err) // the embedded document is part of the program
	}
	return s
})

// Parse reads a definition of at most 1 MiB and 64 levels. It reports all
// problems it can find, sorted by place and at most 64: those of the shape, and
// those of meaning where the shape allows to look. With problems the definition
// is nil. The definition keeps its own copy of doc.
func Parse(doc []byte) (*Definition, []Problem) { return parse(doc, false) }

// ParseStored is Parse for a definition that was registered before. Settings that a host of before
// did not check, and that are not valid, are left out instead of refused: runs of the definition
// go on.
func ParseStored(doc []byte) (*Definition, []Problem) { return parse(doc, true) }

func parse(doc []byte, stored bool) (*Definition, []Problem) {
	var found problems
	if err := strictjson.Check(doc, strictjson.Default); err != nil {
		path, reason := "", err.Error()
		if e, ok := errors.AsType[*strictjson.Error](err); ok {
			path, reason = e.Path, e.Reason
		}
		found.add(path, RuleJSON, reason)
		return nil, found
	}
	found.violations("", shape().Validate(doc))

	d := &Definition{Raw: slices.Clone(doc)}
	// An error here repeats what the shape check has found; what could be read
	// is still worth checking.
	err := json.Unmarshal(doc, d)
	d.setDefaults()
	check(d, &found)
	if stored && found.drop(RuleSchedule) {
		d.Settings.schedule = scheduling{}
	}
	if err != nil && len(found) == 0 {
		found.add("", RuleJSON, fmt.Sprintf("the document could not be read: %v", err))
	}
	if len(found) > 0 {
		return nil, found.sorted()
	}
	return d, nil
}

// CheckConfigurable applies the workflow's configurableSchema to the member
// configurable of a run request; nil counts as {}. Problems lie at or below
// /configurable. A workflow without the schema takes anything.
func (d *Definition) CheckConfigurable(configurable json.RawMessage) []Problem {
	if d.configurable == nil {
		return nil
	}
	if configurable == nil {
		configurable = json.RawMessage(`{}`)
	}
	var found problems
	found.violations("/configurable", d.configurable.Validate(configurable))
	return found
}
