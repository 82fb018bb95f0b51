package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/mtls"
	"waybill.dev/waybill/services/gateway"
	"waybill.dev/waybill/services/gateway/webhook"
)

// publicServer serves the public API: REST and event streams over HTTP, and gRPC.
type publicServer struct {
	opts *Public
	// metrics is nil unless it is served.
	httpAddr, grpcAddr, metrics net.Listener
	certs                       *mtls.Certs // nil means no TLS
	gateway                     *gateway.Service
	webhooks                    *webhook.Service
	grpc                        *grpc.Server
	http                        *http.Server
	broken                      prometheus.Collector // of audit logs
}

// listen listens on the addresses before anything else is opened, so that a busy port fails first.
func (p *publicServer) listen(later func(func())) error {
	for _, l := range []struct {
		flag, addr string
		into       *net.Listener
	}{
		{"http-addr", p.opts.HTTPAddr, &p.httpAddr},
		{"grpc-addr", p.opts.GRPCAddr, &p.grpcAddr},
		{"metrics-addr", p.opts.MetricsAddr, &p.metrics},
	} {
		if l.addr == "" {
			continue
		}
		lis, err := net.Listen("tcp", l.addr)
		if err != nil {
			return fmt.Errorf("--%s %s: %w; give another address, or port 0 for a free one", l.flag, l.addr, err)
		}
		*l.into = lis
		later(func() { _ = lis.Close() })
	}
	return nil
}

// start accepts requests. It is called last, so that the servers stop first.
func (p *publicServer) start(c *core, collectors ...prometheus.Collector) {
	group := &c.group
	group.Start(grpcPart("public grpc", p.grpc, p.grpcAddr, func() {}))
	group.Start(lifecycle.Part{
		Name: "http",
		Run: func(context.Context) error {
			lis := p.httpAddr
			if p.certs != nil {
				lis = tls.NewListener(lis, p.certs.Config())
			}
			if err := p.http.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		},
		Stop: func(ctx context.Context) {
			p.gateway.Drain() // streams end, their readers resume
			if err := p.http.Shutdown(ctx); err != nil {
				_ = p.http.Close() // requests that did not end in time are cut
			}
		},
	})
	reg := probe.NewRegistry()
	reg.MustRegister(collectors...)
	reg.MustRegister(p.gateway.Collectors()...)
	reg.MustRegister(p.webhooks.Collectors()...)
	reg.MustRegister(p.broken)
	c.exportMetrics(reg)
	if p.metrics == nil {
		return
	}
	group.Start(probe.ServeOperator(p.metrics, probe.OperatorMux(reg)))
}

// grpcPart serves gRPC until the group stops, then waits for running calls. stopping is called first.
func grpcPart(name string, srv *grpc.Server, lis net.Listener, stopping func()) lifecycle.Part {
	return lifecycle.Part{
		Name: name,
		Run: func(ctx context.Context) error {
			err := srv.Serve(lis)
			if ctx.Err() != nil {
				return nil
			}
			return err
		},
		Stop: func(ctx context.Context) {
			stopping()
			stopped := make(chan struct{})
			go func() { srv.GracefulStop(); close(stopped) }()
			select {
			case <-stopped:
			case <-ctx.Done():
				srv.Stop()
				<-stopped
			}
		},
	}
}

// addresses returns the server's addresses for clients on this machine.
func (p *publicServer) addresses(took time.Duration) Addresses {
	a := Addresses{
		HTTP: p.localURL(), GRPC: reachable(p.grpcAddr.Addr()), Metrics: probe.MetricsURL(p.metrics),
		PID: os.Getpid(), ReadyMs: took.Milliseconds(),
	}
	if p.opts.Browser.Console {
		a.Console = a.HTTP + consolePath
	}
	return a
}

// baseURL is the URL of the REST API for clients. A public URL with a path already has the base path.
func (p *publicServer) baseURL() string {
	if p.opts.URL == "" {
		return p.localURL()
	}
	public := strings.TrimSuffix(p.opts.URL, "/")
	if base := p.opts.Browser.BasePath; !strings.HasSuffix(public, base) {
		return public + base
	}
	return public
}

// localURL is the URL of the REST API on this machine.
func (p *publicServer) localURL() string {
	scheme := "http://"
	if p.certs != nil {
		scheme = "https://"
	}
	return scheme + reachable(p.httpAddr.Addr()) + p.opts.Browser.BasePath
}

// grpcEndpoint is the address of the gRPC API for clients.
func (p *publicServer) grpcEndpoint() string {
	scheme := "grpc://"
	if p.certs != nil {
		scheme = "grpcs://"
	}
	if p.opts.GRPC != "" {
		return scheme + p.opts.GRPC
	}
	return scheme + reachable(p.grpcAddr.Addr())
}

// reachable returns an address for clients on this machine, also if the listener has the wildcard
// address.
func reachable(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok || !t.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("localhost", strconv.Itoa(t.Port))
}
