// Package mcp executes core.mcp.callTool: one tool call of an MCP server, over streamable HTTP or
// the standard input and output of a program.
//
// The result is recorded with the end of its node. After a crash before that, the call is repeated
// with the same idempotency key in _meta, which lets a server recognise it.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/tool"
	"waybill.dev/waybill/services/dispatcher/tool/outbound"
)

// Members of _meta that identify the call.
const (
	MetaIdempotencyKey = "waybill.dev/idempotencyKey"
	MetaAttempt        = "waybill.dev/attempt"
	metaTraceparent    = "traceparent"
)

// Runner executes nodes. It is safe for concurrent use.
type Runner struct {
	servers map[string]*server
}

// New validates the configurations and connects to no server, so that an unavailable server does
// not prevent the start.
func New(configs ...Config) (*Runner, error) {
	r := &Runner{servers: map[string]*server{}}
	for _, c := range configs {
		if _, twice := r.servers[c.ID]; twice {
			return nil, fmt.Errorf("server %s is named twice", c.ID)
		}
		r.servers[c.ID] = newServer(c)
	}
	return r, nil
}

// Close ends all sessions and their programs.
func (r *Runner) Close() {
	var wg sync.WaitGroup
	for _, s := range r.servers {
		wg.Go(s.close)
	}
	wg.Wait()
}

// config is a node's config. Unknown members are ignored for forward compatibility.
type config struct {
	Server         string          `json:"server"`
	Tool           string          `json:"tool"`
	Arguments      json.RawMessage `json:"arguments"`
	AllowToolError bool            `json:"allowToolError"`
	TimeoutMs      int64           `json:"timeoutMs"`
	// Idempotent is read by node.MarkedIdempotent; only its type is checked here.
	Idempotent bool `json:"idempotent"`
}

func (r *Runner) parse(raw json.RawMessage) (config, *wire.NodeError) {
	var c config
	if err := strictjson.Read(raw, &c); err != nil {
		return c, node.Invalid("/config: want {server, tool, arguments?, allowToolError?, timeoutMs?, idempotent?}")
	}
	if c.Tool == "" {
		return c, node.Invalid("/config/tool: name the tool to call")
	}
	if len(c.Arguments) > 0 && string(c.Arguments) != "null" && c.Arguments[0] != '{' {
		return c, node.Invalid("/config/arguments: want an object")
	}
	return c, tool.CheckTimeout(c.TimeoutMs)
}

// Check returns the problem of a node's config; see tool.Runner.
func (r *Runner) Check(raw json.RawMessage) *wire.NodeError {
	c, bad := r.parse(raw)
	if bad != nil {
		return bad
	}
	_, bad = r.server(c)
	return bad
}

// Arguments returns the arguments of a node's call; see tool.Limited.
func (r *Runner) Arguments(in node.Input) json.RawMessage {
	c, bad := r.parse(in.Config)
	if bad != nil {
		return nil
	}
	args, bad := c.arguments(in)
	if bad != nil {
		return nil
	}
	return args
}

// Idempotent reports whether the operator marked the tool; see tool.Marker.
func (r *Runner) Idempotent(raw json.RawMessage) bool {
	c, bad := r.parse(raw)
	if bad != nil {
		return false
	}
	s, ok := r.servers[c.Server]
	return ok && slices.Contains(s.cfg.Idempotent, c.Tool)
}

func (r *Runner) server(c config) (*server, *wire.NodeError) {
	s, ok := r.servers[c.Server]
	if !ok {
		return nil, &wire.NodeError{
			Code:    string(fault.CapabilityNotProvided),
			Message: fmt.Sprintf("/config/server: this host has no MCP server of that id; it has %v", slices.Sorted(maps.Keys(r.servers))),
		}
	}
	return s, nil
}

