package providertest

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// ReusesItsConnection asks several times a server that streams that answer, and holds the adapter
// to one connection. open gives the adapter of a server at that URL.
func ReusesItsConnection(t *testing.T, answer string, req provider.Request, open func(url string) (provider.Provider, error)) {
	t.Helper()
	var conns int
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(answer))
	}), ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew { // called by Serve's goroutine alone
			conns++
		}
	}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	p, err := open("http://" + l.Addr().String())
	require.NoError(t, err)
	for range 5 {
		_, err := p.Call(t.Context(), req, nil)
		require.NoError(t, err)
	}
	if c, ok := p.(interface{ Close() }); ok {
		c.Close()
	}
	require.NoError(t, s.Close())
	<-done
	require.Equal(t, 1, conns)
}
