package vertex_test

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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
	"waybill.dev/waybill/services/dispatcher/provider/vertex"
)

// account signs in at the double.
const account = "waybill@desk-1.iam.gserviceaccount.com"

var signer = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// double is Google's server of access tokens and Vertex AI. It checks assertions and tokens as the
// vendor does, and answers with one response.
type double struct {
	*httptest.Server
	lives time.Duration // of tokens
	stall bool          // never ends an answer

	mu     sync.Mutex // guards all below
	reply  reply
	tokens []string
	path   string
	query  string
	head   http.Header
	sent   map[string]json.RawMessage
}

// reply is a response, byte for byte.
type reply struct {
	status int    // 0: 200
	label  string // the Content-Type; empty for a stream of events
	body   string
}

func newDouble(t *testing.T, r reply) *double {
	t.Helper()
	d := &double{reply: r, lives: time.Hour}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		d.giveToken(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	d.mu.Lock()
	d.path, d.query, d.head, d.sent = r.URL.Path, r.URL.RawQuery, r.Header.Clone(), nil
	_ = json.Unmarshal(body, &d.sent)
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	valid := slices.Contains(d.tokens, token)
	reply := d.reply
	d.mu.Unlock()
	if !valid {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `[{"error":{"code":401,"message":"Request had invalid authentication credentials.","status":"UNAUTHENTICATED"}}]`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if reply.label != "" {
		w.Header().Set("Content-Type", reply.label)
	}
	if reply.status != 0 {
		w.WriteHeader(reply.status)
	}
	_, _ = io.WriteString(w, strings.ReplaceAll(reply.body, "$TOKEN", r.Header.Get("Authorization")))
	if d.stall {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// answerWith replaces the body of the response.
func (d *double) answerWith(body string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reply.body = body
}

// giveToken answers a sign-in: RFC 7523 §2.1, with the rules of the vendor.
func (d *double) giveToken(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if problem := d.checkAssertion(r); problem != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":"invalid_grant","error_description":%q}`, problem)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens = append(d.tokens, fmt.Sprintf("ya29.token-%d-of-the-host", len(d.tokens)))
	_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d}`, d.tokens[len(d.tokens)-1], int(d.lives.Seconds()))
}

func (d *double) checkAssertion(r *http.Request) string {
	if r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		return "Invalid grant_type"
	}
	parts := strings.Split(r.FormValue("assertion"), ".")
	if len(parts) != 3 {
		return "Bad Request"
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || rsa.VerifyPKCS1v15(&signer().PublicKey, crypto.SHA256, sum[:], signature) != nil {
		return "Invalid JWT Signature."
	}
	claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
	var c struct {
		Iss, Scope, Aud string
		Exp             int64
	}
	switch {
	case json.Unmarshal(claims, &c) != nil || c.Iss != account:
		return "Invalid issuer"
	case c.Scope != "https://www.googleapis.com/auth/cloud-platform":
		return "invalid scope"
	case c.Aud != d.URL+"/token":
		return "invalid audience"
	case time.Until(time.Unix(c.Exp, 0)) <= 0:
		return "expired"
	}
	return ""
}

// issued is the number of tokens.
func (d *double) issued() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tokens)
}

// privateKey is the account's key as a document has it.
func privateKey(t testing.TB, key *rsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// credentialsAt is the key of the account for a server of tokens.
func credentialsAt(t testing.TB, address string, key *rsa.PrivateKey) provider.Secret {
	t.Helper()
	doc, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "desk-1", "private_key_id": "k1", "client_email": account,
		"private_key": privateKey(t, key), "token_uri": address + "/token",
	})
	require.NoError(t, err)
	return provider.Secret(doc)
}

func open(t *testing.T, d *double, edit func(*vertex.Config)) *vertex.Provider {
	t.Helper()
	cfg := vertex.Config{
		Server: outbound.Server{BaseURL: d.URL}, Location: "europe-west4", Credentials: credentialsAt(t, d.URL, signer()),
	}
	if edit != nil {
		edit(&cfg)
	}
	p, err := vertex.New(cfg)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func failure(t *testing.T, p provider.Provider, req provider.Request) *provider.Error {
	t.Helper()
	_, err := p.Call(t.Context(), req, nil)
	e, ok := provider.As(err)
	require.True(t, ok, err)
	require.NotContains(t, e.Error()+e.Quote, "ya29")
	require.NotContains(t, e.Error()+e.Quote, "PRIVATE")
	return e
}
