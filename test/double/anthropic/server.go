// Package anthropic is a test server with Anthropic's Messages API. It listens on a real port and
// is as strict as the vendor. It rejects what the vendor rejects, with the vendor's error body. A
// client that passes here therefore follows the protocol.
//
// A test queues replies. Each accepted request takes one, a rejected request takes none. The rules
// of strict schemas are the Anthropic column of OpenWOP envelope contract §20, plus the vendor's
// own limits of complexity.
package anthropic

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"sync/atomic"

	"waybill.dev/waybill/test/double/vendor"
)

// DefaultModel is the server's model when Options.Models is empty.
const DefaultModel = "claude-opus-4-6"

// Version is the API version that every request must name.
const Version = "2023-06-01"

// Options configure a Server.
type Options struct {
	// Key is the API key that a client must send. Empty accepts any key.
	Key string
	// Keys are further valid keys.
	Keys []string
	// Models are the ids of the available models. Empty means DefaultModel.
	Models []string
	// MaxOutput limits the max_tokens of a request. 0 means 64000.
	MaxOutput int
	// Context limits the tokens of prompt and answer together. 0 means 200000.
	Context int
	// RequireSchema rejects requests without a strict schema, for tests that every call has one.
	RequireSchema bool
	// RateLimit is the number of requests accepted in total. 0 means no limit.
	RateLimit int
	// Answer makes the reply when the queue is empty. nil uses a fixed reply, or an instance of the
	// request's schema.
	Answer func(Recorded) Reply
}

// Recorded is a received request.
type Recorded = vendor.Recorded

// Server is a running server. The caller must Close it. Its URL excludes the version.
type Server struct {
	vendor.Server[Reply]
	options  Options
	accepted atomic.Int64
}

// New starts a server on a free port of the loopback interface. Like httptest, it panics if no port
// is free.
func New(o Options) *Server {
	if len(o.Models) == 0 {
		o.Models = []string{DefaultModel}
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = 64_000
	}
	if o.Context == 0 {
		o.Context = 200_000
	}
	s := &Server{options: o}
	s.Start(maxBody, s.answer)
	return s
}

// maxBody is the vendor's limit of a request body, in bytes.
const maxBody = 32 << 20

func (s *Server) answer(w http.ResponseWriter, c vendor.Call) {
	reply, req := s.decide(c)
	s.Record(c.Recorded, reply.status())
	reply.write(w, call{Call: c, request: req})
}

// decide returns the reply to a request: an error if it breaks a rule, otherwise the next reply of
// the queue.
func (s *Server) decide(c vendor.Call) (Reply, request) {
	if refusal := s.admit(c); refusal != nil {
		return *refusal, request{}
	}
	req, refusal := s.parse(c.Body)
	if refusal != nil {
		return *refusal, request{}
	}
	return s.next(c.Recorded, req), req
}

// admit checks path, method and headers.
func (s *Server) admit(c vendor.Call) *Reply {
	kind, _, _ := mime.ParseMediaType(c.Header.Get("Content-Type"))
	version := c.Header.Get("Anthropic-Version")
	switch {
	case c.Path != "/v1/messages":
		return &Reply{Status: http.StatusNotFound, Message: "Not found"}
	case c.Method != http.MethodPost:
		return &Reply{Status: http.StatusMethodNotAllowed, Message: "Method Not Allowed"}
	case c.Header.Get("X-Api-Key") == "":
		return &Reply{Status: http.StatusUnauthorized, Message: "x-api-key header is required"}
	case s.options.Key != "" && c.Header.Get("X-Api-Key") != s.options.Key && !slices.Contains(s.options.Keys, c.Header.Get("X-Api-Key")):
		return &Reply{Status: http.StatusUnauthorized, Message: "invalid x-api-key"}
	case version == "":
		return bad("anthropic-version: header is required")
	case version != Version:
		return bad("anthropic-version: %q is not a valid version", version)
	case kind != "application/json":
		return bad("content-type: want application/json")
	case c.TooLarge:
		return &Reply{Status: http.StatusRequestEntityTooLarge, Message: "Request exceeds the maximum size"}
	default:
		return nil
	}
}

// next returns the reply to a valid request.
func (s *Server) next(rec Recorded, req request) Reply {
	if limit := s.options.RateLimit; s.accepted.Add(1) > int64(limit) && limit > 0 {
		return limited(limit)
	}
	plain := vendor.Hello()
	if schema := req.schema(); len(schema) > 0 {
		plain = halves(instance(schema))
	}
	return s.Next(rec, s.options.Answer, Reply{Pieces: plain})
}

// limited returns the vendor's rate limit error.
func limited(limit int) Reply {
	return Reply{
		Status: http.StatusTooManyRequests, RetryAfter: "7",
		Message: fmt.Sprintf("This request would exceed your organization's rate limit of %d requests per minute.", limit),
		Header: http.Header{
			"Anthropic-Ratelimit-Requests-Limit":     {fmt.Sprint(limit)},
			"Anthropic-Ratelimit-Requests-Remaining": {"0"},
			"Anthropic-Ratelimit-Requests-Reset":     {"2026-01-01T00:00:07Z"},
			"X-Should-Retry":                         {"true"},
		},
	}
}
