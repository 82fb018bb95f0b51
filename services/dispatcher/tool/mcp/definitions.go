package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/services/dispatcher/tool/outbound"
)

// maxTools limits the tools of a server whose definitions are read.
const maxTools = 10_000

// definitions are the output schemas of a server's tools, in one session. A server that does not
// list its tools has none.
type definitions struct {
	reading chan struct{} // held while reading, guards listed
	stale   chan struct{} // receives if the server said that its list changed; capacity 1

	listed map[string]*output // nil if the list must be read
}

// output is a server's description of the results of a tool.
type output struct {
	doc json.RawMessage // the schema; nil for none

	schema *schema.Schema
	// unusable means that the host cannot apply the schema.
	unusable bool
}

func newDefinitions() *definitions {
	return &definitions{reading: make(chan struct{}, 1), stale: make(chan struct{}, 1)}
}

// changed makes the next call read the list again.
func (d *definitions) changed() {
	select {
	case d.stale <- struct{}{}:
	default:
	}
}

// outputOf returns the definition of a tool. It reads the list for the first call, for a tool that
// the list does not have, and if again is set. fresh reports whether it was read for this call. An
// error means that the session is lost.
func (s *server) outputOf(ctx context.Context, sess *session, name string, again bool) (_ output, fresh bool, _ error) {
	d := sess.definitions
	select {
	case d.reading <- struct{}{}:
		defer func() { <-d.reading }()
	case <-ctx.Done():
		return output{}, false, ctx.Err()
	}
	select {
	case <-d.stale:
		d.listed = nil
	default:
	}
	if known, ok := d.listed[name]; ok && !again {
		return known.compiled(), false, nil
	}
	listed, err := s.listTools(ctx, sess)
	if err != nil {
		return output{}, false, err
	}
	for absent, known := range d.listed { // tools that no list has are looked for once
		if listed[absent] == nil && known.doc == nil {
			listed[absent] = known
		}
	}
	if listed[name] == nil {
		listed[name] = &output{}
	}
	d.listed = listed
	return listed[name].compiled(), true, nil
}

// listTools reads the output schemas of all tools. A list that the server refuses, or that is too
// large, is empty: its tools can be called nevertheless.
func (s *server) listTools(ctx context.Context, sess *session) (map[string]*output, error) {
	listed := map[string]*output{}
	if s.listless.Load() {
		return listed, nil
	}
	ctx, n := outbound.WithNote(ctx)
	for t, err := range sess.Tools(ctx, &mcp.ListToolsParams{}) {
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, outbound.ErrTooLarge) || n.TooLarge():
			s.listless.Store(true)
			return nil, err
		case s.unreached(sess, err, n):
			return nil, err
		default:
			return listed, nil
		}
		out := &output{}
		if doc, err := json.Marshal(t.OutputSchema); err == nil && t.OutputSchema != nil {
			out.doc = doc
		}
		if listed[t.Name] = out; len(listed) == maxTools {
			break
		}
	}
	return listed, nil
}

// unreached reports whether the server did not answer a request, or answered about its own state.
func (s *server) unreached(sess *session, err error, n *outbound.Note) bool {
	_, isState := errors.AsType[*outbound.StatusError](err)
	return isState || errors.Is(err, mcp.ErrConnectionClosed) || sess.gone(err, n) || s.http != nil && n.Status() == 0
}

// compiled compiles the schema before its first use.
func (o *output) compiled() output {
	if o.doc != nil && o.schema == nil && !o.unusable {
		var err error
		o.schema, err = schema.Compile("outputSchema", o.doc)
		o.unusable = err != nil
	}
	return *o
}

// violation returns the keyword of the schema that a result breaks; empty for none. The schema and
// the result are the server's, so nothing else of them is repeated.
func (o output) violation(res result) string {
	switch {
	case o.schema == nil || res.IsError || res.NeedsInput:
		return ""
	case res.Structured == nil:
		return missing
	}
	if wrong := o.schema.Validate(res.Structured); len(wrong) > 0 {
		return wrong[0].Keyword
	}
	return ""
}

// missing stands for a result without structured content.
const missing = "structuredContent is missing"
