// Package mcp is an MCP server over streamable HTTP, for tests: a real server on a
// real port, made of the protocol's own library, whose one tool says what a test
// queues.
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

// Reply is what a call of the tool is answered with. The first that is set counts.
type Reply struct {
	// Status, when set, is that of an HTTP error with Body and Header.
	Status int
	Body   string
	Header http.Header
	// Err, when set, is the error of JSON-RPC.
	Err *jsonrpc.Error
	// Result is the tool's.
	Result *mcp.CallToolResult
	// Notes are told to the client before the result, as progress.
	Notes []string
}

// Options configure a Server.
type Options struct {
	// Token is the bearer token that a client must show; empty wants none.
	Token string
	// About is how the server describes itself and its tool.
	About string
}

// Recorded is a request as it arrived.
type Recorded = vendor.Recorded

// Server is a running server; Close it. The protocol's library answers by its own
// server, so what is embedded is the queue and the requests alone.
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
	for session := range s.sdk.Sessions() { // those that no client has ended
		_ = session.Close()
	}
	s.http.Close()
}

// front looks at requests before the library does: it keeps them, and refuses some. The
// status that is kept is that of a refusal; what the library answers is its own.
func (s *Server) front(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil { // the client went away
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
	_, _ = io.WriteString(w, r.Body) // the client may have gone
}

// call is the tool.
func (s *Server) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	r, ok := s.Take(Reply.says)
	if !ok {
		return Text(string(req.Params.Arguments)), nil
	}
	for _, note := range r.Notes {
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Message: note}) // the client may have gone
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return r.Result, nil
}

// Text is a result of texts.
func Text(texts ...string) *mcp.CallToolResult {
	res := &mcp.CallToolResult{}
	for _, t := range texts {
		res.Content = append(res.Content, &mcp.TextContent{Text: t})
	}
	return res
}
