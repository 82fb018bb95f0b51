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
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
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
	// Limit is how many requests OpenAI's rate limit lets through; 0 for all.
	Limit int
	// Answer makes the reply when the queue is empty; nil gives a fixed one.
	Answer func(Recorded) Reply
	// Watch, when set, is told of each request once its answer is out, from several
	// goroutines, and the server records none: a load would fill its memory.
	Watch func(Watched)
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
	counted  int
	replies  []Reply
	requests []Recorded
}

// New starts a server on a free port of the loopback interface. It panics if
// there is none, as httptest does: a test cannot go on without it.
func New(o Options) *Server {
	if len(o.Models) == 0 {
		o.Models = []string{DefaultModel}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic("openaicompat: listen: " + err.Error())
	}
	s := &Server{options: o, url: "http://" + l.Addr().String() + "/v1", closing: make(chan struct{})}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 10 * time.Second}
	s.active.Go(func() { _ = s.http.Serve(l) }) // it returns when Close closes the listener
	return s
}

// URL is the base address for a client, with the version and no final slash.
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

// maxBody is how much of a request is read.
const maxBody = 16 << 20

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		return
	}
	defer s.active.Done()
	arrived := time.Now()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil { // the client went away
		return
	}
	rec := Recorded{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	reply, req := s.decide(w.Header(), rec)
	rec.Status = reply.status()
	if s.options.Watch != nil {
		t := &timer{ResponseWriter: w, watched: Watched{Recorded: rec, Arrived: arrived}}
		defer func() { s.options.Watch(t.watched) }()
		w = t
	} else {
		s.record(rec)
	}
	reply.write(w, call{request: req, openai: s.options.OpenAI, ended: r.Context().Done(), closing: s.closing})
}

// decide is the reply to a request: a refusal if it breaks a rule, else the next
// one of the queue.
func (s *Server) decide(h http.Header, rec Recorded) (Reply, request) {
	if refusal := s.admit(rec); refusal != nil {
		return *refusal, request{}
	}
	if refusal := s.limited(h); refusal != nil {
		return *refusal, request{}
	}
	req, refusal := s.options.parse(rec.Body)
	if refusal != nil {
		return *refusal, request{}
	}
	reply := s.next(rec)
	if s.options.OpenAI {
		reply = reply.truncated(req)
	}
	return reply, req
}

// admit checks what comes before the body.
func (s *Server) admit(rec Recorded) *Reply {
	kind, _, _ := strings.Cut(rec.Header.Get("Content-Type"), ";")
	switch {
	case rec.Path != "/v1/chat/completions":
		return &Reply{Status: http.StatusNotFound, Code: "unknown_url", Message: "Unknown request URL: " + rec.Method + " " + rec.Path}
	case rec.Method != http.MethodPost:
		return &Reply{Status: http.StatusMethodNotAllowed, Code: "method_not_supported", Message: "Only POST requests are accepted."}
	case s.options.Key != "" && rec.Header.Get("Authorization") == "":
		return &Reply{Status: http.StatusUnauthorized, Message: "You didn't provide an API key."}
	case s.options.Key != "" && rec.Header.Get("Authorization") != "Bearer "+s.options.Key:
		return &Reply{Status: http.StatusUnauthorized, Code: "invalid_api_key", Message: "Incorrect API key provided."}
	case strings.TrimSpace(strings.ToLower(kind)) != "application/json":
		return &Reply{Status: http.StatusUnsupportedMediaType, Code: "unsupported_content_type", Message: "Unsupported content type; want application/json."}
	default:
		return nil
	}
}

func (s *Server) next(rec Recorded) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.replies) > 0 {
		r := s.replies[0]
		s.replies = s.replies[1:]
		return r
	}
	if s.options.Answer != nil {
		return s.options.Answer(rec)
	}
	return Reply{Pieces: []string{"Hello", " from", " the", " double"}}
}

func (s *Server) record(rec Recorded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, rec)
}

// count counts a request that the rate limit is about.
func (s *Server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted++
	return s.counted
}
