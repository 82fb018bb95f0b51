// Package vertex is a double of Google's Vertex AI and of its server of access tokens. It checks
// assertions, tokens and paths as the vendor does.
package vertex

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Account signs in at the double, for a project.
const (
	Account = "waybill@desk-1.iam.gserviceaccount.com"
	Project = "desk-1"
)

var signer = sync.OnceValue(NewKey)

// NewKey returns a key. Documents of another one than the account's do not sign in.
func NewKey() *rsa.PrivateKey {
	const bits = 2048
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err) // no randomness
	}
	return key
}

// AccountKey is the key of the account.
func AccountKey() *rsa.PrivateKey { return signer() }

// Reply is a response, byte for byte.
type Reply struct {
	Status int    // 0: 200
	Label  string // the Content-Type; empty for a stream of events
	Body   string
	Header map[string]string
	// Cut breaks the connection after the body, Stall never ends the answer.
	Cut, Stall bool
}

// Request is a request for a model.
type Request struct {
	Path, Query string
	Header      http.Header
	Body        []byte
	Members     map[string]json.RawMessage
}

// Options configure a Server.
type Options struct {
	// Lives is how long tokens live; 0 is an hour.
	Lives time.Duration
	// Answer answers a valid request.
	Answer func(Request) Reply
}

// Server is a running server. The caller must Close it.
type Server struct {
	*httptest.Server
	options Options

	mu     sync.Mutex // guards all below
	tokens []string
	last   Request
}

// New starts a server.
func New(o Options) *Server {
	if o.Lives == 0 {
		o.Lives = time.Hour
	}
	s := &Server{options: o}
	s.Server = httptest.NewServer(s)
	return s
}

// Last returns the last request for a model.
func (s *Server) Last() Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Issued returns the number of tokens.
func (s *Server) Issued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tokens)
}

// operation matches the paths of streaming calls of models, after the path of a gateway.
var operation = regexp.MustCompile(`^(/gw)?/v1(beta1)?/projects/[a-z0-9-]+/locations/[a-z0-9-]+/publishers/` +
	`(google/models/[^/:]+:streamGenerateContent|anthropic/models/[^/:]+:streamRawPredict)$`)

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		s.giveToken(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body) // an incomplete body is no document
	req := Request{Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: body}
	_ = json.Unmarshal(body, &req.Members) // checked below
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	s.last = req
	valid := slices.Contains(s.tokens, token)
	s.mu.Unlock()
	if !valid {
		refuse(w, http.StatusUnauthorized, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
		return
	}
	if problem := check(r, req); problem != "" {
		refuse(w, http.StatusBadRequest, "INVALID_ARGUMENT", problem)
		return
	}
	s.options.Answer(req).write(w, r)
}

func refuse(w http.ResponseWriter, status int, name, message string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `[{"error":{"code":%d,"message":%q,"status":%q}}]`, status, message, name)
}

// check returns the rule that a request breaks; empty if it breaks none.
func check(r *http.Request, req Request) string {
	claude := strings.Contains(req.Path, "/publishers/anthropic/")
	switch {
	case r.Method != http.MethodPost || !operation.MatchString(req.Path):
		return "unknown path " + req.Path
	case req.Members == nil:
		return "Invalid JSON payload received."
	case r.Header.Get("X-Goog-Api-Key") != "" || r.Header.Get("X-Api-Key") != "":
		return "API keys are not supported by this API."
	case len(req.Members["model"]) > 0:
		return "Invalid JSON payload received. Unknown name \"model\""
	case claude && string(req.Members["anthropic_version"]) != `"vertex-2023-10-16"`:
		return "anthropic_version: Field required"
	case claude && len(req.Members["max_tokens"]) == 0:
		return "max_tokens: Field required"
	case !claude && len(req.Members["contents"]) == 0:
		return "contents is not specified"
	case !claude && r.URL.Query().Get("alt") != "sse":
		return "alt must be sse"
	}
	return ""
}

func (r Reply) write(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Label != "" {
		w.Header().Set("Content-Type", r.Label)
	}
	for name, value := range r.Header {
		w.Header().Set(name, value)
	}
	if r.Status != 0 {
		w.WriteHeader(r.Status)
	}
	_, _ = io.WriteString(w, strings.ReplaceAll(r.Body, "$TOKEN", req.Header.Get("Authorization")))
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

// giveToken answers a sign-in: RFC 7523 §2.1, with the rules of the vendor.
func (s *Server) giveToken(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if problem := s.checkAssertion(r); problem != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":"invalid_grant","error_description":%q}`, problem)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = append(s.tokens, fmt.Sprintf("ya29.token-%d-of-the-host", len(s.tokens)))
	_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d}`,
		s.tokens[len(s.tokens)-1], int(s.options.Lives.Seconds()))
}

func (s *Server) checkAssertion(r *http.Request) string {
	if r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		return "Invalid grant_type"
	}
	const parts = 3
	jwt := strings.Split(r.FormValue("assertion"), ".")
	if len(jwt) != parts {
		return "Bad Request"
	}
	signature, err := base64.RawURLEncoding.DecodeString(jwt[2])
	sum := sha256.Sum256([]byte(jwt[0] + "." + jwt[1]))
	if err != nil || rsa.VerifyPKCS1v15(&signer().PublicKey, crypto.SHA256, sum[:], signature) != nil {
		return "Invalid JWT Signature."
	}
	claims, _ := base64.RawURLEncoding.DecodeString(jwt[1]) // otherwise they are no document
	var c struct {
		Iss, Scope, Aud string
		Exp             int64
	}
	switch {
	case json.Unmarshal(claims, &c) != nil || c.Iss != Account:
		return "Invalid issuer"
	case c.Scope != "https://www.googleapis.com/auth/cloud-platform":
		return "invalid scope"
	case c.Aud != s.URL+"/token":
		return "invalid audience"
	case time.Until(time.Unix(c.Exp, 0)) <= 0:
		return "expired"
	}
	return ""
}

// PrivateKey returns a key as a document has it.
func PrivateKey(key *rsa.PrivateKey) string {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err) // it has the form
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// Credentials returns the document of a key of the account, for the server of tokens at an address.
func Credentials(address string, key *rsa.PrivateKey) []byte {
	doc, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": Project, "private_key_id": "k1", "client_email": Account,
		"private_key": PrivateKey(key), "token_uri": address + "/token",
	})
	if err != nil {
		panic(err) // strings always render
	}
	return doc
}
