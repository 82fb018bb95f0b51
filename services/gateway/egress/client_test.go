package egress_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/gateway/egress"
)

// names is a scripted resolver: each lookup returns the next answer, the last one repeats.
type names struct {
	answers [][]string
	asked   atomic.Int32
}

func (n *names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	i := min(int(n.asked.Add(1)), len(n.answers)) - 1
	var out []netip.Addr
	for _, a := range n.answers[i] {
		out = append(out, netip.MustParseAddr(a))
	}
	if len(out) == 0 {
		return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
	}
	return out, nil
}

func TestResolve_ChecksEveryAddress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		addrs []string
		want  error
	}{
		"public":                 {[]string{"8.8.8.8", "2606:4700:4700::1111"}, nil},
		"none":                   {nil, egress.ErrUnresolved},
		"loopback":               {[]string{"127.0.0.1"}, egress.ErrRefused},
		"one of several":         {[]string{"8.8.8.8", "10.0.0.1"}, egress.ErrRefused},
		"mapped":                 {[]string{"::ffff:169.254.169.254"}, egress.ErrRefused},
		"6to4":                   {[]string{"2002:a00:1::1"}, egress.ErrRefused},
		"NAT64 of a private one": {[]string{"64:ff9b::a00:1"}, egress.ErrRefused},
		"NAT64 of a public one":  {[]string{"64:ff9b::808:808"}, nil},
		"Teredo":                 {[]string{"2001:0:53aa:64c::1"}, egress.ErrRefused},
		"with a zone":            {[]string{"fe80::1%eth0"}, egress.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := egress.Guard{Resolver: &names{answers: [][]string{tc.addrs}}}
			_, err := g.Resolve(t.Context(), "hooks.example")
			require.ErrorIs(t, err, tc.want)
		})
	}
}

// server starts a server on this machine, and returns its address.
func server(t *testing.T, h http.HandlerFunc) (*httptest.Server, netip.AddrPort) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s, netip.MustParseAddrPort(s.Listener.Addr().String())
}

func get(t *testing.T, c *http.Client, url string) (*http.Response, error) {
	t.Helper()
	defer c.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	res, err := c.Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	return res, err
}

// A name can have a public address at registration and another one when it is called.
func TestClient_ChecksANameAtEveryCall(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	_, addr := server(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	n := &names{answers: [][]string{{"8.8.8.8"}, {"127.0.0.1"}}}
	g := egress.Guard{Resolver: n}
	_, err := g.Resolve(t.Context(), "hooks.example")
	require.NoError(t, err, "registered")
	_, err = get(t, g.Client(time.Second), "http://hooks.example:"+port(addr)+"/")
	require.ErrorIs(t, err, egress.ErrRefused)
	require.Equal(t, int32(2), n.asked.Load(), "resolved once for a call: there is no second answer to dial")
	require.False(t, reached.Load())
}

func port(a netip.AddrPort) string { return a.String()[strings.LastIndexByte(a.String(), ':')+1:] }

func TestClient_RejectsLiteralsToo(t *testing.T) {
	t.Parallel()
	_, addr := server(t, func(http.ResponseWriter, *http.Request) {})
	g := egress.NewGuard(egress.Policy{})
	for _, host := range []string{"127.0.0.1", "[::ffff:127.0.0.1]", "localhost"} {
		_, err := get(t, g.Client(time.Second), "http://"+host+":"+port(addr)+"/")
		require.ErrorIs(t, err, egress.ErrRefused, host)
	}
}

func TestClient_DialsTheCheckedAddressAndKeepsTheName(t *testing.T) {
	t.Parallel()
	host := make(chan string, 1)
	_, addr := server(t, func(_ http.ResponseWriter, r *http.Request) { host <- r.Host })
	p, err := egress.NewPolicy([]string{"127.0.0.1"})
	require.NoError(t, err)
	g := egress.Guard{Policy: p, Resolver: &names{answers: [][]string{{"127.0.0.1"}}}}
	res, err := get(t, g.Client(time.Second), "http://hooks.example:"+port(addr)+"/")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "hooks.example:"+port(addr), <-host)
}

func TestClient_FollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var inside atomic.Bool
	target, _ := server(t, func(http.ResponseWriter, *http.Request) { inside.Store(true) })
	s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.URL, http.StatusTemporaryRedirect)
	})
	g := egress.NewGuard(egress.Policy{AllowPrivate: true})
	res, err := get(t, g.Client(time.Second), s.URL)
	require.NoError(t, err)
	require.Equal(t, http.StatusTemporaryRedirect, res.StatusCode)
	require.False(t, inside.Load())
}

func TestClient_IgnoresTheProxyOfTheEnvironment(t *testing.T) {
	var proxied atomic.Bool
	proxy, _ := server(t, func(http.ResponseWriter, *http.Request) { proxied.Store(true) })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	g := egress.Guard{Policy: egress.Policy{AllowPrivate: true}, Resolver: &names{answers: [][]string{{}}}}
	_, err := get(t, g.Client(time.Second), "http://hooks.example/")
	require.ErrorIs(t, err, egress.ErrUnresolved)
	require.False(t, proxied.Load())
}

func TestClient_TimesOut(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	s, _ := server(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	defer close(hold)
	_, err := get(t, egress.NewGuard(egress.Policy{AllowPrivate: true}).Client(50*time.Millisecond), s.URL)
	netErr, ok := errors.AsType[net.Error](err)
	require.True(t, ok && netErr.Timeout(), "%v", err)
}
