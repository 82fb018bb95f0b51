// Package openaicompat is a test server with OpenAI's chat completions API. It listens on a real
// port and is as strict as the vendor. It rejects what the vendor rejects, with the vendor's error
// body. A client that passes here therefore follows the protocol.
//
// A test queues replies. Each accepted request takes one, a rejected request takes none. The rules
// of strict response schemas are the OpenAI column of OpenWOP envelope contract §20, the minimum of
// compatible servers. With Options.OpenAI they are OpenAI's current rules.
package openaicompat

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"waybill.dev/waybill/test/double/vendor"
)

// DefaultModel is the server's model when Options.Models is empty.
const DefaultModel = "gpt-double"

// Options configure a Server.
type Options struct {
	// Key is the API key that a client must send. Empty requires none.
	Key string
	// Models are the ids of the available models. Empty means DefaultModel.
	Models []string
	// OpenAI adds OpenAI's own behaviour: per-model rules, limits of strict schemas, rate limit
	// headers, chunk members, and answers cut at the token limit.
	OpenAI bool
	// RequireSchema rejects calls without a strict schema.
	RequireSchema bool
	// RateLimit is the number of requests before OpenAI's rate limit error. 0 means no limit.
	RateLimit int
	// Answer makes the reply when the queue is empty. nil uses a fixed reply.
	Answer func(Recorded) Reply
	// Watch, when set, receives each request after its answer was sent, from several goroutines.
	// The server then records no requests, because a load test would fill its memory.
	Watch func(Watched)
}

// Recorded is a received request.
type Recorded = vendor.Recorded

// Server is a running server. The caller must Close it.
type Server struct {
	vendor.Server[Reply]
	options Options
	counted atomic.Int64           // requests counted against the rate limit
	fit     atomic.Pointer[string] // the last schema that was valid in strict mode
}

// New starts a server on a free port of the loopback interface. Like httptest, it panics if no port
// is free.
func New(o Options) *Server {
	if len(o.Models) == 0 {
		o.Models = []string{DefaultModel}
	}
	s := &Server{options: o}
	s.Start(maxBody, s.answer)
	return s
}

// URL is the base address for a client, with the version and without trailing slash.
func (s *Server) URL() string { return s.Server.URL() + "/v1" }

// maxBody is the limit of a request body, in bytes.
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

// decide returns the reply to a request: an error if it breaks a rule, otherwise the next reply of
// the queue.
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

// admit checks path, method and headers.
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
