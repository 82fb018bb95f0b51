// Package node holds the built-in node types.
//
// A type is pure (its outputs depend only on its inputs), a timer (it waits), asks (it waits for an
// answer), spawns (it starts another run), or is an effect (it makes an external call). The run
// loop executes pure types and timers within one step. An executor performs effects and starts
// child runs.
package node

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/cost"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
)

// Class is how a type is executed.
type Class int

// The classes of node types.
const (
	Pure Class = iota
	Timer
	Asks
	Effect
	Spawns
)

// Input is what a node can read: its ports and config, the run's variables, and the run's
// configurable. Tags and metadata are never part of it (OpenWOP host contract §5.3).
type Input struct {
	NodeID       string
	Config       json.RawMessage
	Ports        map[string]json.RawMessage
	Variables    map[string]json.RawMessage
	RunInputs    map[string]json.RawMessage
	Configurable json.RawMessage
	// Declared are the ports and variables that the definition declares and that may have no value.
	Declared map[string]bool
	// UntrustedPorts and UntrustedVariables name those with values from untrusted sources.
	UntrustedPorts, UntrustedVariables map[string]bool
	// Flow compiles the expressions of the config, once per definition. MaxLoop is the workflow's
	// limit on loops. Both are set for pure types.
	Flow    *definition.Flow
	MaxLoop int64
	// Origins are the external sources of untrusted ports, where known.
	Origins map[string]untrusted.Mark
	// Channels are the reducers of the run's channels, by name.
	Channels map[string]string
	// MaxDelay is the longest wait of a timer; 0 uses OldMaxDelay.
	MaxDelay time.Duration
	// Versions are the run's versions of the type's Changes.
	Versions map[string]int
	// Next is the model that is called because the node's own failed; nil calls the node's own.
	Next *wire.NextModel
}

// Unset reports whether a name is declared and has no value.
func (in Input) Unset(name string) bool {
	_, isPort := in.Ports[name]
	_, isVariable := in.Variables[name]
	return in.Declared[name] && !isPort && !isVariable
}

// Output is the result of a node.
type Output struct {
	Ports map[string]json.RawMessage
	// Writes are the variables that it sets.
	Writes map[string]json.RawMessage
	// Channels are its writes to channels, in order.
	Channels []ChannelWrite
	// Cost is its cost in addition to model calls; nil for none.
	Cost cost.Attributes
	// Untrusted marks outputs derived from an untrusted variable that the node read itself.
	Untrusted bool
	// Turn is the form of a model's answer that the host chose; empty for none.
	Turn string
	// Loop is set if the node failed because of its loop limit.
	Loop *Loop
}

// Loop is a breach of the loop limit; Observed is greater than Limit.
type Loop struct{ Limit, Observed int64 }

// Type is a node type.
type Type struct {
	ID     string
	Class  Class
	Source string
	// EmitsEnvelopes marks types whose results pass through the accept pipeline.
	EmitsEnvelopes bool
	// Needs are the required model capabilities; nil for none.
	Needs *modelgate.Needs
	// Requires are the capabilities that the host's runtime must provide.
	Requires []string
	// Sensitive are the output ports whose values are masked.
	Sensitive map[string]bool
	// Changes are the versioned changes of the type's code.
	Changes []Change
	// Secrets are the secrets that the type requires before it starts.
	Secrets []pack.Secret
	// Made is set for types that a pack derives from a type of the host.
	Made *Made
	// Check returns the problem of a node's config before a run is created; nil checks when the
	// node runs.
	Check func(config json.RawMessage) *wire.NodeError
	// Lint returns the problems of a node's config at registration: those of Check, with their
	// paths relative to the config.
	Lint func(config json.RawMessage) []workflow.Problem
	// Idempotent reports whether the call of a node with this config may be sent twice; nil means
	// never. Model types are idempotent without it.
	Idempotent func(config json.RawMessage) bool
	// Outputs are the output ports of the type, by name; nil if they depend on the node.
	Outputs []string
	// schema is the schema of the config of a type that calls a model; OwnSchema has the others.
	schema *schema.Schema
	// Do executes a pure type.
	Do func(Input) (Output, *wire.NodeError)
	// Delay returns the wait of a timer type in milliseconds.
	Delay func(Input) (int64, *wire.NodeError)
}

