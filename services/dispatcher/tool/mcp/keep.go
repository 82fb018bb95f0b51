package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// metaResult is the member of _meta that holds the result of a tool as the server sent it.
const metaResult = "waybill.dev/result"

// keeping is a transport that keeps the results of tools as the server sent them: the library drops
// members, rejects unknown content blocks and rounds numbers.
type keeping struct {
	mcp.Transport

	version *negotiated
}

// Connect connects to the server.
func (k keeping) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := k.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return keepingConn{conn, k.version}, nil
}

type keepingConn struct {
	mcp.Connection

	version *negotiated
}

// Read returns the next message.
func (c keepingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	res, ok := msg.(*jsonrpc.Response)
	if err != nil || !ok || res.Error != nil {
		return msg, err
	}
	doc, invalid := tool.Normalize(res.Result)
	if invalid != nil {
		return msg, nil //nolint:nilerr // the library reports it to the caller
	}
	members := strictjson.Object(doc)
	if v, ok := strictjson.String(members["protocolVersion"]); ok {
		c.version.set(v)
	}
	res.Result = keepResult(doc, members)
	return msg, nil
}

// keepResult moves the content of a tool's result, as it was sent, to a member that the library does
// not read.
func keepResult(doc json.RawMessage, members map[string]json.RawMessage) json.RawMessage {
	if members["content"] == nil && members["structuredContent"] == nil {
		return doc
	}
	delete(members, "structuredContent")
	members["content"] = json.RawMessage("[]")
	members["_meta"] = strictjson.RenderPlain(map[string]string{metaResult: string(doc)})
	return strictjson.RenderPlain(members)
}

// keptResult returns the result of a tool as the server sent it; nil if it has no content.
func keptResult(res *mcp.CallToolResult) json.RawMessage {
	doc, _ := res.Meta[metaResult].(string)
	return json.RawMessage(doc)
}

// negotiated is the version of the protocol of a connection, once it is known.
type negotiated struct{ atomic.Pointer[string] }

func (n *negotiated) set(version string) { n.Store(&version) }

// versioned adds the negotiated version to requests over HTTP. The library does so only on
// connections of its own.
type versioned struct {
	next    http.RoundTripper
	version *negotiated
}

const versionHeader = "Mcp-Protocol-Version"

// RoundTrip sends a request.
func (t versioned) RoundTrip(r *http.Request) (*http.Response, error) {
	if v := t.version.Load(); v != nil && r.Header.Get(versionHeader) == "" {
		r = r.Clone(r.Context())
		r.Header.Set(versionHeader, *v)
	}
	return t.next.RoundTrip(r)
}
