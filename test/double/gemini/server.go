// Package gemini is a test server with the content methods of Google's Gemini API. It listens on a
// real port and is as strict as the vendor. It rejects what the vendor rejects, with the vendor's
// error body. A client that passes here therefore follows the protocol. It ignores what the vendor
// ignores, above all unknown schema keywords.
//
// A test queues replies. Each accepted request takes one, a rejected request takes none.
package gemini

import (
	"net/http"
	"slices"
	"strings"

	"waybill.dev/waybill/test/double/vendor"
)

// DefaultModel is the server's model when Options.Models is empty.
const DefaultModel = "gemini-2.5-double"

// Options configure a Server.
type Options struct {
	// Key is the API key that a client must send. Empty requires none.
	Key string
	// Models are the ids of the available models. Empty means DefaultModel.
	Models []string
	// RequireSchema rejects calls without a JSON Schema for the answer, for tests of a host that
	// must always send one.
	RequireSchema bool
	// MaxInputTokens limits the prompt, by the server's own count. 0 means no limit.
	MaxInputTokens int
	// Answer makes the reply when the queue is empty. nil uses a fixed reply.
	Answer func(Recorded) Reply
}

// Recorded is a received request.
type Recorded = vendor.Recorded

// Server is a running server. The caller must Close it. Its URL excludes the version.
type Server struct {
	vendor.Server[Reply]
	options Options
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

// maxBody is the limit of a request body, in bytes.
const maxBody = 20 << 20

func (s *Server) answer(w http.ResponseWriter, c vendor.Call) {
	reply, req := s.decide(c)
	s.Record(c.Recorded, reply.status())
	reply.write(w, call{Call: c, request: req})
}

// decide returns the reply to a request: an error if it breaks a rule, otherwise the next reply of
// the queue.
func (s *Server) decide(c vendor.Call) (Reply, request) {
	method, refusal := s.admit(c)
	if refusal != nil {
		return *refusal, request{}
	}
	req, refusal := parse(c.Body, modelOf(c.Path))
	if refusal != nil {
		return *refusal, request{}
	}
	req.stream = method == "streamGenerateContent"
	req.listed = req.stream && c.Query.Get("alt") != "sse"
	if s.options.RequireSchema && !req.hasSchema() {
		return *invalid("This server wants a JSON Schema with every call: generation_config.response_json_schema, or the parameters of a function that must be called."), req
	}
	if most := s.options.MaxInputTokens; most > 0 && req.prompt > most {
		return *invalid("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", req.prompt, most), req
	}
	return s.Next(c.Recorded, s.options.Answer, Reply{Pieces: vendor.Hello()}), req
}

func modelOf(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/v1beta/models/"), ":")
	return name
}

// admit checks path, method and headers. It returns the called method.
func (s *Server) admit(c vendor.Call) (string, *Reply) {
	kind, _, _ := strings.Cut(c.Header.Get("Content-Type"), ";")
	_, method, _ := strings.Cut(c.Path, ":")
	key := c.Header.Get("X-Goog-Api-Key")
	if key == "" {
		key = c.Query.Get("key")
	}
	switch {
	case !strings.HasPrefix(c.Path, "/v1beta/models/") || (method != "streamGenerateContent" && method != "generateContent"), c.Method != http.MethodPost:
		return "", &Reply{Status: http.StatusNotFound, ContentType: "text/html; charset=UTF-8", Raw: "<!DOCTYPE html><title>Error 404 (Not Found)!!1</title>"}
	case c.Header.Get("Authorization") != "":
		return "", &Reply{Status: http.StatusUnauthorized, Message: "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential."}
	case s.options.Key != "" && key == "":
		return "", &Reply{Status: http.StatusForbidden, Message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."}
	case s.options.Key != "" && key != s.options.Key:
		return "", InvalidKey()
	case strings.TrimSpace(strings.ToLower(kind)) != "application/json":
		return "", invalid("Invalid content type; want application/json.")
	case c.TooLarge:
		return "", invalid("Request payload size exceeds the limit: %d bytes.", maxBody)
	case !slices.Contains(s.options.Models, modelOf(c.Path)):
		return "", &Reply{Status: http.StatusNotFound, Message: "models/" + modelOf(c.Path) + " is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."}
	default:
		return method, nil
	}
}
