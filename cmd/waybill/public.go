package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/services/gateway"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/rest"
)

func (h *host) buildGateway(ctx context.Context, specs []auth.Spec) error {
	key, err := h.opts.key()
	if err != nil {
		return err
	}
	answers, err := h.interruptKeys()
	if err != nil {
		return err
	}
	log, err := h.openAudit()
	if err != nil {
		return err
	}
	hooks, err := h.buildWebhooks(key, answers)
	if err != nil {
		return err
	}
	h.gateway, err = gateway.New(gateway.Config{
		Keys: specs, REST: rest.Config{MaxBodyBytes: h.opts.maxBody}, Admission: h.opts.admission.Config, MaxStreams: 10_000, TestSeams: h.opts.testSeams, Reflection: h.opts.reflection,
		BaseURL:      h.baseURL,
		GRPCEndpoint: h.grpcEndpoint, RunKey: key, InterruptKeys: answers, BasePath: h.opts.browser.basePath, StalledAfter: h.opts.browser.stalledAfter, Console: h.consoleConfig(),
	}, gateway.Deps{
		Dispatcher: h.clients.dispatcher, EventLog: h.clients.events, Acceptor: h.clients.acceptor, Redactor: h.clients.redactor,
		Annotations: h.stores.annotations, Notices: h.stores.notices, Audit: log, AuditKeys: h.stores.auditKeys,
		Records: h.stores.records, Webhooks: hooks, Spans: h.spans, Ready: h.ready, Clock: time.Now, Logger: h.log,
	})
	if err != nil {
		return err
	}
	h.group.Start(lifecycle.Part{Name: "audit of keys", Run: h.gateway.AuditKeys})
	return h.buildPublic(ctx)
}

// grpcEndpoint is where clients reach the gRPC API.
func (h *host) grpcEndpoint() string {
	scheme := "grpc://"
	if h.certs != nil {
		scheme = "grpcs://"
	}
	if h.opts.publicGRPC != "" {
		return scheme + h.opts.publicGRPC
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

// buildPublic serves the public API twice: on the network, and within the
// process for the REST side.
func (h *host) buildPublic(ctx context.Context) error {
	var opts []grpc.ServerOption
	if h.certs != nil {
		creds, err := h.certs.Server()
		if err != nil {
			return err
		}
		opts = append(opts, grpc.Creds(creds))
	}
	h.public = h.gateway.Server(opts...)
	local := h.gateway.Local()
	h.group.Start(lifecycle.Part{Name: "gateway calls", Run: local.Serve})
	handler, err := h.gateway.Handler(ctx, local)
	if err != nil {
		return err
	}
	h.http = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelDebug),
	}
	return nil
}
