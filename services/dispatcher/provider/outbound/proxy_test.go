package outbound_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

func TestNewClient_UsesTheProxyOfTheEnvironment(t *testing.T) { //nolint:paralleltest // sets the environment
	asked := make(chan string, 2)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String()
		w.Header().Set("Content-Type", "text/event-stream")
	}))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", "")
	t.Setenv("NO_PROXY", "house.example")
	t.Setenv("no_proxy", "")
	call := func(url string) error {
		c := outbound.NewClient(provider.DefaultTimeouts(), outbound.Extras{})
		defer c.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
		require.NoError(t, err)
		res, err := c.Do(r)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, res.Body)
		return res.Body.Close()
	}
	require.NoError(t, call("http://vendor.example/v1"))
	require.Equal(t, "http://vendor.example/v1", <-asked)
	require.Error(t, call("http://house.example/v1"), "there is no such host")
	require.Empty(t, asked)
}
