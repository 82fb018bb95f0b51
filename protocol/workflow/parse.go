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

// shape is the compiled SchemaJSON, created on first use.
var shape = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile("workflow-definition", SchemaJSON)
	if err != nil {
		panic(err) // the document is embedded
	}
	return s
})

// Parse reads a definition of at most 1 MiB and 64 levels. It reports at most 64 problems, sorted
// by path: shape problems, and semantic problems where the shape permits the check. With problems
// the definition is nil. The definition keeps its own copy of doc.
func Parse(doc []byte) (*Definition, []Problem) { return whole(parse(doc, false)) }

// ParseDraft is Parse for a checker that looks for further problems: with problems it returns what could
// be read, or nil if the document is not JSON.
func ParseDraft(doc []byte) (*Definition, []Problem) { return parse(doc, false) }

// ParseStored is Parse for a registered definition. It drops invalid settings that earlier host
// versions did not check instead of rejecting them, so that runs of the definition continue.
func ParseStored(doc []byte) (*Definition, []Problem) { return whole(parse(doc, true)) }

// whole drops a definition with problems.
func whole(d *Definition, found []Problem) (*Definition, []Problem) {
	if len(found) > 0 {
		return nil, found
	}
	return d, nil
}

func parse(doc []byte, stored bool) (*Definition, []Problem) {
	var found problems
	if err := strictjson.Check(doc, strictjson.Default); err != nil {
		path, reason := "", err.Error()
		if e, ok := errors.AsType[*strictjson.Error](err); ok {
			path, reason = e.Path, e.Reason
			if hint := strictjson.Hint(doc, e.Offset); hint != "" {
				reason += "; " + hint
			}
		}
		found.add(path, RuleJSON, reason)
		return nil, found
	}
	found.violations("", shape(), doc)

	d := &Definition{Raw: slices.Clone(doc)}
	// The shape check has reported this error already. Whatever was decoded is still checked.
	err := json.Unmarshal(doc, d)
	d.setDefaults()
	check(d, &found)
	if !stored {
		checkNodeIDs(d, &found)
		checkOpen(d, &found)
	}
	if stored && found.drop(RuleSchedule) {
		d.Settings.schedule = scheduling{}
	}
	if stored && found.drop(RuleRetention) {
		d.Settings.retention = ""
	}
	if err != nil && len(found) == 0 {
		found.add("", RuleJSON, fmt.Sprintf("the document could not be read: %v", err))
	}
	if len(found) > 0 {
		return d, found.sorted()
	}
	return d, nil
}

// CheckConfigurable applies the workflow's configurableSchema to the member configurable of a run
// request; nil means {}. Paths are at or below /configurable. Without the schema any value is
// valid.
func (d *Definition) CheckConfigurable(configurable json.RawMessage) []Problem {
	if d.configurable == nil {
		return nil
	}
	if configurable == nil {
		configurable = json.RawMessage(`{}`)
	}
	var found problems
	found.violations("/configurable", d.configurable, configurable)
	return found
}
