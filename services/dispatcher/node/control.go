package node

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/expr"
)

// The node types of control flow and data flow (OpenWOP host contract §5.6 reserves
// their names). All are pure: what they put out follows from what they are given.
const (
	TypeStart       = "core.start"
	TypeEnd         = "core.end"
	TypeConditional = "core.conditional"
	TypeParallel    = "core.parallel"
	TypeMerge       = "core.merge"
	TypeSetVariable = "core.setVariable"
	TypeGetVariable = "core.getVariable"
	TypeLoop        = "core.loop"
)

func flowTypes() []Type {
	output := []string{"output"}
	return []Type{
		{ID: TypeStart, Class: Pure, Do: begin},
		{ID: TypeEnd, Class: Pure, Do: pass},
		{ID: TypeParallel, Class: Pure, Do: pass},
		{ID: TypeConditional, Class: Pure, Do: decide, Lint: lintConditional, Outputs: []string{"output", "result"}},
		{ID: TypeMerge, Class: Pure, Do: merge, Lint: lintMerge, Outputs: output},
		{ID: TypeSetVariable, Class: Pure, Do: setVariable, Lint: lintSetVariable, Outputs: output},
		{ID: TypeGetVariable, Class: Pure, Do: getVariable, Lint: lintGetVariable, Outputs: output},
		{ID: TypeLoop, Class: Pure, Do: loop, Lint: lintLoop, Outputs: []string{"output", "last", "count"}},
	}
}

// begin puts out the run's inputs, each on a port of its name and all as output.
func begin(in Input) (Output, *wire.NodeError) {
	all := in.RunInputs
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	ports := maps.Clone(all)
	if _, named := ports["output"]; !named {
		ports["output"] = strictjson.RenderPlain(all)
	}
	return Output{Ports: ports}, nil
}

// pass hands on its ports; what an edge carried in by default goes on by default.
func pass(in Input) (Output, *wire.NodeError) {
	ports := maps.Clone(in.Ports)
	if v, ok := ports["input"]; ok {
		if _, named := ports["output"]; !named {
			ports["output"] = v
		}
	}
	return Output{Ports: ports}, nil
}

// decide puts out result, true or false, and hands on what came in.
func decide(in Input) (Output, *wire.NodeError) {
	cfg, _ := settings(in.Config)
	holds, reads, err := verdict(in, cfg)
	out := Output{Untrusted: in.looksAtUntrusted(reads)}
	if err != nil {
		return out, Invalid("/config: %s", err)
	}
	out.Ports = map[string]json.RawMessage{"result": strictjson.RenderPlain(holds)}
	if v, ok := in.Ports["input"]; ok {
		out.Ports["output"] = v
	}
	return out, nil
}

func verdict(in Input, cfg map[string]json.RawMessage) (bool, expr.Members, error) {
	text, given := strictjson.String(cfg["expression"])
	if raw, has := cfg["condition"]; has && !given {
		c, found := workflow.ReadCondition(raw)
		if len(found) > 0 {
			return false, expr.Members{}, Problem("condition", found)
		}
		if c.Type != workflow.ConditionExpression {
			compiled, err := definition.CompileCondition(c, expr.Node, "inputs")
			if err != nil {
				return false, expr.Members{}, err
			}
			holds, err := compiled.Holds(in.Ports, in.Variables)
			return holds, expr.Members{}, err
		}
		text = c.Expression
	}
	p, err := in.Flow.Expression(expr.Node, text, true)
	if err != nil {
		return false, expr.Members{}, err
	}
	holds, _, err := p.Holds(expr.Over(in.roots(), nil, p))
	return holds, p.Reads()["variables"], err
}

// Problem is the first of some problems as an error.
func Problem(at string, found []workflow.Problem) error {
	return &expr.Error{Message: at + found[0].Path + ": " + found[0].Message}
}

// roots are what the expressions of a node's config see.
func (in Input) roots() map[string]expr.Object {
	return map[string]expr.Object{"inputs": in.Ports, "variables": in.Variables}
}

func (in Input) looksAtUntrusted(read expr.Members) bool {
	for name, untrusted := range in.UntrustedVariables {
		if untrusted && read.Has(name) {
			return true
		}
	}
	return false
}

// merge joins its ports: as an object by port (the default), as an array in the
// order of the ports' names, or as one object of all members, a later port's first.
func merge(in Input) (Output, *wire.NodeError) {
	cfg, _ := settings(in.Config)
	mode, _ := strictjson.String(cfg["mode"])
	var joined json.RawMessage
	switch mode {
	case "", "object":
		joined = strictjson.RenderPlain(in.Ports)
	case "array":
		all := []json.RawMessage{}
		for _, name := range slices.Sorted(maps.Keys(in.Ports)) {
			all = append(all, in.Ports[name])
		}
		joined = strictjson.RenderPlain(all)
	case "members":
		all := map[string]json.RawMessage{}
		for _, name := range slices.Sorted(maps.Keys(in.Ports)) {
			members, err := strictjson.Split(in.Ports[name], strictjson.Limits{MaxBytes: len(in.Ports[name]) + 1, MaxDepth: 256})
			if err != nil || members == nil {
				return Output{}, Invalid("port %s: want an object, for mode is members", name)
			}
			maps.Copy(all, members)
		}
		joined = strictjson.RenderPlain(all)
	default:
		return Output{}, Invalid("/config/mode: want object, array or members")
	}
	return Output{Ports: map[string]json.RawMessage{"output": joined}}, nil
}

// setVariable sets a variable to its port value, else its port input, else the
// config's value.
func setVariable(in Input) (Output, *wire.NodeError) {
	cfg, _ := settings(in.Config)
	name := variable(cfg)
	if name == "" {
		return Output{}, Invalid("/config/name: want the name of a variable")
	}
	for _, v := range []json.RawMessage{in.Ports["value"], in.Ports["input"], cfg["value"]} {
		if v != nil {
			return Output{Ports: map[string]json.RawMessage{"output": v}, Writes: map[string]json.RawMessage{name: v}}, nil
		}
	}
	return Output{}, Invalid("the variable gets no value: none at the ports value and input, none as /config/value")
}

// getVariable puts out a variable's value, or the config's default.
func getVariable(in Input) (Output, *wire.NodeError) {
	cfg, _ := settings(in.Config)
	name := variable(cfg)
	if name == "" {
		return Output{}, Invalid("/config/name: want the name of a variable")
	}
	v, ok := in.Variables[name]
	if !ok {
		v, ok = cfg["default"]
	}
	if !ok {
		return Output{}, Invalid("variable %q has no value; /config/default would be used instead", name)
	}
	return Output{Ports: map[string]json.RawMessage{"output": v}, Untrusted: in.UntrustedVariables[name]}, nil
}

// variable is the name in the config of a node that reads or writes one.
func variable(cfg map[string]json.RawMessage) string {
	name, _ := strictjson.String(cfg["name"])
	if name == "" {
		name, _ = strictjson.String(cfg["variableName"])
	}
	return name
}

// settings are the members of a config; nil for none.
func settings(config json.RawMessage) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(config)) == 0 {
		return nil, nil
	}
	return strictjson.Split(config, strictjson.Default)
}
