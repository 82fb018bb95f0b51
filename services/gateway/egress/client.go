package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// Resolver finds the addresses of a name; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Guard calls URLs as its policy allows.
type Guard struct {
	Policy   Policy
	Resolver Resolver
}

// NewGuard makes a guard that resolves as the machine does.
func NewGuard(p Policy) *Guard { return &Guard{Policy: p, Resolver: net.DefaultResolver} }

// ErrUnresolved says that a name has no address now.
var ErrUnresolved = errors.New("the host has no address")

// Resolve gives the addresses of a host, once every one of them is in order. Errors:
// ErrRefused, ErrUnresolved.
func (g *Guard) Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	addrs := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, a)
	} else {
		addrs, err = g.Resolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnresolved, err)
		}
	}
	if len(addrs) == 0 {
		return nil, ErrUnresolved
	}
	for _, a := range addrs { // one bad address is enough: the dialer might take it
		if err := g.Policy.CheckAddr(a); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

// connectTimeout bounds one try of one address, so that the next gets a chance.
const connectTimeout = 2 * time.Second

// DialContext resolves a host, judges its addresses and connects to one of them.
func (g *Guard) DialContext(ctx context.Context, network, hostport string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	addrs, err := g.Resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: connectTimeout, Control: g.judge}
	var last error
	for _, a := range addrs {
		conn, err := d.DialContext(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
		if err == nil {
			return conn, nil
		}
		last = err
		if ctx.Err() != nil || errors.Is(err, ErrRefused) {
			break
		}
	}
	return nil, last
}

// judge sees the address that the socket is about to connect to.
func (g *Guard) judge(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse("the address cannot be read")
	}
	return g.Policy.CheckAddr(to.Addr())
}

// Bounds of a call.
const (
	maxHeaderBytes = 64 << 10
	idleTimeout    = 30 * time.Second
	maxIdle        = 256
	maxIdlePerHost = 8
)

// Client is an HTTP client behind the guard: no proxy of the environment, no redirect
// followed, no cookie kept.
func (g *Guard) Client(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			Proxy: nil, DialContext: g.DialContext, ForceAttemptHTTP2: true, DisableCompression: true,
			TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout, ExpectContinueTimeout: timeout,
			MaxResponseHeaderBytes: maxHeaderBytes, IdleConnTimeout: idleTimeout,
			MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdlePerHost, MaxConnsPerHost: 0,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
