package workflow

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/suggest"
)

// Seed returns the variables of a new run: the defaults, overridden by inputs of the same name.
// Inputs without a variable are not included. Problems have the path /inputs/<name>: a required
// variable without a value, or a value of the wrong type (OpenWOP host contract §5.3).
func (d *Definition) Seed(inputs map[string]json.RawMessage) (vars map[string]json.RawMessage, found []Problem) {
	return d.SeedWithout(inputs, nil)
}

// SeedWithout is Seed for a run whose parent has no value for some variables. Those variables have
// neither their default nor null, and are not required (OpenWOP host contract §5.6).
func (d *Definition) SeedWithout(inputs map[string]json.RawMessage, unset []string) (vars map[string]json.RawMessage, found []Problem) {
	vars = map[string]json.RawMessage{}
	var ps problems
	for _, v := range d.Variables {
		value, given := inputs[v.Name]
		switch {
		case given && !hasType(value, v.Type):
			ps.add(pointer("inputs", v.Name), RuleValueType, "want "+article(v.Type)+", got "+strictjson.KindOf(value))
		case given:
			vars[v.Name] = value
		case slices.Contains(unset, v.Name):
		case v.DefaultValue != nil:
			vars[v.Name] = v.DefaultValue
		case v.Required:
			ps.add(pointer("inputs", v.Name), RuleRequired, "the workflow requires this input: "+article(v.Type)+misspelt(v.Name, d.Undeclared(inputs)))
		}
	}
	if len(ps) > 0 {
		return nil, ps.sorted()
	}
	return vars, nil
}

// misspelt names the unknown input that may be meant for a missing one.
func misspelt(missing string, undeclared []string) string {
	near := suggest.Names(missing, undeclared, 1)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean it with " + strconv.Quote(near[0]) + "?"
}

// Undeclared lists the inputs without a variable, sorted.
func (d *Definition) Undeclared(inputs map[string]json.RawMessage) []string {
	rest := maps.Clone(inputs)
	for _, v := range d.Variables {
		delete(rest, v.Name)
	}
	return slices.Sorted(maps.Keys(rest))
}