// CapabilityEnvelopes is the host's capability that types with EmitsEnvelopes need (OpenWOP envelope
// contract §6, step 0).
const CapabilityEnvelopes = "host.aiEnvelope"

// Catalog maps a typeId to its type.
type Catalog map[string]Type

const builtin = "builtin"

// Builtin are the types every host has.
func Builtin() Catalog {
	types := []Type{
		{ID: "core.noop", Class: Pure, Do: noop, Outputs: []string{}},
		{ID: TypeIdentity, Class: Pure, Do: identity},
		{ID: TypeFail, Class: Pure, Do: fail, Outputs: []string{}},
		{ID: TypeDelay, Class: Timer, Delay: delay, Lint: lintDelay, Outputs: []string{}},
		asks(interrupt.TypeApprovalGate), asks(interrupt.TypeClarificationGate), asks(interrupt.TypeInterrupt),
		channelType(),
		{ID: TypeSubWorkflow, Class: Spawns, Check: checkSubWorkflow, Outputs: []string{"childRunId", "childStatus"}},
	}
	types = append(types, flowTypes()...)
	c := make(Catalog, len(types))
	for _, t := range types {
		t.Source = builtin
		c[t.ID] = t
	}
	maps.Copy(c, modelCatalog())
	return c
}

// TypeFail is the node type that fails.
const TypeFail = "core.fail"

// TypeIdentity is the node type that sets its ports as variables.
const TypeIdentity = "core.identity"

// The node types that call a model.
const (
	TypeCallPrompt       = "core.ai.callPrompt"
	TypeStructuredOutput = "core.ai.structuredOutput"
)

// The node types that call peers named by the operator. They exist only if the operator named one.
const (
	TypeMCPCallTool    = "core.mcp.callTool"
	TypeA2ASendMessage = "core.a2a.sendMessage"
)

// PeerTypes are the types of nodes that call peers, without what executes them.
func PeerTypes() []Type {
	return []Type{
		{ID: TypeMCPCallTool, Class: Effect, Outputs: []string{"output", "content", "isError"}},
		{ID: TypeA2ASendMessage, Class: Effect, Outputs: []string{"output", "task"}},
	}
}

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

// asks returns a type whose nodes ask a question. The question is checked at registration and again
// before each run, because an older host may have checked less.
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

// identity outputs its ports and sets them, and run inputs of the same name, as variables (OpenWOP
// host contract §5.6).
func identity(in Input) (Output, *wire.NodeError) {
	out := Output{Ports: map[string]json.RawMessage{}, Writes: map[string]json.RawMessage{}}
	for name, v := range in.Ports {
		out.Ports[name], out.Writes[name] = v, v
	}
	// The port input is also the output unless there is one.
	if v, ok := in.Ports["input"]; ok {
		if _, named := in.Ports["output"]; !named {
			out.Ports["output"] = v
		}
	}
	return out, nil
}

func fail(in Input) (Output, *wire.NodeError) {
	cfg, _ := readConfig[failConfig](in.Config)
	return Output{}, &wire.NodeError{
		Code:    cmp.Or(cfg.Code, string(fault.ConformanceFailure)),
		Message: cmp.Or(cfg.Message, "Intentional conformance failure"),
	}
}

// Invalid returns a validation_error of a node.
func Invalid(format string, args ...any) *wire.NodeError {
	e := fault.New(fault.ValidationError, format, args...)
	return &wire.NodeError{Code: string(e.Code), Message: e.Message}
}
