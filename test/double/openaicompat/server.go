// Package openaicompat is a server with OpenAI's chat completions API, for tests.
// It is a real server on a real port, and as strict as the vendor: what the
// vendor would refuse it refuses, with the vendor's error body, so that a client
// that passes here speaks the protocol and not merely to this double.
//
// A test queues replies; each accepted request takes one. Refused requests take
// none. The rules of strict response schemas are those of the OpenAI column of
// OpenWOP envelope contract §20, which compatible servers hold to at least, or, with
// Options.OpenAI, those that OpenAI has today.
package openaicompat

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"waybill.dev/waybill/test/double/vendor"
)

// DefaultModel is the server's model when Options name none.
const DefaultModel = "gpt-double"

// Options configure a Server.
type Options struct {
	// Key is the API key a client must show; empty wants none.
	Key string
	// Models are the ids the server knows; none means DefaultModel.
	Models []string
	// OpenAI makes the server OpenAI itself: what its models refuse, its limits of
	// strict schemas, its headers, the members of its chunks, and answers that are
	// really cut at the most tokens allowed.
	OpenAI bool
	// RequireSchema refuses each call that is held to no strict schema.
	RequireSchema bool
	// RateLimit is how many requests OpenAI's rate limit lets through; 0 for all.
	RateLimit int
	// Answer makes the reply when the queue is empty; nil gives a fixed one.
	Answer func(Recorded) Reply
	// Watch, when set, is told of each request once its answer is out, from several
	// goroutines, and the server records none: a load would fill its memory.
	Watch func(Watched)
}

// Recorded is a request as it arrived.
type Recorded = vendor.Recorded

// Server is a running server; Close it.
type Server struct {
	vendor.Server[Reply]
	options Options
	counted atomic.Int64           // requests that the rate limit is about
	fit     atomic.Pointer[string] // the schema that strict mode took last
}

// New starts a server on a free port of the loopback interface. It panics if
// there is none, as httptest does: a test cannot go on without it.
func New(o Options) *Server {
	if len(o.Models) == 0 {
		o.Models = []string{DefaultModel}
	}
	s := &Server{options: o}
	s.Start(maxBody, s.answer)
	return s
}

// URL is the base address for a client, with the version and no final slash.
func (s *Server) URL() string { return s.Server.URL() + "/v1" }

// maxBody is how large a request may be.
const maxBody = 16 << 20

func (s *Server) answer(w http.ResponseWriter, c vendor.Call) {
	reply, req := s.decide(w.Header(), c)
	if s.options.Watch == nil {
		s.Record(c.Recorded, reply.status())
	} else {
		t := &timer{ResponseWriter: w, watched: Watched{Recorded: c.Recorded, Arrived: c.Arrived}}
		t.watched.Status = reply.status()
		defer func() { s.options.Watch(t.watched) }()
		w = t
	}
	reply.write(w, call{Call: c, request: req, openai: s.options.OpenAI})
}

// decide is the reply to a request: a refusal if it breaks a rule, else the next
// one of the queue.
func (s *Server) decide(h http.Header, c vendor.Call) (Reply, request) {
	if refusal := s.admit(c); refusal != nil {
		return *refusal, request{}
	}
	if refusal := s.limited(h); refusal != nil {
		return *refusal, request{}
	}
	req, refusal := s.parse(c.Body)
	if refusal != nil {
		return *refusal, request{}
	}
	reply := s.Next(c.Recorded, s.options.Answer, Reply{Pieces: vendor.Hello()})
	if s.options.OpenAI {
		reply = reply.truncated(req)
	}
	return reply, req
}

// admit checks what comes before the body.
func (s *Server) admit(c vendor.Call) *Reply {
	kind, _, _ := strings.Cut(c.Header.Get("Content-Type"), ";")
	switch {
	case c.Path != "/v1/chat/completions":
		return &Reply{Status: http.StatusNotFound, Code: "unknown_url", Message: "Unknown request URL: " + c.Method + " " + c.Path}
	case c.Method != http.MethodPost:
		return &Reply{Status: http.StatusMethodNotAllowed, Code: "method_not_supported", Message: "Only POST requests are accepted."}
	case s.options.Key != "" && c.Header.Get("Authorization") == "":
		return &Reply{Status: http.StatusUnauthorized, Message: "You didn't provide an API key."}
	case s.options.Key != "" && c.Header.Get("Authorization") != "Bearer "+s.options.Key:
		return &Reply{Status: http.StatusUnauthorized, Code: "invalid_api_key", Message: "Incorrect API key provided."}
	case strings.TrimSpace(strings.ToLower(kind)) != "application/json":
		return &Reply{Status: http.StatusUnsupportedMediaType, Code: "unsupported_content_type", Message: "Unsupported content type; want application/json."}
	case c.TooLarge:
		return &Reply{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("The request is too large; the most are %d bytes.", maxBody)}
	default:
		return nil
	}
}
