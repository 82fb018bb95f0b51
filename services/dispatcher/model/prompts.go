package model

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

// Prompts are the templates and what composing them requires.
type Prompts struct {
	// Library is nil without templates.
	Library *prompt.Library
	// Observability is how much of a composition its event contains.
	Observability prompt.Observability
	// Secret returns a secret of the host; nil disables secrets in prompts.
	Secret func(id string) (value string, ok bool)
	// Redact removes other secrets; see engine.Redactor. If it fails, no prompt is composed.
	Redact func(ctx context.Context, tenant, runID string, registered bool, docs [][]byte) ([][]byte, bool, error)
}

// composedPrompt is the prompt from templates. The zero value is that of a node without templates.
type composedPrompt struct {
	// texts replace the node's own; nil without templates.
	texts *prompt.Composition
	// record is the event of the composition; nil records nothing.
	record *compositionRecord
}

// trust returns the lowest trust of the values in the templates.
func (p composedPrompt) trust() wire.Trust {
	if p.texts == nil {
		return wire.Trusted
	}
	return p.texts.Trust
}

// composePrompt renders the templates that the node names instead of its own texts (OpenWOP
// envelope contract §19.2). The gate has already chosen the model (§16.3).
func (l *Loop) composePrompt(ctx context.Context, t Task) (composedPrompt, *wire.NodeError, error) {
	var pinned []string
	if t.Composed != nil {
		pinned = t.Composed.Refs
	}
	parts, wrong := l.deps.Prompts.Library.Plan(t.Input.Config, pinned...)
	if len(wrong) > 0 {
		return composedPrompt{}, planError(wrong), nil
	}
	if len(parts) == 0 {
		return composedPrompt{}, nil, nil
	}
	c, err := prompt.Compose(parts, l.promptBindings(t))
	if err != nil {
		return composedPrompt{}, composeError(err), nil
	}
	if l.deps.Prompts.Observability == prompt.Off {
		return composedPrompt{texts: c}, nil, nil
	}
	if err := c.Redact(func(doc []byte) ([]byte, error) { return l.redactPrompt(ctx, t, doc) }); err != nil {
		return composedPrompt{}, nil, fmt.Errorf("redact the prompt of node %s: %w", t.Input.NodeID, err)
	}
	record, bad := newCompositionRecord(c, t.Input.NodeID, l.deps.Prompts.Observability)
	return composedPrompt{texts: c, record: record}, bad, nil
}

// newCompositionRecord builds the event of a composition. A composition too large for the log fails
// the node here: recording it later would fail on every retry.
func newCompositionRecord(
	c *prompt.Composition, nodeID string, o prompt.Observability,
) (*compositionRecord, *wire.NodeError) {
	p := c.Payload(nodeID, o)
	doc, err := c.Record(p)
	if err != nil {
		return nil, composeError(err)
	}
	return &compositionRecord{event: doc, hash: p.Hash, refs: p.Refs}, nil
}

func composeError(err *fault.Error) *wire.NodeError {
	return &wire.NodeError{Code: string(err.Code), Message: err.Message, Details: err.Details}
}

// compositionRecord is the recorded form of a composition.
type compositionRecord struct {
	event json.RawMessage
	hash  string
	refs  []string
}

// planError fails a node with unresolved references. Run creation rejects such workflows, but a
// definition can outlive a template.
func planError(wrong []prompt.Problem) *wire.NodeError {
	first := wrong[0]
	return &wire.NodeError{Code: string(first.Code), Message: fmt.Sprintf("/config%s: %s", first.Path, first.Message)}
}

func (l *Loop) redactPrompt(ctx context.Context, t Task, doc []byte) ([]byte, error) {
	out, _, err := l.deps.Prompts.Redact(ctx, t.Tenant, t.RunID, t.CredentialRef != "", [][]byte{doc})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// promptBindings returns the values for the variables of a node's templates.
func (l *Loop) promptBindings(t Task) prompt.Bindings {
	return prompt.Bindings{
		Input:    prompt.Scope{Values: t.Input.Ports, Untrusted: t.Input.UntrustedPorts},
		Variable: prompt.Scope{Values: t.Input.Variables, Untrusted: t.Input.UntrustedVariables},
		Context: prompt.Scope{Values: map[string]json.RawMessage{
			"runId": wire.AppendString(nil, t.RunID), "nodeId": wire.AppendString(nil, t.Input.NodeID),
			"workflowId": wire.AppendString(nil, t.WorkflowID), "tenant": wire.AppendString(nil, t.Tenant),
		}},
		Secret: l.deps.Prompts.Secret,
	}
}

// recordComposition records the composition before the call. It is skipped if the log of a claimed
// run already has the same one. If a variable of the run changed in between, it is another
// composition.
func (e *emission) recordComposition(ctx context.Context, out *outbox) error {
	made := e.composition
	if made == nil {
		return nil
	}
	if said := e.task.Composed; said != nil && said.Hash == made.hash && slices.Equal(said.Refs, made.refs) {
		return nil
	}
	out.add(wire.EventPromptComposed, made.event)
	return out.flush(ctx, e.journal)
}
