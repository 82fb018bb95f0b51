// Package mcp is a test MCP server over streamable HTTP. It listens on a real port, uses the
// protocol's own library, and has one tool that returns queued replies.
package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"waybill.dev/waybill/test/double/vendor"
)

// Tool is the name of the server's tool. Without a reply in the queue it repeats its
// arguments.
const Tool = "say"

// Reply is the scripted result of a tool call. The first field that is set counts.
type Reply struct {
	// Status, when set, makes the reply an HTTP error with Body and Header.
	Status int
	Body   string
	Header http.Header
	// Err, when set, makes the reply a JSON-RPC error.
	Err *jsonrpc.Error
	// Result is the tool's result.
	Result *mcp.CallToolResult
	// Notes are sent to the client before the result, as progress notifications.
	Notes []string
}

// Options configure a Server.
type Options struct {
	// Token is the bearer token that a client must send. Empty requires none.
	Token string
	// About is the description of the server and its tool.
	About string
}

// Recorded is a received request.
type Recorded = vendor.Recorded

// Server is a running server. The caller must Close it. The protocol's library has its own HTTP
// server, so only the queue and the recorded requests of vendor.Server are used.
type Server struct {
	vendor.Server[Reply]
	options Options
	sdk     *mcp.Server
	http    *httptest.Server
}

// New starts a server on a free port of the loopback interface.
func New(o Options) *Server {
	s := &Server{options: o}
	s.sdk = mcp.NewServer(&mcp.Implementation{Name: "double", Title: o.About, Version: "1"}, &mcp.ServerOptions{Instructions: o.About})
	s.sdk.AddTool(&mcp.Tool{Name: Tool, Description: o.About, InputSchema: json.RawMessage(`{"type":"object"}`)}, s.call)
	s.http = httptest.NewServer(s.front(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.sdk }, nil)))
	return s
}

// URL is the server's endpoint.
func (s *Server) URL() string { return s.http.URL }

// Close ends all sessions and connections.
func (s *Server) Close() {
	for session := range s.sdk.Sessions() { // sessions that no client has ended
		_ = session.Close()
	}
	s.http.Close()
}

// front records requests before the library handles them, and rejects some. The recorded status is
// that of a rejection; the status of the library's answers is not recorded.
func (s *Server) front(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil { // the client disconnected
			return
		}
		refusal, refused := s.refusal(r, body)
		s.Record(Recorded{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(), Body: body}, refusal.Status)
		if refused {
			refusal.refuse(w)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

func (s *Server) refusal(r *http.Request, body []byte) (Reply, bool) {
	if s.options.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.options.Token {
		return Reply{Status: http.StatusUnauthorized}, true
	}
	var call struct{ Method string }
	if json.Unmarshal(body, &call) != nil || call.Method != "tools/call" {
		return Reply{}, false
	}
	return s.Take(Reply.refuses)
}

func (r Reply) refuses() bool { return r.Status != 0 }
func (r Reply) says() bool    { return r.Status == 0 }

func (r Reply) refuse(w http.ResponseWriter) {
	for name, values := range r.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(r.Status)
	_, _ = io.WriteString(w, r.Body) // the client may have disconnected
}

// call implements the tool.
func (s *Server) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	r, ok := s.Take(Reply.says)
	if !ok {
		return Text(string(req.Params.Arguments)), nil
	}
	for _, note := range r.Notes {
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Message: note}) // the client may have disconnected
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return r.Result, nil
}

// Text returns a result of these texts.
func Text(texts ...string) *mcp.CallToolResult {
	res := &mcp.CallToolResult{}
	for _, t := range texts {
		res.Content = append(res.Content, &mcp.TextContent{Text: t})
	}
	return res
}
