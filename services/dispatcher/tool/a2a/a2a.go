// Package a2a executes core.a2a.sendMessage. It sends one message to an agent over JSON-RPC, in the
// version of A2A that the agent's card names (1.0 or 0.3), and waits for the end of the agent's task.
//
// The answer is recorded with the end of its node. After a crash before that, the message is sent
// again under the same messageId, which lets an agent recognise it.
package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/tool"
	"waybill.dev/waybill/services/dispatcher/tool/outbound"
)

// taskTimeout is the default timeout of an agent's task.
const taskTimeout = 5 * time.Minute

// Runner executes nodes. It is safe for concurrent use.
type Runner struct {
	agents     map[string]*agent
	background sync.WaitGroup // cancellations in progress
}

// New validates the configurations and connects to no agent.
func New(configs ...Config) (*Runner, error) {
	r := &Runner{agents: map[string]*agent{}}
	for _, c := range configs {
		if _, twice := r.agents[c.ID]; twice {
			return nil, fmt.Errorf("agent %s is named twice", c.ID)
		}
		r.agents[c.ID] = newAgent(c)
	}
	return r, nil
}

// Close waits for running cancellations and drops idle connections.
func (r *Runner) Close() {
	r.background.Wait()
	for _, a := range r.agents {
		a.http.CloseIdleConnections()
	}
}

// config is a node's config. Unknown members are ignored for forward compatibility.
type config struct {
	Agent     string `json:"agent"`
	Message   string `json:"message"`
	TimeoutMs int64  `json:"timeoutMs"`
	// Idempotent is read by node.MarkedIdempotent; only its type is checked here.
	Idempotent bool `json:"idempotent"`
}

func parse(raw json.RawMessage) (config, *wire.NodeError) {
	var c config
	if err := strictjson.Read(raw, &c); err != nil {
		return c, node.Invalid("/config: want {agent, message?, timeoutMs?, idempotent?}")
	}
	return c, tool.CheckTimeout(c.TimeoutMs)
}

// Check returns the problem of a node's config; see tool.Runner.
func (r *Runner) Check(raw json.RawMessage) *wire.NodeError {
	c, bad := parse(raw)
	if bad == nil {
		_, bad = r.agent(c)
	}
	return bad
}

func (r *Runner) agent(c config) (*agent, *wire.NodeError) {
	a, ok := r.agents[c.Agent]
	if !ok {
		return nil, &wire.NodeError{
			Code:    string(fault.CapabilityNotProvided),
			Message: fmt.Sprintf("/config/agent: this host has no A2A agent of that id; it has %v", slices.Sorted(maps.Keys(r.agents))),
		}
	}
	return a, nil
}

// Run sends a message and waits for the result.
func (r *Runner) Run(ctx context.Context, t model.Task, _ model.Journal) model.Result {
	c, bad := parse(t.Input.Config)
	if bad != nil {
		return model.Result{Err: bad}
	}
	a, bad := r.agent(c)
	if bad != nil {
		return model.Result{Err: bad}
	}
	part, bad := c.messagePart(t.Input)
	if bad != nil {
		return model.Result{Err: bad}
	}
	msg := &a2a.Message{
		ID:    tool.InvocationID(t, node.Peer(node.TypeA2ASendMessage, t.Input.Config)),
		Role:  a2a.MessageRoleUser,
		Parts: a2a.ContentParts{part},
	}
	callCtx, cancel := context.WithTimeout(ctx, tool.Timeout(c.TimeoutMs, taskTimeout))
	defer cancel()
	callCtx, note := outbound.WithNote(callCtx)
	e := &exchange{agent: a, background: &r.background}
	given, err := e.run(callCtx, msg)
	switch {
	case err == nil:
		return e.newResult(given)
	case errors.Is(err, callguard.ErrNotBegun):
		return model.Result{Interrupted: err, Unsent: true}
	case ctx.Err() != nil:
		return model.Result{Interrupted: context.Cause(ctx), Unsent: e.link == nil} // without an endpoint nothing was sent
	default:
		return tool.NewFailure(e.failure(errors.Join(err, callCtx.Err()), note))
	}
}

// portMessage is the name of the message port.
const portMessage = "message"

// messagePart returns the message: the port's, else the filled template. Untrusted content is
// fenced text, because an agent's reader may be a model.
func (c config) messagePart(in node.Input) (*a2a.Part, *wire.NodeError) {
	t := &node.Template{In: in, Fenced: true}
	given, ok := in.Ports[portMessage]
	if !ok {
		if c.Message == "" {
			return nil, node.Invalid("/config/message: give a message, or connect the port %s", portMessage)
		}
		text, bad := t.Text("/config/message", c.Message)
		return a2a.NewTextPart(text), bad
	}
	d := json.NewDecoder(bytes.NewReader(given))
	d.UseNumber()
	var object map[string]any
	if !in.UntrustedPorts[portMessage] && d.Decode(&object) == nil && object != nil {
		return a2a.NewDataPart(object), nil
	}
	return a2a.NewTextPart(t.Show(portMessage, given, in.UntrustedPorts[portMessage])), nil
}

// failure returns the node error of a message without an answer.
func (e *exchange) failure(err error, n *outbound.Note) *wire.NodeError {
	peer := e.agent.peer(e.link)
	offers, isOffers := errors.AsType[*offersError](err)
	switch {
	case errors.Is(err, a2a.ErrUnauthenticated), errors.Is(err, a2a.ErrUnauthorized):
		return &wire.NodeError{
			Code:    string(fault.CredentialRequired),
			Message: fmt.Sprintf("%s refused the message; set %s to a token that it takes", peer.Name, peer.TokenName),
		}
	case isOffers:
		return &wire.NodeError{Code: string(fault.CapabilityNotProvided), Message: peer.Name + ": " + offers.Error()}
	case errors.Is(err, errCard):
		return &wire.NodeError{Code: string(fault.CapabilityNotProvided), Message: peer.Name + ": " + errCard.Error()}
	}
	for kind, retryable := range refusals {
		if errors.Is(err, kind) {
			return &wire.NodeError{
				Code:      string(fault.ToolFailed),
				Message:   fmt.Sprintf("%s refused: %s", peer.Name, kind),
				Details:   map[string]any{"agent": e.agent.cfg.ID},
				Retryable: retryable,
			}
		}
	}
	e.agent.keep(nil)
	if errors.Is(err, errPage) {
		return &wire.NodeError{Code: string(fault.ServiceUnavailable), Message: peer.Name + " " + errPage.Error(), Retryable: true}
	}
	return peer.Failure(err, n)
}

// refusals are the protocol's errors, and whether the same message may succeed later. Their texts
// come from the library.
var refusals = map[error]bool{
	a2a.ErrInvalidRequest:           false,
	a2a.ErrMethodNotFound:           false,
	a2a.ErrInvalidParams:            false,
	a2a.ErrInternalError:            true,
	a2a.ErrServerError:              true,
	a2a.ErrTaskNotFound:             false,
	a2a.ErrUnsupportedOperation:     false,
	a2a.ErrUnsupportedContentType:   false,
	a2a.ErrInvalidAgentResponse:     false,
	a2a.ErrParseError:               false,
	a2a.ErrExtensionSupportRequired: false,
	a2a.ErrVersionNotSupported:      false,
}

// isOtherVersion reports whether the agent does not know the version of a message. It has not read
// the message.
func isOtherVersion(err error) bool {
	return errors.Is(err, a2a.ErrMethodNotFound) || errors.Is(err, a2a.ErrVersionNotSupported)
}
