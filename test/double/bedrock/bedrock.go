// Package bedrock is a double of Amazon Bedrock's runtime. It checks path, credentials and signature of
// each request as the vendor does, and answers in Amazon's framing.
package bedrock

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// The credentials that the double accepts.
const (
	Region    = "eu-central-1"
	KeyID     = "AKIDEXAMPLE"
	SecretKey = "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY"
	Session   = "session-token-of-the-host"
	HostKey   = "bedrock-api-key-host"
	TenantKey = "bedrock-api-key-tenant"
)

// Reply is a response, byte for byte.
type Reply struct {
	Status int // 0: 200
	// Kind is the type of an error.
	Kind  string
	Label string // the Content-Type; empty for Amazon's stream
	Body  []byte
	// Header has further headers.
	Header map[string]string
	// Cut breaks the connection after the body, Stall never ends the answer.
	Cut, Stall bool
}

// Request is a request that was received.
type Request struct {
	// Path is the escaped path.
	Path    string
	Header  http.Header
	Body    []byte
	Members map[string]json.RawMessage
}

// Server is a running server. The caller must Close it.
type Server struct {
	*httptest.Server
	answer func(Request) Reply

	mu   sync.Mutex // guards last
	last Request
}

// New starts a server. It answers valid requests as answer says.
func New(answer func(Request) Reply) *Server {
	s := &Server{answer: answer}
	s.Server = httptest.NewServer(s)
	return s
}

// Last returns the last request.
func (s *Server) Last() Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// operation matches the path of a streaming call of a model.
var operation = regexp.MustCompile(`^/model/[^/]+/invoke-with-response-stream$`)

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // an incomplete body has a wrong signature
	req := Request{Path: r.URL.EscapedPath(), Header: r.Header.Clone(), Body: body}
	_ = json.Unmarshal(body, &req.Members) // checked below
	s.mu.Lock()
	s.last = req
	s.mu.Unlock()
	status, kind, message := check(r, req)
	if kind != "" {
		w.Header().Set("X-Amzn-Errortype", kind+":http://internal.amazon.com/coral/com.amazon.coral.service/")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"message":%q}`, message)
		return
	}
	s.answer(req).write(w, r)
}

// check returns the error of a request that breaks a rule; an empty kind if it breaks none.
func check(r *http.Request, req Request) (status int, kind, message string) {
	if kind, message := refusal(r, req.Body); kind != "" {
		return http.StatusForbidden, kind, message
	}
	bad := func(message string) (int, string, string) {
		return http.StatusBadRequest, "ValidationException", message
	}
	switch {
	case r.Method != http.MethodPost || !operation.MatchString(req.Path):
		return http.StatusNotFound, "UnknownOperationException", "unknown operation " + req.Path
	case req.Members == nil:
		return bad("Malformed input request")
	case string(req.Members["anthropic_version"]) != `"bedrock-2023-05-31"`:
		return bad("anthropic_version: Field required")
	case len(req.Members["max_tokens"]) == 0:
		return bad("max_tokens: Field required")
	}
	for _, name := range []string{"model", "stream"} {
		if len(req.Members[name]) > 0 {
			return bad(name + ": Extra inputs are not permitted")
		}
	}
	return 0, "", ""
}

func (r Reply) write(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	if r.Label != "" {
		w.Header().Set("Content-Type", r.Label)
	}
	if r.Kind != "" {
		w.Header().Set("X-Amzn-Errortype", r.Kind)
	}
	for name, value := range r.Header {
		w.Header().Set(name, value)
	}
	if r.Status != 0 {
		w.WriteHeader(r.Status)
	}
	_, _ = w.Write(r.Body)
	if r.Cut || r.Stall {
		_ = http.NewResponseController(w).Flush()
	}
	switch {
	case r.Cut:
		panic(http.ErrAbortHandler)
	case r.Stall:
		<-req.Context().Done()
	}
}

// Frame is a message of Amazon's stream.
func Frame(payload string, headers ...string) []byte {
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		panic(err) // strings always encode
	}
	return b.Bytes()
}

// Chunks are Anthropic's events in Amazon's stream.
func Chunks(events ...string) (out []byte) {
	for _, e := range events {
		payload := fmt.Sprintf(`{"bytes":%q,"p":"abcdefgh"}`, base64.StdEncoding.EncodeToString([]byte(e)))
		out = append(out, Frame(payload, ":message-type", "event", ":event-type", "chunk", ":content-type", "application/json")...)
	}
	return out
}

// Exception is an error in Amazon's stream.
func Exception(kind, payload string) []byte {
	return Frame(payload, ":message-type", "exception", ":exception-type", kind, ":content-type", "application/json")
}
