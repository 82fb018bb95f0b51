// Package node holds the built-in node types.
//
// A type is pure (its outputs follow from its inputs), a timer (it waits), asks (it
// waits for an answer), spawns (it starts another run), or is an effect (it talks to
// somebody outside). The run loop executes pure types and timers itself, within one step;
// effects, and what is to be spawned, are handed to an executor.
package node

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/cost"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
)

// Class says how a type is executed.
type Class int

// The classes of node types.
const (
	Pure Class = iota
	Timer
	Asks
	Effect
	Spawns
)

// Input is what a node sees: its ports and config, the run's variables, and the
// run's configurable. Never tags or metadata (OpenWOP host contract §5.3).
type Input struct {
	NodeID       string
	Config       json.RawMessage
	Ports        map[string]json.RawMessage
	Variables    map[string]json.RawMessage
	RunInputs    map[string]json.RawMessage
	Configurable json.RawMessage
	// UntrustedPorts and UntrustedVariables name those whose value comes from an
	// untrusted source.
	UntrustedPorts, UntrustedVariables map[string]bool
	// Flow compiles the expressions of the config, once for the definition; MaxLoop is
	// the workflow's bound on loops. Pure types have them.
	Flow    *definition.Flow
	MaxLoop int64
	// Origins tells of untrusted ports who outside made the value, where that is known.
	Origins map[string]untrusted.Mark
	// Channels are the reducers of the run's channels, by name.
	Channels map[string]string
	// MaxDelay is the longest wait of a timer; 0: OldMaxDelay.
	MaxDelay time.Duration
	// Versions are those that the run has settled for, of the type's Changes.
	Versions map[string]int
}

// Output is what a node gives back.
type Output struct {
	Ports map[string]json.RawMessage
	// Writes are the variables it sets.
	Writes map[string]json.RawMessage
	// Channels are its writes to channels, in order.
	Channels []ChannelWrite
	// Cost is what it has cost besides calls of models; nil: nothing.
	Cost cost.Attributes
	// Untrusted marks outputs that come of an untrusted value which was not among the
	// ports: a variable that the node looked up itself.
	Untrusted bool
	// Loop is set beside the failure of a node that would have gone round too often.
	Loop *Loop
}

// Loop is a breach of the bound on loops; Observed is greater than Limit.
type Loop struct{ Limit, Observed int64 }

// Type is a node type.
type Type struct {
	ID     string
	Class  Class
	Source string
	// EmitsEnvelopes marks types whose result goes through the accept pipeline.
	EmitsEnvelopes bool
	// Needs is what the type requires of a model; nil: nothing.
	Needs *modelgate.Needs
	// Requires are the capabilities that the host's runtime must provide.
	Requires []string
	// Sensitive are the output ports whose values are masked.
	Sensitive map[string]bool
	// Changes are those that the type's code went through.
	Changes []Change
	// Secrets are those that the type needs before it starts.
	Secrets []pack.Secret
	// Made is set for a type that a pack makes of one of the host's.
	Made *Made
	// Check says what is wrong with a node's config before a run of it exists; nil:
	// that is found out when the node runs.
	Check func(config json.RawMessage) *wire.NodeError
	// Lint finds what is wrong with a node's config when the workflow is registered:
	// what Check would find, and where. Paths are below the config.
	Lint func(config json.RawMessage) []workflow.Problem
	// Idempotent reports whether a call of a node with this config may be sent twice; nil
	// means no call may. Model types are idempotent without it.
	Idempotent func(config json.RawMessage) bool
	// Outputs are the ports that nodes of the type put out, by name; nil: it depends.
	Outputs []string
	// Do executes a pure type.
	Do func(Input) (Output, *wire.NodeError)
	// Delay gives the wait of a timer type in milliseconds.
	Delay func(Input) (int64, *wire.NodeError)
}

// Catalog maps a typeId to its type.
type Catalog map[string]Type

const builtin = "builtin"

// Builtin are the types every host has.
func Builtin() Catalog {
	types := []Type{
		{ID: "core.noop", Class: Pure, Do: noop, Outputs: []string{}},
		{ID: "core.identity", Class: Pure, Do: identity},
		{ID: "core.fail", Class: Pure, Do: fail, Outputs: []string{}},
		{ID: TypeDelay, Class: Timer, Delay: delay, Lint: lintDelay, Outputs: []string{}},
		asks(interrupt.TypeApprovalGate), asks(interrupt.TypeClarificationGate), asks(interrupt.TypeInterrupt),
		channelType(),
		{ID: TypeSubWorkflow, Class: Spawns, Check: checkSubWorkflow},
	}
	types = append(types, flowTypes()...)
	c := make(Catalog, len(types))
	for _, t := range types {
		t.Source = builtin
		c[t.ID] = t
	}
	maps.Copy(c, models())
	return c
}

// The node types that call a model.
const (
	TypeCallPrompt       = "core.ai.callPrompt"
	TypeStructuredOutput = "core.ai.structuredOutput"
)

// The node types that ask somebody the operator has named: they are there only
// where somebody is.
const (
	TypeMCPCallTool    = "core.mcp.callTool"
	TypeA2ASendMessage = "core.a2a.sendMessage"
)

// And adds types that not every host has.
func (c Catalog) And(types ...Type) Catalog {
	out := maps.Clone(c)
	for _, t := range types {
		t.Source = builtin
		out[t.ID] = t
	}
	return out
}

// IDs lists the catalog's typeIds, sorted.
func (c Catalog) IDs() []string { return slices.Sorted(maps.Keys(c)) }

// asks is a type whose nodes ask somebody outside. What it would ask is looked at when the
// workflow is registered, and before each run: a workflow may have been registered by a
// host that looked at less.
func asks(typeID string) Type {
	lint := func(config json.RawMessage) []workflow.Problem { return interrupt.Check(typeID, config) }
	return Type{ID: typeID, Class: Asks, Lint: lint, Check: func(config json.RawMessage) *wire.NodeError {
		if wrong := lint(config); len(wrong) > 0 {
			return Invalid("/config%s: %s", wrong[0].Path, wrong[0].Message)
		}
		return nil
	}}
}

func noop(Input) (Output, *wire.NodeError) { return Output{}, nil }

// identity echoes its ports and folds them, and run inputs of the same name,
// into variables (OpenWOP host contract §5.6).
func identity(in Input) (Output, *wire.NodeError) {
	out := Output{Ports: map[string]json.RawMessage{}, Writes: map[string]json.RawMessage{}}
	for name, v := range in.Ports {
		out.Ports[name], out.Writes[name] = v, v
	}
	// What an edge carried in by default goes on by default.
	if v, ok := in.Ports["input"]; ok {
		if _, named := in.Ports["output"]; !named {
			out.Ports["output"] = v
		}
	}
	return out, nil
}

func fail(in Input) (Output, *wire.NodeError) {
	cfg := struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}{string(fault.ConformanceFailure), "Intentional conformance failure"}
	given := cfg
	if strictjson.Read(in.Config, &given) == nil && given.Code != "" {
		cfg.Code = given.Code
	}
	if given.Message != "" {
		cfg.Message = given.Message
	}
	return Output{}, &wire.NodeError{Code: cfg.Code, Message: cfg.Message}
}

// Invalid is a validation_error of a node.
func Invalid(format string, args ...any) *wire.NodeError {
	e := fault.New(fault.ValidationError, format, args...)
	return &wire.NodeError{Code: string(e.Code), Message: e.Message}
}
