package seam

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

// mockAI resolves the references of each place of its prompt, composes their templates, and records both
// (RFC 0027 §E, RFC 0029 §B). It calls no model: its output is the size of the prompt.
type mockAI struct{ prompts model.Prompts }

// variablePrompt is the variable that is the prompt of a node without references.
const variablePrompt = "prompt"

// Check accepts configs whose references name templates of this host.
func (m mockAI) Check(config json.RawMessage) *wire.NodeError {
	slots, wrong := prompt.Slots(config)
	for _, s := range slots {
		_, found := s.Part(m.prompts.Library)
		wrong = append(wrong, found...)
	}
	return firstProblem(wrong)
}

func firstProblem(wrong []prompt.Problem) *wire.NodeError {
	if len(wrong) == 0 {
		return nil
	}
	return &wire.NodeError{Code: string(wrong[0].Code), Message: fmt.Sprintf("/config%s: %s", wrong[0].Path, wrong[0].Message)}
}

// Run records the prompts together with the end of the node, so that another owner repeats all or nothing.
func (m mockAI) Run(ctx context.Context, t model.Task, _ model.Journal) model.Result {
	slots, wrong := prompt.Slots(t.Input.Config)
	if len(wrong) > 0 {
		return model.Result{Trust: wire.Trusted, Err: firstProblem(wrong)}
	}
	out := model.Result{Trust: wire.Trusted.Meet(t.Trust)}
	size := 0
	for _, s := range slots {
		c, bad, err := m.compose(ctx, t, s, &out)
		if err != nil {
			return model.Result{Interrupted: fmt.Errorf("redact the prompt of node %s: %w", t.Input.NodeID, err), Unsent: true}
		}
		if bad != nil {
			return model.Result{Trust: wire.Trusted, Err: bad}
		}
		size += utf8.RuneCountInString(c.Sent.System) + utf8.RuneCountInString(c.Sent.User)
	}
	if len(slots) == 0 {
		var text string
		_ = json.Unmarshal(t.Input.Variables[variablePrompt], &text) // anything else is no text
		size = utf8.RuneCountInString(text)
	}
	answer := fmt.Sprintf("mock answer to %d characters", size)
	out.Output = node.Output{Ports: map[string]json.RawMessage{"output": wire.AppendString(nil, answer)}}
	return out
}

// compose adds the events of one place.
func (m mockAI) compose(ctx context.Context, t model.Task, s prompt.Slot, out *model.Result) (*prompt.Composition, *wire.NodeError, error) {
	part, wrong := s.Part(m.prompts.Library)
	resolved, more := s.Resolve(t.Input.NodeID)
	if wrong = append(wrong, more...); len(wrong) > 0 {
		return nil, firstProblem(wrong), nil
	}
	c, bad := prompt.Compose([]prompt.Part{part}, m.prompts.Bindings(t, t.Input))
	if bad != nil {
		return nil, &wire.NodeError{Code: string(bad.Code), Message: bad.Message, Details: bad.Details}, nil
	}
	if err := c.Redact(func(doc []byte) ([]byte, error) { return m.prompts.Clean(ctx, t, doc) }); err != nil {
		return nil, nil, err
	}
	out.Trust = out.Trust.Meet(c.Trust)
	out.Drafts = append(out.Drafts, wire.Draft{Type: wire.EventAgentPromptResolved, NodeID: t.Input.NodeID, Payload: resolved.Event()})
	if m.prompts.Observability != prompt.Off {
		d := wire.Draft{Type: wire.EventPromptComposed, NodeID: t.Input.NodeID, Payload: c.Payload(t.Input.NodeID, m.prompts.Observability).Render()}
		if c.Trust == wire.Untrusted {
			d.Trust = c.Trust
		}
		out.Drafts = append(out.Drafts, d)
	}
	return c, nil, nil
}
