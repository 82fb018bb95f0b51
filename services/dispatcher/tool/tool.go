// Package tool holds what the node types share that ask somebody outside who is
// no model: MCP servers (package mcp) and A2A agents (package a2a).
//
// The operator names whom a workflow may ask; a workflow knows ids only, and no
// address from a workflow or an envelope is ever fetched. What comes back is
// untrusted, whoever it comes from (OpenWOP envelope contract §12).
package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/replayguard"
)

// MaxResultBytes bounds what one call brings back, and what of it is recorded. A
// node's outputs can stand in a frame twice, in its own end and in the run's.
const MaxResultBytes = 2 << 20

// MaxTimeout bounds one call, whatever its node asks for.
const MaxTimeout = 10 * time.Minute

// Runner executes the nodes of one type.
type Runner interface {
	// Run executes a node.
	Run(ctx context.Context, t model.Task, j model.Journal) model.Result
	// Check says what is wrong with a node's config before a run of it exists; nil:
	// nothing.
	Check(config json.RawMessage) *wire.NodeError
}

// Runners maps a typeId to what executes it.
type Runners map[string]Runner

// Types are the node types of the runners, sorted by id.
func (r Runners) Types() []node.Type {
	types := make([]node.Type, 0, len(r))
	for _, id := range slices.Sorted(maps.Keys(r)) {
		types = append(types, node.Type{ID: id, Class: node.Effect, Check: r[id].Check, Idempotent: idempotent(r[id])})
	}
	return types
}

// Marker is a Runner that knows which calls the operator marked as idempotent.
type Marker interface {
	// Idempotent reports whether the call of a node with this config may be sent twice.
	Idempotent(config json.RawMessage) bool
}

// idempotent reports the calls that the author or the operator marked.
func idempotent(r Runner) func(config json.RawMessage) bool {
	return func(config json.RawMessage) bool {
		m, ok := r.(Marker)
		return node.MarkedIdempotent(config) || ok && m.Idempotent(config)
	}
}

// Models executes model nodes.
type Models interface {
	Run(ctx context.Context, t model.Task, j model.Journal) model.Result
}

// Router gives every task to the runner of its type, and to the models what is left.
type Router struct {
	Runners Runners
	Models  Models
}

// Run executes a node.
func (m Router) Run(ctx context.Context, t model.Task, j model.Journal) model.Result {
	if err := replayguard.Check(ctx); err != nil {
		return model.Result{Interrupted: err}
	}
	if ctx.Err() != nil {
		return model.Result{Interrupted: context.Cause(ctx), Unsent: true}
	}
	if r, ok := m.Runners[t.TypeID]; ok {
		return r.Run(ctx, t, j)
	}
	return m.Models.Run(ctx, t, j)
}

// InvocationID names what a node asks for of a peer, such as mcp:files:read: a node asks
// once.
func InvocationID(t model.Task, peer string) string { return model.InvocationID(t, 0, peer) }

// Timeout is how long a call may take: as long as its node says, else the usual.
func Timeout(millis int64, usual time.Duration) time.Duration {
	if millis <= 0 {
		return usual
	}
	return min(time.Duration(millis)*time.Millisecond, MaxTimeout)
}

// CheckTimeout refuses a timeoutMs that no call may have.
func CheckTimeout(millis int64) *wire.NodeError {
	if millis < 0 || millis > MaxTimeout.Milliseconds() {
		return node.Invalid("/config/timeoutMs: want milliseconds from 1 to %d", MaxTimeout.Milliseconds())
	}
	return nil
}

// NewFailure ends a node whose peer was asked: what follows from a peer's doing is no
// more trusted than the peer.
func NewFailure(e *wire.NodeError) model.Result {
	return model.Result{Err: e, Trust: wire.Untrusted}
}

// NewSuccess ends a node with outputs. What is too large for a frame fails it.
func NewSuccess(ports map[string]json.RawMessage) model.Result {
	size := 0
	for _, v := range ports {
		size += len(v)
	}
	if size > MaxResultBytes {
		return NewFailure(TooLarge())
	}
	return model.Result{Output: node.Output{Ports: ports}, Trust: wire.Untrusted}
}

// TooLarge is the error of a result that cannot be recorded.
func TooLarge() *wire.NodeError {
	return &wire.NodeError{
		Code:    string(fault.ContentTooLong),
		Message: fmt.Sprintf("the answer is larger than %d bytes; ask for less", MaxResultBytes),
	}
}

// validID is the protocol's pattern of provider ids (OpenWOP envelope contract
// §16.1), so that an id also makes the name of a variable.
var validID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// CheckID refuses an id that cannot be one.
func CheckID(id string) error {
	if !validID.MatchString(id) {
		return fmt.Errorf("id %q: want lower-case letters, digits and dashes, beginning with a letter, 64 at most", id)
	}
	return nil
}
