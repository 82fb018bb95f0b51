// Package tool holds the shared parts of node types that call external peers: MCP servers (package
// mcp) and A2A agents (package a2a).
//
// The operator configures the peers. Workflows refer to them by id; the host never fetches an
// address from a workflow or an envelope. Results are always untrusted (OpenWOP envelope contract
// §12).
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// MaxResultBytes limits the answer of one call, and each output of its node. A text that is part of
// two outputs counts once.
const MaxResultBytes = 2 << 20

// MaxTimeout is the longest timeout of one call.
const MaxTimeout = 10 * time.Minute

// Runner executes the nodes of one type.
type Runner interface {
	// Run executes a node.
	Run(ctx context.Context, t model.Task, j model.Journal) model.Result
	// Check returns the problem of a node's config before a run is created; nil if there is none.
	Check(config json.RawMessage) *wire.NodeError
}

// Runners maps typeIds to their runners.
type Runners map[string]Runner

// Types returns the node types of the runners, sorted by id.
func (r Runners) Types() []node.Type {
	types := make([]node.Type, 0, len(r))
	known := node.Catalog{}.And(node.PeerTypes()...)
	for _, id := range slices.Sorted(maps.Keys(r)) {
		types = append(types, node.Type{
			ID: id, Class: node.Effect, Check: r[id].Check, Idempotent: idempotent(r[id]), Outputs: known[id].Outputs,
		})
	}
	return types
}

// Marker is a Runner whose operator can mark calls as idempotent.
type Marker interface {
	// Idempotent reports whether the call of a node with this config may be sent twice.
	Idempotent(config json.RawMessage) bool
}

// idempotent reports whether the author or the operator marked a call.
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

// Limited is a Runner whose calls have arguments that a limit's key can name.
type Limited interface {
	// Arguments returns the arguments of a node's call; nil if they are invalid.
	Arguments(in node.Input) json.RawMessage
}

// Admission is the answer to a call that has limits.
type Admission struct {
	// Release ends the call; nil if it is not admitted.
	Release func()
	// Limit is the index of the limit that refused the call, and Wait the time until a rate allows it;
	// 0 if another call must end first.
	Limit int
	Wait  time.Duration
}

// Router passes a task to the runner of its type, and model tasks to Models.
type Router struct {
	Runners Runners
	Models  Models
	// Limits returns the current limits of calls; nil for none.
	Limits func() *Limits
	// Acquire admits a call within its limits. id is the same for each try of a call.
	Acquire func(ctx context.Context, runID, id string, limits []CallLimit) (Admission, error)
}

// Run executes a node.
func (m Router) Run(ctx context.Context, t model.Task, j model.Journal) model.Result {
	if err := callguard.Check(ctx); err != nil {
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

// InvocationID returns the idempotency key of a node's only call of a peer, such as mcp:files:read.
func InvocationID(t model.Task, peer string) string { return model.InvocationID(t, 0, peer) }

// Timeout returns the timeout of a call: the node's, else the default.
func Timeout(millis int64, usual time.Duration) time.Duration {
	if millis <= 0 {
		return usual
	}
	return min(time.Duration(millis)*time.Millisecond, MaxTimeout)
}

// CheckTimeout rejects a timeoutMs out of range.
func CheckTimeout(millis int64) *wire.NodeError {
	if millis < 0 || millis > MaxTimeout.Milliseconds() {
		return node.Invalid("/config/timeoutMs: want milliseconds from 1 to %d", MaxTimeout.Milliseconds())
	}
	return nil
}

// NewFailure fails a node after a call of its peer. The result is as untrusted as the peer.
func NewFailure(e *wire.NodeError) model.Result {
	return model.Result{Err: e, Trust: wire.Untrusted}
}

// NewSuccess ends a node with outputs. An output that is too large fails it.
func NewSuccess(ports map[string]json.RawMessage) model.Result {
	for _, v := range ports {
		if len(v) > MaxResultBytes {
			return NewFailure(TooLarge())
		}
	}
	return model.Result{Output: node.Output{Ports: ports}, Trust: wire.Untrusted}
}

// TooLarge returns the error of a result that cannot be recorded.
func TooLarge() *wire.NodeError {
	return &wire.NodeError{
		Code:    string(fault.ContentTooLong),
		Message: fmt.Sprintf("the answer is larger than %d bytes; ask for less", MaxResultBytes),
	}
}

// Normalize renders a peer's JSON document with the same values, exact numbers and unique members.
// It fails for anything else.
func Normalize(doc []byte) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	return strictjson.RenderPlain(v), nil
}

// validID is the protocol's pattern of provider ids (OpenWOP envelope contract §16.1), so that an
// id also works in an environment variable.
var validID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// CheckID rejects a malformed id.
func CheckID(id string) error {
	if !validID.MatchString(id) {
		return fmt.Errorf("id %q: want lower-case letters, digits and dashes, beginning with a letter, 64 at most", id)
	}
	return nil
}
