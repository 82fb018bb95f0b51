package host

import (
	"net"
	"strconv"
	"strings"
)

// baseURL is where clients reach the host. A public URL with a path has the base path
// already.
func (h *Host) baseURL() string {
	if h.opts.PublicURL == "" {
		return h.localURL()
	}
	public := strings.TrimSuffix(h.opts.PublicURL, "/")
	if base := h.opts.Console.basePath; !strings.HasSuffix(public, base) {
		return public + base
	}
	return public
}

// localURL is where this process serves.
func (h *Host) localURL() string {
	return h.scheme() + reachable(h.httpAddr.Addr()) + h.opts.Console.basePath
}

func (h *Host) scheme() string {
	if h.certs != nil {
		return "https://"
	}
	return "http://"
}

// grpcEndpoint is where clients reach the gRPC API.
func (h *Host) grpcEndpoint() string {
	scheme := "grpc://"
	if h.certs != nil {
		scheme = "grpcs://"
	}
	if h.opts.PublicGRPC != "" {
		return scheme + h.opts.PublicGRPC
	}
	return scheme + reachable(h.grpcAddr.Addr())
}

// reachable is an address that a client on this machine can use; the one a
// listener tells may be "every address".
func reachable(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok || !t.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("localhost", strconv.Itoa(t.Port))
}
