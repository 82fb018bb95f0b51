package node

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"waybill.dev/waybill/protocol/channel"
	"waybill.dev/waybill/protocol/cost"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
)

// The node types of the protocol's fixtures (OpenWOP host contract §5.6).
const (
	typeModelGated      = "conformance.modelCapability.insufficient"
	typeRequiresMissing = "conformance.requiresMissing"
	typeHold            = "core.conformance.hold"
	// TypeSecretEcho outputs the digest of a secret.
	TypeSecretEcho = "conformance.secret.echo" //nolint:gosec // G101: the id of a node type
	// TypeCostEmit emits costs.
	TypeCostEmit = "conformance.cost.emit"
	// TypeSideEffect is an effect that must not run twice.
	TypeSideEffect = "core.conformance.side-effect"
	// TypeMockAI resolves and composes the templates that it names, and calls no model.
	TypeMockAI = "local.sample.demo.mock-ai"
)

// neverProvided is a capability that no host has.
const neverProvided = "conformance.never-provided"

// Conformance adds the types of the protocol's fixtures, which have no other use. The secrets are
// those of the test seams, by id; they must be registered with the redactor.
func (c Catalog) Conformance(secrets map[string]string) Catalog {
	out := maps.Clone(c)
	for _, t := range []Type{
		{
			ID:    typeModelGated,
			Class: Pure,
			Do:    noop,
			Needs: &modelgate.Needs{Required: []modelgate.Capability{"nonexistent-capability-9b3f"}},
		},
		{ID: typeRequiresMissing, Class: Pure, Do: noop, Requires: []string{neverProvided}},
		{ID: TypeCostEmit, Class: Pure, Do: emitCost},
		{ID: TypeSecretEcho, Class: Pure, Do: echoSecret(secrets)},
		{ID: typeHold, Class: Timer, Delay: readHold},
		// The receiver recognises its calls by their invocation id.
		{ID: TypeSideEffect, Class: Effect, Idempotent: func(json.RawMessage) bool { return true }},
		{ID: TypeMockAI, Class: Effect, Idempotent: func(json.RawMessage) bool { return true }, Outputs: []string{"output"}},
	} {
		t.Source = "conformance"
		out[t.ID] = t
	}
	if t, ok := out[TypeIdentity]; ok {
		t.Do = withDuplicateMessages(t.Do)
		out[t.ID] = t
	}
	return out
}

// emitCost emits the allowed cost attributes of its config.
func emitCost(in Input) (Output, *wire.NodeError) {
	c, err := readConfig[costConfig](in.Config)
	if err != nil || len(c.Attrs) == 0 {
		return Output{}, Invalid("/config/attrs: want an object of cost attributes")
	}
	return Output{Cost: cost.Sanitize(c.Attrs)}, nil
}

// echoSecret outputs the length and the digest of a secret. They prove that it was resolved and do
// not reveal it.
func echoSecret(secrets map[string]string) func(Input) (Output, *wire.NodeError) {
	return func(in Input) (Output, *wire.NodeError) {
		c, err := readConfig[secretConfig](in.Config)
		if err != nil || c.ID == "" {
			return Output{}, Invalid("/config/secretId: want the id of a secret, a string")
		}
		value, ok := secrets[c.ID]
		if !ok {
			return Output{}, &wire.NodeError{
				Code:    string(fault.CredentialNotFound),
				Message: fmt.Sprintf("/config/secretId: this host has no secret of that id; it has %v", slices.Sorted(maps.Keys(secrets))),
			}
		}
		sum := sha256.Sum256([]byte(value))
		digest := fmt.Appendf(nil, `{"secretSha256":%q,"secretLength":%d}`, hex.EncodeToString(sum[:]), len(value))
		return Output{Writes: map[string]json.RawMessage{in.NodeID: digest}}, nil
	}
}

// readHold returns the wait of the port. Nothing else affects it.
func readHold(in Input) (int64, *wire.NodeError) {
	v, ok := in.Ports["delayMs"]
	if !ok {
		return 0, Invalid("/inputs/delayMs: want a number of milliseconds")
	}
	return in.millis("/inputs/delayMs", v, 1)
}

// withDuplicateMessages makes a type write the same message id twice to every message channel, if
// its config requests it. The second message differs and must be ignored.
func withDuplicateMessages(do func(Input) (Output, *wire.NodeError)) func(Input) (Output, *wire.NodeError) {
	return func(in Input) (Output, *wire.NodeError) {
		out, bad := do(in)
		c, err := readConfig[identityConfig](in.Config)
		if bad != nil || err != nil || !c.Twice {
			return out, bad
		}
		for _, name := range slices.Sorted(maps.Keys(in.Channels)) {
			for _, content := range []string{"once", "once more"} {
				if in.Channels[name] == channel.Message {
					var message wire.ObjectWriter
					message.String("messageId", in.NodeID+"-1")
					message.String("role", "assistant")
					message.String("content", content)
					out.Channels = append(out.Channels, ChannelWrite{name, message.Close()})
				}
			}
		}
		return out, nil
	}
}
