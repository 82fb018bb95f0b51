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

// Resolver resolves names; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Guard makes calls that its policy allows.
type Guard struct {
	Policy   Policy
	Resolver Resolver
}

// NewGuard makes a guard with the system's resolver.
func NewGuard(p Policy) *Guard { return &Guard{Policy: p, Resolver: net.DefaultResolver} }

// ErrUnresolved means that a name has no address now.
var ErrUnresolved = errors.New("the host has no address")

// Resolve returns the addresses of a host if all of them are allowed. Errors: ErrRefused,
// ErrUnresolved.
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
	for _, a := range addrs { // reject all: the dialer might use the bad one
		if err := g.Policy.CheckAddr(a); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

// connectTimeout limits the connection to one address, so that the next one can be tried.
const connectTimeout = 2 * time.Second

// DialContext resolves a host, checks its addresses and connects to one of them.
func (g *Guard) DialContext(ctx context.Context, network, hostport string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	addrs, err := g.Resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: connectTimeout, Control: g.checkDial}
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

// checkDial checks the address that the socket is about to connect to.
func (g *Guard) checkDial(_, address string, _ syscall.RawConn) error {
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

// Client returns an HTTP client that uses the guard. It uses no proxy, follows no redirects
// and keeps no cookies.
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
