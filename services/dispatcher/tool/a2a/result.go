package a2a

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// Ports of a node's result.
const (
	portOutput = "output"
	portTask   = "task"
)

// newResult converts an answer to the node's result.
func (e *exchange) newResult(given answer) model.Result {
	if given.task != nil {
		if bad := e.stateError(given.task.Status.State); bad != nil {
			return tool.NewFailure(bad)
		}
	}
	doc, err := document(given.doc)
	if err != nil {
		return tool.NewFailure(&wire.NodeError{
			Code:    string(fault.ToolFailed),
			Message: e.agent.peer(e.link).Name + " answered with something that is no document",
		})
	}
	return tool.NewSuccess(map[string]json.RawMessage{portOutput: wire.AppendString(nil, textOf(doc)), portTask: doc})
}

// document returns the task or message of a JSON-RPC response. The answer to a message of A2A 1.0
// has it as its only member, task or message.
func document(response []byte) (json.RawMessage, error) {
	whole, err := tool.Normalize(response)
	if err != nil {
		return nil, err
	}
	doc := strictjson.Object(whole)["result"]
	if members := strictjson.Object(doc); members["status"] == nil && members["parts"] == nil {
		for _, kind := range []string{"task", "message"} {
			if inner, ok := members[kind]; ok {
				doc = inner
			}
		}
	}
	if doc == nil {
		return nil, errors.New("the response has no result")
	}
	return doc, nil
}

// states are the protocol's states of a task that did not complete, in the words of A2A 0.3.
var states = map[a2a.TaskState]string{
	a2a.TaskStateInputRequired: "input-required",
	a2a.TaskStateAuthRequired:  "auth-required",
	a2a.TaskStateFailed:        "failed",
	a2a.TaskStateRejected:      "rejected",
	a2a.TaskStateCanceled:      "canceled",
}

// stateError returns the error of a task that did not complete. Only states of the protocol are
// repeated; other words are the agent's.
func (e *exchange) stateError(state a2a.TaskState) *wire.NodeError {
	if state == a2a.TaskStateCompleted {
		return nil
	}
	name := e.agent.peer(e.link).Name
	bad := &wire.NodeError{Code: string(fault.ToolFailed), Details: map[string]any{"agent": e.agent.cfg.ID}}
	word, known := states[state]
	if !known {
		bad.Message = name + " put its task into a state that the protocol does not know"
		return bad
	}
	bad.Details["state"] = word
	switch state {
	case a2a.TaskStateInputRequired:
		bad.Code = string(fault.PeerInputRequired)
		bad.Message = name + " asks for further input before it goes on; a workflow cannot give it: say everything in one message"
	case a2a.TaskStateAuthRequired:
		bad.Code = string(fault.CredentialRequired)
		bad.Message = name + " asks for a credential before it goes on; set " + e.agent.cfg.TokenName + " to a token that it takes"
	default:
		bad.Message = name + " ended its task as " + word
	}
	return bad
}

// part is a part of a message or an artifact, of either version.
type part struct {
	Text *string         `json:"text"`
	Data json.RawMessage `json:"data"`
}

// textOf returns the text of a message, or of a task: of its artifacts, otherwise of its status.
func textOf(doc json.RawMessage) string {
	var said struct {
		Parts     []part `json:"parts"`
		Artifacts []struct {
			Parts []part `json:"parts"`
		} `json:"artifacts"`
		Status struct {
			Message struct {
				Parts []part `json:"parts"`
			} `json:"message"`
		} `json:"status"`
	}
	_ = json.Unmarshal(doc, &said) // a part of another form has no text
	var texts []string
	for _, a := range said.Artifacts {
		if text := textOfArtifact(a.Parts); text != "" {
			texts = append(texts, text)
		}
	}
	if len(texts) > 0 {
		return strings.Join(texts, "\n")
	}
	return textOfMessage(append(said.Parts, said.Status.Message.Parts...))
}

// textOfMessage joins the texts of a message by lines; data is JSON.
func textOfMessage(parts []part) string {
	var texts []string
	for _, p := range parts {
		if text, ok := p.text(); ok {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// textOfArtifact is textOfMessage, but texts in a row are one text: an agent that streams an
// artifact appends a part for each chunk.
func textOfArtifact(parts []part) string {
	var b strings.Builder
	afterText := false
	for _, p := range parts {
		text, ok := p.text()
		if !ok {
			continue
		}
		if b.Len() > 0 && (!afterText || p.Text == nil) {
			b.WriteByte('\n')
		}
		b.WriteString(text)
		afterText = p.Text != nil
	}
	return b.String()
}

func (p part) text() (string, bool) {
	switch {
	case p.Text != nil:
		return *p.Text, true
	case len(p.Data) > 0:
		return string(p.Data), true
	default: // a file, or a kind of a later version
		return "", false
	}
}
