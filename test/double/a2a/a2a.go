// Package a2a is a test agent of A2A 0.3 over JSON-RPC. It listens on a real port, accepts what the
// protocol allows and answers from a queue.
package a2a

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/a2aproject/a2a-go/a2a"

	"waybill.dev/waybill/test/double/vendor"
)

// Reply is a scripted answer. The first field that is set counts.
type Reply struct {
	// Status, when set, makes the reply an HTTP error with Body and Header.
	Status int
	Body   string
	Header http.Header
	// Err, when set, makes the reply a JSON-RPC error.
	Err *Error
	// Answer is a message or a task. Without it the agent repeats the message.
	Answer a2a.Event
}

// Error is a JSON-RPC error.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Options configure a Server.
type Options struct {
	// Token is the bearer token that a client must send. Empty requires none.
	Token string
	// About is the description on the agent's card.
	About string
}

// Recorded is a received request.
type Recorded = vendor.Recorded

// Server is a running agent. The caller must Close it. Its URL is the address of its card.
type Server struct {
	vendor.Server[Reply]
	options Options
}

// New starts an agent on a free port of the loopback interface. Like httptest, it panics if no port
// is free.
func New(o Options) *Server {
	s := &Server{options: o}
	s.Start(maxBody, s.answer)
	return s
}

// maxBody is the limit of a request body, in bytes.
const maxBody = 8 << 20

// Paths that the agent serves.
const (
	cardPath   = "/.well-known/agent-card.json"
	invokePath = "/invoke"
)

func (s *Server) answer(w http.ResponseWriter, c vendor.Call) {
	reply := s.decide(c)
	s.Record(c.Recorded, reply.Status)
	for name, values := range reply.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(reply.Status)
	_, _ = io.WriteString(w, reply.Body) // the client may have disconnected
}

// decide returns the reply to a request as HTTP. A request that breaks a rule takes none of the
// queue.
func (s *Server) decide(c vendor.Call) Reply {
	switch {
	case s.options.Token != "" && c.Header.Get("Authorization") != "Bearer "+s.options.Token:
		return Reply{Status: http.StatusUnauthorized}
	case c.Method == http.MethodGet && c.Path == cardPath:
		return document(s.card())
	case c.Method == http.MethodPost && c.Path == invokePath:
		return s.invoke(c)
	default:
		return Reply{Status: http.StatusNotFound}
	}
}

func document(doc any) Reply {
	return Reply{Status: http.StatusOK, Body: string(vendor.JSON(doc)), Header: http.Header{"Content-Type": {"application/json"}}}
}

func (s *Server) card() *a2a.AgentCard {
	return &a2a.AgentCard{
		Name: "double", Description: s.options.About, Version: "1", ProtocolVersion: "0.3.0",
		URL: s.URL() + invokePath, PreferredTransport: a2a.TransportProtocolJSONRPC,
		DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		Skills: []a2a.AgentSkill{{ID: "say", Name: "say", Description: s.options.About}},
	}
}

// call is a JSON-RPC request.
type call struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		Message *a2a.Message `json:"message"`
	} `json:"params"`
}

// JSON-RPC error codes.
const (
	invalidRequest = -32600
	noMethod       = -32601
	invalidParams  = -32602
)

// check returns the protocol error of a call, nil if it is valid.
func (c call) check() *Error {
	m := c.Params.Message
	switch {
	case c.Version != "2.0" || len(c.ID) == 0:
		return &Error{Code: invalidRequest, Message: "want a call of JSON-RPC 2.0 with an id"}
	case c.Method != "message/send":
		return &Error{Code: noMethod, Message: "the double takes message/send alone"}
	case m == nil || m.ID == "" || m.Role != a2a.MessageRoleUser || len(m.Parts) == 0:
		return &Error{Code: invalidParams, Message: "want a message of the user with an id and parts"}
	}
	return nil
}

func (s *Server) invoke(rec vendor.Call) Reply {
	var c call
	if rec.TooLarge || json.Unmarshal(rec.Body, &c) != nil {
		return Reply{Status: http.StatusBadRequest}
	}
	if bad := c.check(); bad != nil {
		return document(response{Version: "2.0", ID: c.ID, Error: bad})
	}
	reply := s.Next(rec.Recorded, nil, Reply{Answer: a2a.NewMessage(a2a.MessageRoleAgent, c.Params.Message.Parts...)})
	switch {
	case reply.Status != 0:
		return reply
	case reply.Err != nil:
		return document(response{Version: "2.0", ID: c.ID, Error: reply.Err})
	default:
		return document(response{Version: "2.0", ID: c.ID, Result: reply.Answer})
	}
}

type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  a2a.Event       `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}
