package bedrock_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
	"waybill.dev/waybill/services/dispatcher/provider/bedrock"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// The credentials that the double knows.
const (
	region    = "eu-central-1"
	keyID     = "AKIDEXAMPLE"
	secretKey = "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY"
	session   = "session-token-of-the-host"
	hostKey   = "bedrock-api-key-host"
	tenantKey = "bedrock-api-key-tenant"
)

// double is Bedrock's runtime: it checks the credentials of each request as the vendor does, and
// answers with one response.
type double struct {
	*httptest.Server
	// stall never ends an answer.
	stall bool

	mu    sync.Mutex // guards all below
	reply reply
	path  string
	sent  map[string]json.RawMessage
	head  http.Header
}

// reply is a response, byte for byte.
type reply struct {
	status int // 0: 200
	kind   string
	label  string // the Content-Type; empty for Amazon's stream
	body   []byte
	header map[string]string
}

func newDouble(t *testing.T, r reply) *double {
	t.Helper()
	d := &double{reply: r}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	d.mu.Lock()
	d.path, d.head, d.sent = r.URL.EscapedPath(), r.Header.Clone(), nil
	_ = json.Unmarshal(body, &d.sent)
	reply := d.reply
	d.mu.Unlock()
	if kind, message := refusal(r, body); kind != "" {
		w.Header().Set("X-Amzn-Errortype", kind+":http://internal.amazon.com/coral/com.amazon.coral.service/")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"message":%q}`, message)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	if reply.label != "" {
		w.Header().Set("Content-Type", reply.label)
	}
	if reply.kind != "" {
		w.Header().Set("X-Amzn-Errortype", reply.kind)
	}
	for name, value := range reply.header {
		w.Header().Set(name, value)
	}
	if reply.status != 0 {
		w.WriteHeader(reply.status)
	}
	_, _ = w.Write(reply.body)
	if d.stall {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// answerWith replaces the body of the response.
func (d *double) answerWith(body []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reply.body = body
}

// refusal checks the credentials of a request; empty if they are valid.
func refusal(r *http.Request, body []byte) (kind, message string) {
	authorization := r.Header.Get("Authorization")
	if token, ok := strings.CutPrefix(authorization, "Bearer "); ok {
		if slices.Contains([]string{hostKey, tenantKey}, token) {
			return "", ""
		}
		return "AccessDeniedException", "Authentication failed: the API Key is not valid: " + token
	}
	canonical, given := canonicalRequest(r, body)
	if given == "" {
		return "MissingAuthenticationToken", "Missing Authentication Token"
	}
	if want := signatureOf(r, canonical); given != want {
		return "InvalidSignatureException", "The request signature we calculated does not match the signature you provided. The Canonical String for this request should have been '" + canonical + "'"
	}
	return "", ""
}

// canonicalRequest returns the request as it is signed (Signature Version 4), and its signature.
func canonicalRequest(r *http.Request, body []byte) (canonical, signature string) {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return "", ""
	}
	parts := map[string]string{}
	for _, part := range strings.Split(rest, ", ") {
		name, value, _ := strings.Cut(part, "=")
		parts[name] = value
	}
	signed := strings.Split(parts["SignedHeaders"], ";")
	headers := ""
	for _, name := range signed {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		headers += name + ":" + strings.Join(strings.Fields(value), " ") + "\n"
	}
	var path []string // each segment is escaped once more
	for _, segment := range strings.Split(r.URL.EscapedPath(), "/") {
		path = append(path, strings.ReplaceAll(url.QueryEscape(segment), "+", "%20"))
	}
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	sum := sha256.Sum256(body)
	canonical = strings.Join([]string{
		r.Method, strings.Join(path, "/"), query, headers, strings.Join(signed, ";"), hex.EncodeToString(sum[:]),
	}, "\n")
	for _, must := range []string{"host", "x-amz-date"} {
		if !slices.Contains(signed, must) {
			return canonical, "unsigned"
		}
	}
	return canonical, parts["Signature"]
}

// signatureOf recomputes the signature of a request.
func signatureOf(r *http.Request, canonical string) string {
	date := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", date)
	if err != nil || time.Since(at).Abs() > 5*time.Minute {
		return "outdated"
	}
	scope := date[:8] + "/" + region + "/bedrock/aws4_request"
	if !strings.Contains(r.Header.Get("Authorization"), "Credential="+keyID+"/"+scope+",") {
		return "of another key or region"
	}
	if token := r.Header.Get("X-Amz-Security-Token"); token != "" && token != session {
		return "of another session"
	}
	sum := sha256.Sum256([]byte(canonical))
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		_, _ = h.Write([]byte(text))
		return h.Sum(nil)
	}
	key := mac(mac(mac(mac([]byte("AWS4"+secretKey), date[:8]), region), "bedrock"), "aws4_request")
	return hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hex.EncodeToString(sum[:])))
}

// frame is a message of Amazon's stream.
func frame(t testing.TB, payload string, headers ...string) []byte {
	t.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var b bytes.Buffer
	require.NoError(t, eventstream.NewEncoder().Encode(&b, m))
	return b.Bytes()
}

// chunks are Anthropic's events in Amazon's stream.
func chunks(t testing.TB, events ...string) (out []byte) {
	t.Helper()
	for _, e := range events {
		payload := fmt.Sprintf(`{"bytes":%q,"p":"abcdefgh"}`, base64.StdEncoding.EncodeToString([]byte(e)))
		out = append(out, frame(t, payload, ":message-type", "event", ":event-type", "chunk", ":content-type", "application/json")...)
	}
	return out
}

// exception is an error in Amazon's stream.
func exception(t testing.TB, kind, payload string) []byte {
	t.Helper()
	return frame(t, payload, ":message-type", "exception", ":exception-type", kind, ":content-type", "application/json")
}

const (
	start     = `{"type":"message_start","message":{"type":"message","role":"assistant","model":"claude-x","content":[],"usage":{"input_tokens":9,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":1}}}`
	textStart = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	blockStop = `{"type":"content_block_stop","index":0}`
	stop      = `{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":9,"outputTokenCount":7}}`
)

func piece(text string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, text)
}

func end(reason string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":7}}`, reason)
}

// answer is a complete answer.
func answer(t testing.TB) []byte {
	t.Helper()
	return chunks(t, start, textStart, piece("one "), piece("two 😀"), blockStop, end("end_turn"), stop)
}

// signing is the configuration of an access key.
func signing(address string) bedrock.Config {
	return bedrock.Config{
		Server: outbound.Server{BaseURL: address}, Region: region,
		AccessKeyID: keyID, SecretAccessKey: secretKey, SessionToken: session,
	}
}

func open(t *testing.T, cfg bedrock.Config) *anthropic.Provider {
	t.Helper()
	p, err := bedrock.New(cfg)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func failure(t *testing.T, p provider.Provider, req provider.Request) *provider.Error {
	t.Helper()
	_, err := p.Call(t.Context(), req, nil)
	e, ok := provider.As(err)
	require.True(t, ok, err)
	for _, secret := range []string{secretKey, session, hostKey, tenantKey} {
		require.NotContains(t, e.Error()+e.Quote, secret)
	}
	return e
}
