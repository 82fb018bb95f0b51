// Package anthropic is a server with Anthropic's Messages API, for tests. It is a
// real server on a real port, and as strict as the vendor: what the vendor would
// refuse it refuses, with the vendor's error body, so that a client that passes
// here speaks the protocol and not merely to this double.
//
// A test queues replies; each accepted request takes one. Refused requests take
// none. The rules of strict schemas are those of the Anthropic column of OpenWOP
// envelope contract §20 and the vendor's own limits of complexity.
package anthropic

import (
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// DefaultModel is the server's model when Options name none.
const DefaultModel = "claude-opus-4-6"

// Version is the API's version, which every request names.
const Version = "2023-06-01"

// Options configure a Server.
type Options struct {
	// Key is the API key a client must show; empty wants any.
	Key string
	// Keys are further keys that are good.
	Keys []string
	// Models are the ids the server knows; none means DefaultModel.
	Models []string
	// MaxOutput is the most output tokens a request may ask for; 0 means 64000.
	MaxOutput int
	// Context is how many tokens prompt and answer may have; 0 means 200000.
	Context int
	// RequireSchema refuses what does not ask for a strict schema: for tests that
	// every call has one.
	RequireSchema bool
	// RateLimit is how many requests are accepted in all; 0 means any number.
	RateLimit int
	// Answer makes the reply when the queue is empty; nil gives a fixed one, or an
	// instance of the request's schema.
	Answer func(Recorded) Reply
}

// Recorded is a request as it arrived.
type Recorded struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	// Status is what it was answered with.
	Status int
}

// Server is a running server; Close it.
type Server struct {
	options Options
	url     string
	http    *http.Server
	closing chan struct{}
	active  sync.WaitGroup

	mu       sync.Mutex // guards all below
	closed   bool
	accepted int
	replies  []Reply
	requests []Recorded
}

// New starts a server on a free port of the loopback interface. It panics if
// there is none, as httptest does: a test cannot go on without it.
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic("anthropic double: listen: " + err.Error())
	}
	s := &Server{options: o, url: "http://" + l.Addr().String(), closing: make(chan struct{})}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 10 * time.Second}
	s.active.Go(func() { _ = s.http.Serve(l) }) // it returns when Close closes the listener
	return s
}

// URL is the base address for a client, without the version.
func (s *Server) URL() string { return s.url }

// Enqueue adds replies to the queue.
func (s *Server) Enqueue(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
}

// Requests are all requests so far, refused ones included, in order of arrival.
func (s *Server) Requests() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Close ends all connections and returns when every handler has. A second call
// does nothing.
func (s *Server) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first {
		close(s.closing)
		_ = s.http.Close() // nothing to flush
	}
	s.active.Wait()
}

// enter counts a handler; false when the server is closing, for then nobody
// waits for it.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.active.Add(1)
	}
	return !s.closed
}

// maxBody is the vendor's bound of a request.
const maxBody = 32 << 20

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		return
	}
	defer s.active.Done()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil { // the client went away
		return
	}
	rec := Recorded{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	reply, req := s.decide(rec)
	rec.Status = reply.status()
	s.mu.Lock()
	s.requests = append(s.requests, rec)
	s.mu.Unlock()
	reply.write(w, call{request: req, ended: r.Context().Done(), closing: s.closing})
}

// decide is the reply to a request: a refusal if it breaks a rule, else the next
// one of the queue.
func (s *Server) decide(rec Recorded) (Reply, request) {
	if refusal := s.admit(rec); refusal != nil {
		return *refusal, request{}
	}
	req, refusal := s.parse(rec.Body)
	if refusal != nil {
		return *refusal, request{}
	}
	return s.next(rec, req), req
}

// admit checks what comes before the body.
func (s *Server) admit(rec Recorded) *Reply {
	kind, _, _ := mime.ParseMediaType(rec.Header.Get("Content-Type"))
	version := rec.Header.Get("Anthropic-Version")
	switch {
	case rec.Path != "/v1/messages":
		return &Reply{Status: http.StatusNotFound, Message: "Not found"}
	case rec.Method != http.MethodPost:
		return &Reply{Status: http.StatusMethodNotAllowed, Message: "Method Not Allowed"}
	case rec.Header.Get("X-Api-Key") == "":
		return &Reply{Status: http.StatusUnauthorized, Message: "x-api-key header is required"}
	case s.options.Key != "" && rec.Header.Get("X-Api-Key") != s.options.Key && !slices.Contains(s.options.Keys, rec.Header.Get("X-Api-Key")):
		return &Reply{Status: http.StatusUnauthorized, Message: "invalid x-api-key"}
	case version == "":
		return bad("anthropic-version: header is required")
	case version != Version:
		return bad("anthropic-version: %q is not a valid version", version)
	case kind != "application/json":
		return bad("content-type: want application/json")
	case len(rec.Body) > maxBody:
		return &Reply{Status: http.StatusRequestEntityTooLarge, Message: "Request exceeds the maximum size"}
	default:
		return nil
	}
}

func (s *Server) next(rec Recorded, req request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted++
	if s.options.RateLimit > 0 && s.accepted > s.options.RateLimit {
		return limited(s.options.RateLimit)
	}
	if len(s.replies) > 0 {
		r := s.replies[0]
		s.replies = s.replies[1:]
		return r
	}
	if s.options.Answer != nil {
		return s.options.Answer(rec)
	}
	if schema := req.schema(); len(schema) > 0 {
		return Reply{Pieces: halves(instance(schema))}
	}
	return Reply{Pieces: []string{"Hello", " from", " the", " double"}}
}

// limited is the vendor's refusal for its rate limit.
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
