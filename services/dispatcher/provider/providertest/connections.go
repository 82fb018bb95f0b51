package providertest

import (
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// Streaming is a server's answer, and when its stream ends.
type Streaming struct {
	Answer string
	// Early wants the adapter to answer before the stream has ended, which it does only then.
	Early bool
}

// ReusesItsConnection asks several times a server that streams that answer, and holds the adapter
// to one connection. open gives the adapter of a server at that URL.
func ReusesItsConnection(t *testing.T, stream Streaming, req provider.Request, open func(url string) (provider.Provider, error)) {
	t.Helper()
	var conns int
	closed, goOn := make(chan struct{}, 1), make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{
		ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(stream.Answer))
			_ = http.NewResponseController(w).Flush()
			if stream.Early {
				select {
				case <-goOn:
				case <-r.Context().Done():
				}
			}
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew: // called by Serve's goroutine alone
				conns++
			case http.StateClosed:
				select {
				case closed <- struct{}{}:
				default:
				}
			default:
			}
		},
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	p, err := open("http://" + l.Addr().String())
	require.NoError(t, err)
	kept := make(chan error, 1)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{PutIdleConn: func(err error) { kept <- err }})
	for range 5 {
		_, err := p.Call(ctx, req, nil)
		require.NoError(t, err)
		if stream.Early {
			select {
			case goOn <- struct{}{}:
			case <-closed:
				require.Fail(t, "the adapter drops its connection")
			}
		}
		select {
		case err := <-kept:
			require.NoError(t, err)
		case <-closed:
			require.Fail(t, "the adapter drops its connection")
		}
	}
	if c, ok := p.(interface{ Close() }); ok {
		c.Close()
	}
	require.NoError(t, s.Close())
	<-done
	require.Equal(t, 1, conns)
}
