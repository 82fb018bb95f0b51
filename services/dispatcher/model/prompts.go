package model

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

// Prompts are the templates that nodes name, and what composing needs besides.
type Prompts struct {
	// Library is nil where there are no templates.
	Library *prompt.Library
	// Observability is how much of a composition its event tells.
	Observability prompt.Observability
	// Secret gives a secret of the host; nil: there are none for prompts.
	Secret func(id string) (value string, ok bool)
	// Redact takes out what else must not show; see execute.Redactor. Nothing is composed
	// while it fails.
	Redact func(ctx context.Context, tenant, runID string, registered bool, docs [][]byte) ([][]byte, bool, error)
}

// composePrompt puts the templates that the node names in the place of its own words (OpenWOP
// envelope contract §19.2). The gate has decided about the model before (§16.3).
func (l *Loop) composePrompt(ctx context.Context, t Task, cfg *config) (*wire.NodeError, error) {
	var pinned []string
	if t.Composed != nil {
		pinned = t.Composed.Refs
	}
	parts, wrong := l.deps.Prompts.Library.Plan(t.Input.Config, pinned...)
	if len(wrong) > 0 {
		return planError(wrong), nil
	}
	if len(parts) == 0 {
		return nil, nil
	}
	c, err := prompt.Compose(parts, l.promptBindings(t))
	if err != nil {
		return &wire.NodeError{Code: string(err.Code), Message: err.Message, Details: err.Details}, nil
	}
	if l.deps.Prompts.Observability != prompt.Off {
		if err := c.Redact(func(doc []byte) ([]byte, error) { return l.redactPrompt(ctx, t, doc) }); err != nil {
			return nil, fmt.Errorf("redact the prompt of node %s: %w", t.Input.NodeID, err)
		}
	}
	cfg.composed = c
	return cfg.buildCompositionRecord(t, l.deps.Prompts.Observability), nil
}

// buildCompositionRecord puts down what is told of the composition. One that the log cannot hold fails
// the node here: later, recording it would fail again and again.
func (c *config) buildCompositionRecord(t Task, o prompt.Observability) *wire.NodeError {
	if o == prompt.Off {
		return nil
	}
	p := c.composed.Payload(t.Input.NodeID, o)
	doc, err := c.composed.Record(p)
	if err != nil {
		return &wire.NodeError{Code: string(err.Code), Message: err.Message, Details: err.Details}
	}
	c.compositionRecord = &compositionRecord{event: doc, hash: p.Hash, refs: p.Refs}
	return nil
}

// compositionRecord is what the log gets of a composition.
type compositionRecord struct {
	event json.RawMessage
	hash  string
	refs  []string
}

// planError fails a node whose references do not lead to templates. Creation refuses
// such workflows; a definition can outlive a template.
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

// promptBindings are what the variables of a node's templates can be filled with.
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

// promptTrust is that of what the templates were filled with.
func (c config) promptTrust() wire.Trust {
	if c.composed == nil {
		return wire.Trusted
	}
	return c.composed.Trust
}

// recordComposition records the composition, before the call goes out. The log of a run that was
// taken over may have it already; one that came out otherwise, because a variable of the
// run changed meanwhile, is another composition.
func (c *call) recordComposition(ctx context.Context) error {
	made := c.cfg.compositionRecord
	if made == nil {
		return nil
	}
	if said := c.task.Composed; said != nil && said.Hash == made.hash && slices.Equal(said.Refs, made.refs) {
		return nil
	}
	c.addEvent(wire.EventPromptComposed, made.event)
	return c.flushEvents(ctx)
}
