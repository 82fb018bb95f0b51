package vertex_test

import (
	"crypto/rsa"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
	"waybill.dev/waybill/services/dispatcher/provider/vertex"
	double "waybill.dev/waybill/test/double/vertex"
)

type reply = double.Reply

// server answers with one response.
type server struct {
	*double.Server
	reply atomic.Pointer[reply]
}

func newDouble(t *testing.T, r reply) *server {
	t.Helper()
	return newDoubleOf(t, r, 0)
}

// newDoubleOf starts a server whose tokens live for a while.
func newDoubleOf(t *testing.T, r reply, lives time.Duration) *server {
	t.Helper()
	s := &server{}
	s.reply.Store(&r)
	s.Server = double.New(double.Options{Lives: lives, Answer: func(double.Request) reply { return *s.reply.Load() }})
	t.Cleanup(s.Close)
	return s
}

// answerWith replaces the body of the response.
func (s *server) answerWith(body string) { s.reply.Store(&reply{Body: body}) }

// credentialsAt is the key of the account for a server of tokens.
func credentialsAt(address string, key *rsa.PrivateKey) provider.Secret {
	return provider.Secret(double.Credentials(address, key))
}

func open(t *testing.T, d *server, edit func(*vertex.Config)) *vertex.Provider {
	t.Helper()
	cfg := vertex.Config{
		Server: outbound.Server{BaseURL: d.URL}, Location: "europe-west4",
		Credentials: credentialsAt(d.URL, double.AccountKey()),
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
