package model

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Prompts are the templates and what composing them requires.
type Prompts struct {
	// Library is nil without templates.
	Library *prompt.Library
	// Observability is how much of a prompt its event contains.
	Observability prompt.Observability
	// AllCalls records the prompts of all calls. Otherwise only those from templates are recorded.
	AllCalls bool
	// Secret returns a secret of the host; nil disables secrets in prompts.
	Secret func(id string) (value string, ok bool)
	// Redact removes other secrets; see engine.Redactor. If it fails, no prompt is composed.
	Redact func(ctx context.Context, tenant, runID string, registered bool, docs [][]byte) ([][]byte, bool, error)
}

// composePrompt renders the templates that the node names instead of its own texts; nil without
// templates (OpenWOP envelope contract §19.2). The gate has already chosen the model (§16.3).
func (l *Loop) composePrompt(t Task, in node.Input) (*prompt.Composition, *wire.NodeError) {
	var pinned []string
	if t.Composed != nil {
		pinned = t.Composed.Refs
	}
	parts, wrong := l.deps.Prompts.Library.Plan(t.Input.Config, pinned...)
	if len(wrong) > 0 {
		return nil, planError(wrong)
	}
	if len(parts) == 0 {
		return nil, nil
	}
	c, err := prompt.Compose(parts, l.deps.Prompts.Bindings(t, in))
	if err != nil {
		return nil, &wire.NodeError{Code: string(err.Code), Message: err.Message, Details: err.Details}
	}
	return c, nil
}

// planError fails a node with unresolved references. Run creation rejects such workflows, but a
// definition can outlive a template.
func planError(wrong []prompt.Problem) *wire.NodeError {
	first := wrong[0]
	return &wire.NodeError{Code: string(first.Code), Message: fmt.Sprintf("/config%s: %s", first.Path, first.Message)}
}

func (l *Loop) redactPrompt(ctx context.Context, t Task, doc []byte) ([]byte, error) {
	return l.deps.Prompts.Clean(ctx, t, doc)
}

// Clean redacts a document of a node's prompt.
func (p Prompts) Clean(ctx context.Context, t Task, doc []byte) ([]byte, error) {
	out, _, err := p.Redact(ctx, t.Tenant, t.RunID, t.CredentialRef != "", [][]byte{doc})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// Bindings returns the values for the variables of a node's templates.
func (p Prompts) Bindings(t Task, in node.Input) prompt.Bindings {
	return prompt.Bindings{
		Input:    prompt.Scope{Values: in.Ports, Untrusted: in.UntrustedPorts},
		Variable: prompt.Scope{Values: in.Variables, Untrusted: in.UntrustedVariables},
		Context: prompt.Scope{Values: map[string]json.RawMessage{
			"runId": wire.AppendString(nil, t.RunID), "nodeId": wire.AppendString(nil, t.Input.NodeID),
			"workflowId": wire.AppendString(nil, t.WorkflowID), "tenant": wire.AppendString(nil, t.Tenant),
		}},
		Secret: p.Secret,
	}
}

// recordPrompt records the prompt of a call before the call. It is skipped if the log of a claimed run
// already has that of the same call. If a variable of the run changed in between, it is another
// prompt.
func (e *emission) recordPrompt(ctx context.Context, req provider.Request, n callNumber, shown bool) error {
	level := e.deps.Prompts.Observability
	if shown || n.recorded || level == prompt.Off || e.composition == nil && !e.deps.Prompts.AllCalls {
		return nil
	}
	sent, err := prompt.NewSent(callOf(req), e.composition, func(doc []byte) ([]byte, error) {
		return e.redactPrompt(ctx, e.task, doc)
	})
	if err != nil {
		return fmt.Errorf("redact the prompt of node %s: %w", e.task.Input.NodeID, err)
	}
	p := sent.Payload(e.task.Input.NodeID, wire.Trusted.Meet(e.task.Trust), level)
	if said := e.task.Composed; n.resumed && said != nil && said.Rounds == e.task.Rounds &&
		said.Hash == p.Hash && slices.Equal(said.Refs, p.Refs) {
		return nil
	}
	return e.journal.Record(ctx, draft(wire.EventPromptComposed, p.NodeID, p.ContentTrust, p.Render()))
}

// callOf returns the text of a request.
func callOf(req provider.Request) prompt.Call {
	call := prompt.Call{System: req.System, Messages: []prompt.Message{}, Schema: req.Schema}
	if len(req.Schema) > 0 {
		call.SchemaName = req.SchemaName
	}
	if req.Via == provider.ViaTool && len(req.Schema) > 0 || req.Via == provider.ViaObject {
		call.SchemaForm = req.Via.Name()
	}
	for _, m := range req.Messages {
		call.Messages = append(call.Messages, prompt.Message{Role: m.Role, Content: m.Content})
	}
	return call
}
