package bedrock_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
	"waybill.dev/waybill/services/dispatcher/provider/bedrock"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
	double "waybill.dev/waybill/test/double/bedrock"
)

// Credentials of the double.
const (
	region    = double.Region
	keyID     = double.KeyID
	secretKey = double.SecretKey
	session   = double.Session
	hostKey   = double.HostKey
	tenantKey = double.TenantKey
)

type reply = double.Reply

// server answers with one response.
type server struct {
	*double.Server
	reply atomic.Pointer[reply]
}

func newDouble(t *testing.T, r reply) *server {
	t.Helper()
	s := &server{}
	s.reply.Store(&r)
	s.Server = double.New(func(double.Request) reply { return *s.reply.Load() })
	t.Cleanup(s.Close)
	return s
}

// answerWith replaces the body of the response.
func (s *server) answerWith(body []byte) { s.reply.Store(&reply{Body: body}) }

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
func answer() []byte {
	return double.Chunks(start, textStart, piece("one "), piece("two 😀"), blockStop, end("end_turn"), stop)
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
