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

// The node types of control flow and data flow (OpenWOP host contract §5.6 reserves their names).
// All are pure: their outputs depend only on their inputs.
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
		{ID: TypeStart, Class: Pure, Do: startNode},
		{ID: TypeEnd, Class: Pure, Do: passPorts},
		{ID: TypeParallel, Class: Pure, Do: passPorts},
		{
			ID:      TypeConditional,
			Class:   Pure,
			Do:      evaluateConditional,
			Lint:    lintConditional,
			Outputs: []string{"output", "result"},
		},
		{ID: TypeMerge, Class: Pure, Do: mergePorts, Outputs: output},
		{ID: TypeSetVariable, Class: Pure, Do: setVariable, Lint: lintSetVariable, Outputs: output},
		{ID: TypeGetVariable, Class: Pure, Do: getVariable, Lint: lintGetVariable, Outputs: output},
		{ID: TypeLoop, Class: Pure, Do: runLoop, Lint: lintLoop, Outputs: []string{"output", "last", "count"}},
	}
}

// startNode outputs the run's inputs, each on a port of its name and all as output.
func startNode(in Input) (Output, *wire.NodeError) {
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

// passPorts outputs its ports. The port input is also the output unless there is one.
func passPorts(in Input) (Output, *wire.NodeError) {
	ports := maps.Clone(in.Ports)
	if v, ok := ports["input"]; ok {
		if _, named := ports["output"]; !named {
			ports["output"] = v
		}
	}
	return Output{Ports: ports}, nil
}

// evaluateConditional outputs result, true or false, and passes its input on.
func evaluateConditional(in Input) (Output, *wire.NodeError) {
	cfg, _ := readConfig[conditionalConfig](in.Config) // checked at registration
	holds, reads, err := evaluateCondition(in, cfg)
	out := Output{Untrusted: in.readsUntrusted(reads)}
	if err != nil {
		return out, Invalid("/config: %s", err)
	}
	out.Ports = map[string]json.RawMessage{"result": strictjson.RenderPlain(holds)}
	if v, ok := in.Ports["input"]; ok {
		out.Ports["output"] = v
	}
	return out, nil
}

func evaluateCondition(in Input, cfg conditionalConfig) (bool, expr.Members, error) {
	var text string
	if cfg.Expression != nil {
		text = *cfg.Expression
	}
	if cfg.Condition != nil && cfg.Expression == nil {
		c, found := workflow.ReadCondition(cfg.Condition)
		if len(found) > 0 {
			return false, expr.Members{}, ProblemError("condition", found)
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
	holds, _, err := p.Holds(expr.NewValues(in.roots(), nil, p))
	return holds, p.Reads()["variables"], err
}

// ProblemError returns the first problem as an error.
func ProblemError(at string, found []workflow.Problem) error {
	return &expr.Error{Message: at + found[0].Path + ": " + found[0].Message}
}

// roots returns the values visible to expressions in a node's config.
func (in Input) roots() map[string]expr.Object {
	return map[string]expr.Object{"inputs": in.Ports, "variables": in.Variables}
}

func (in Input) readsUntrusted(read expr.Members) bool {
	for name, untrusted := range in.UntrustedVariables {
		if untrusted && read.Has(name) {
			return true
		}
	}
	return false
}

// mergePorts joins its ports: as an object by port (the default), as an array in the order of the
// port names, or as one object of all members, where later ports win.
func mergePorts(in Input) (Output, *wire.NodeError) {
	cfg, err := readConfig[mergeConfig](in.Config)
	if err != nil {
		return Output{}, Invalid("/config/mode: want object, array or members")
	}
	var joined json.RawMessage
	switch cfg.Mode {
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

// setVariable sets a variable to the port value, else the port input, else the config's value.
func setVariable(in Input) (Output, *wire.NodeError) {
	cfg, err := readConfig[setVariableConfig](in.Config)
	name := cfg.variable()
	if name == "" || err != nil {
		return Output{}, Invalid("/config/name: want the name of a variable")
	}
	for _, v := range []json.RawMessage{in.Ports["value"], in.Ports["input"], cfg.Value} {
		if v != nil {
			return Output{Ports: map[string]json.RawMessage{"output": v}, Writes: map[string]json.RawMessage{name: v}}, nil
		}
	}
	return Output{}, Invalid("the variable gets no value: none at the ports value and input, none as /config/value")
}

// getVariable outputs a variable's value, or the config's default.
func getVariable(in Input) (Output, *wire.NodeError) {
	cfg, err := readConfig[getVariableConfig](in.Config)
	name := cfg.variable()
	if name == "" || err != nil {
		return Output{}, Invalid("/config/name: want the name of a variable")
	}
	v, ok := in.Variables[name]
	if !ok {
		v, ok = cfg.Default, cfg.Default != nil
	}
	if !ok {
		return Output{}, Invalid("variable %q has no value; /config/default would be used instead", name)
	}
	return Output{Ports: map[string]json.RawMessage{"output": v}, Untrusted: in.UntrustedVariables[name]}, nil
}

// configMembers returns the members of a config; nil for an empty one.
func configMembers(config json.RawMessage) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(config)) == 0 {
		return nil, nil
	}
	return strictjson.Split(config, strictjson.Default)
}