// Run calls a tool.
func (r *Runner) Run(ctx context.Context, t model.Task, j model.Journal) model.Result {
	c, bad := r.parse(t.Input.Config)
	if bad != nil {
		return model.Result{Err: bad}
	}
	s, bad := r.server(c)
	if bad != nil {
		return model.Result{Err: bad}
	}
	args, bad := c.arguments(t.Input)
	if bad != nil {
		return model.Result{Err: bad}
	}
	callCtx, one, token, end := s.calls.begin(ctx, tool.Timeout(c.TimeoutMs, callTimeout))
	defer end()
	stop := one.watch(ctx, t.Input.NodeID, j)
	defer stop()
	callCtx, note := outbound.WithNote(callCtx)
	params := &mcp.CallToolParams{Name: c.Tool, Arguments: args, Meta: callMeta(t)}
	params.SetProgressToken(token)
	got, err := s.call(callCtx, params, note)
	stop()
	switch {
	case err == nil:
		if bad := got.warn(ctx, t, j); bad != nil {
			return *bad
		}
		return c.newResult(s, got)
	case errors.Is(err, callguard.ErrNotBegun):
		return model.Result{Interrupted: err, Unsent: true}
	case ctx.Err() != nil: // the server got a cancellation
		return model.Result{Interrupted: context.Cause(ctx), Unsent: errors.Is(err, errUnsent)}
	case errors.Is(err, errNoResult):
		return tool.NewFailure(resultError(s))
	default:
		return tool.NewFailure(s.failure(err, note, context.Cause(callCtx)))
	}
}

// warn records that a result is not checked, because the tool's outputSchema is unusable.
func (a *answer) warn(ctx context.Context, t model.Task, j model.Journal) *model.Result {
	if !a.output.unusable || j == nil {
		return nil
	}
	err := j.Record(ctx, logDraft(t.Input.NodeID, "warn",
		"the tool's outputSchema is no JSON Schema of its own that this host can apply; the result is not checked",
		map[string]string{"reason": wire.ReasonOutputUnchecked}))
	if err != nil {
		return &model.Result{Interrupted: err}
	}
	return nil
}

// callMeta returns the _meta that identifies the call.
func callMeta(t model.Task) mcp.Meta {
	m := mcp.Meta{
		MetaIdempotencyKey: tool.InvocationID(t, node.Peer(node.TypeMCPCallTool, t.Input.Config)),
		MetaAttempt:        t.Attempt + 1,
	}
	if trace := t.Trace.Call(t.Input.NodeID, t.Attempt, 0); trace != "" {
		m[metaTraceparent] = trace
	}
	return m
}

// portArguments is the name of the arguments port.
const portArguments = "arguments"

// arguments returns the port's arguments, else the filled template.
func (c config) arguments(in node.Input) (json.RawMessage, *wire.NodeError) {
	if given, ok := in.Ports[portArguments]; ok {
		var object map[string]json.RawMessage
		if json.Unmarshal(given, &object) != nil || object == nil {
			return nil, node.Invalid("/inputs/%s: want an object", portArguments)
		}
		return given, nil
	}
	if len(c.Arguments) == 0 || string(c.Arguments) == "null" {
		return json.RawMessage("{}"), nil
	}
	return (&node.Template{In: in}).JSON("/config/arguments", c.Arguments)
}

// failure returns the node error of a call without a result.
func (s *server) failure(err error, n *outbound.Note, ended error) *wire.NodeError {
	rpc, answered := errors.AsType[*jsonrpc.Error](err)
	if answered && !isUnsent(rpc.Code) && !n.TooLarge() {
		return &wire.NodeError{
			Code:      string(fault.ToolFailed),
			Message:   fmt.Sprintf("%s refused the call with JSON-RPC code %d", s.peer().Name, rpc.Code),
			Details:   map[string]any{"server": s.cfg.ID, "jsonrpcCode": rpc.Code},
			Retryable: rpc.Code == jsonrpc.CodeInternalError,
		}
	}
	return s.peer().Failure(errors.Join(err, ended), n)
}

// isUnsent reports the codes that the library assigns to calls that did not reach a server.
func isUnsent(code int64) bool { return code == -32005 || code == -32004 || code == -32003 }

func (s *server) peer() outbound.Peer {
	return outbound.Peer{Name: fmt.Sprintf("MCP server %q", s.cfg.ID), TokenName: s.cfg.TokenName}
}
