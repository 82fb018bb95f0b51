// Package gemini is a server with the content methods of Google's Gemini API, for
// tests. It is a real server on a real port, and as strict as the vendor: what the
// vendor would refuse it refuses, with the vendor's error body, so that a client
// that passes here speaks the protocol and not merely to this double. What the
// vendor ignores it ignores: keywords of schemas it does not know, above all.
//
// A test queues replies; each accepted request takes one. Refused requests take
// none.
package gemini

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// DefaultModel is the server's model when Options name none.
const DefaultModel = "gemini-2.5-double"

// Options configure a Server.
type Options struct {
	// Key is the API key a client must show; empty wants none.
	Key string
	// Models are the ids the server knows; none means DefaultModel.
	Models []string
	// RequireSchema refuses every call that holds its answer to no JSON Schema: a
	// test of a host that must always send one then fails.
	RequireSchema bool
	// MaxInputTokens bounds the prompt, by the server's own count; 0 for none.
	MaxInputTokens int
	// Answer makes the reply when the queue is empty; nil gives a fixed one.
	Answer func(Recorded) Reply
}

// Recorded is a request as it arrived.
type Recorded struct {
	Method, Path string
	Query        url.Values
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
		panic("gemini: listen: " + err.Error())
	}
	s := &Server{options: o, url: "http://" + l.Addr().String(), closing: make(chan struct{})}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 10 * time.Second}
	s.active.Go(func() { _ = s.http.Serve(l) }) // it returns when Close closes the listener
	return s
}

// URL is the base address for a client, without the version and a final slash.
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

// maxBody is how large a request may be.
const maxBody = 20 << 20

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		return
	}
	defer s.active.Done()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil { // the client went away
		return
	}
	rec := Recorded{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(), Body: body}
	reply, req := s.decide(rec)
	rec.Status = reply.status()
	s.record(rec)
	reply.write(w, call{request: req, ended: r.Context().Done(), closing: s.closing})
}

// decide is the reply to a request: a refusal if it breaks a rule, else the next
// one of the queue.
func (s *Server) decide(rec Recorded) (Reply, request) {
	method, refusal := s.admit(rec)
	if refusal != nil {
		return *refusal, request{}
	}
	req, refusal := parse(rec.Body, s.modelOf(rec))
	if refusal != nil {
		return *refusal, request{}
	}
	req.stream = method == "streamGenerateContent"
	req.listed = req.stream && rec.Query.Get("alt") != "sse"
	if s.options.RequireSchema && !req.hasSchema() {
		return *invalid("This server wants a JSON Schema with every call: generation_config.response_json_schema, or the parameters of a function that must be called."), req
	}
	if most := s.options.MaxInputTokens; most > 0 && req.prompt > most {
		return *invalid("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", req.prompt, most), req
	}
	return s.next(rec), req
}

func (s *Server) modelOf(rec Recorded) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(rec.Path, "/v1beta/models/"), ":")
	return name
}

// admit checks what comes before the body, and gives the method called.
func (s *Server) admit(rec Recorded) (string, *Reply) {
	kind, _, _ := strings.Cut(rec.Header.Get("Content-Type"), ";")
	_, method, _ := strings.Cut(rec.Path, ":")
	key := rec.Header.Get("X-Goog-Api-Key")
	if key == "" {
		key = rec.Query.Get("key")
	}
	switch {
	case !strings.HasPrefix(rec.Path, "/v1beta/models/") || (method != "streamGenerateContent" && method != "generateContent"), rec.Method != http.MethodPost:
		return "", &Reply{Status: http.StatusNotFound, ContentType: "text/html; charset=UTF-8", Raw: "<!DOCTYPE html><title>Error 404 (Not Found)!!1</title>"}
	case rec.Header.Get("Authorization") != "":
		return "", &Reply{Status: http.StatusUnauthorized, Message: "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential."}
	case s.options.Key != "" && key == "":
		return "", &Reply{Status: http.StatusForbidden, Message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."}
	case s.options.Key != "" && key != s.options.Key:
		return "", InvalidKey()
	case strings.TrimSpace(strings.ToLower(kind)) != "application/json":
		return "", invalid("Invalid content type; want application/json.")
	case len(rec.Body) > maxBody:
		return "", invalid("Request payload size exceeds the limit: %d bytes.", maxBody)
	case !slices.Contains(s.options.Models, s.modelOf(rec)):
		return "", &Reply{Status: http.StatusNotFound, Message: "models/" + s.modelOf(rec) + " is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."}
	default:
		return method, nil
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
