package host

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/services/gateway"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/rest"
)

func (h *Host) buildGateway(ctx context.Context, specs []auth.Spec) error {
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
		Keys: specs, REST: rest.Config{MaxBodyBytes: h.opts.maxBody}, Admission: h.opts.admission.Config, MaxStreams: 10_000, TestSeams: h.opts.TestSeams, Reflection: h.opts.Reflection,
		BaseURL:      h.baseURL,
		GRPCEndpoint: h.grpcEndpoint, RunKey: key, InterruptKeys: answers, BasePath: h.opts.Console.basePath, StalledAfter: h.opts.Console.stalledAfter, Console: h.consoleConfig(),
	}, gateway.Deps{
		Dispatcher: h.Clients.Dispatcher, EventLog: h.Clients.events, Acceptor: h.Clients.acceptor, Redactor: h.Clients.redactor,
		Annotations: h.stores.Annotations, Notices: h.stores.Notices, Audit: log, AuditKeys: h.stores.AuditKeys,
		Records: h.stores.Records, Webhooks: hooks, Spans: h.spans, Ready: h.ready, Clock: time.Now, Logger: h.Log,
	})
	if err != nil {
		return err
	}
	h.Group.Start(lifecycle.Part{Name: "audit of keys", Run: h.gateway.AuditKeys})
	return h.buildPublic(ctx)
}

// buildPublic serves the public API twice: on the network, and within the
// process for the REST side.
func (h *Host) buildPublic(ctx context.Context) error {
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
	h.Group.Start(lifecycle.Part{Name: "gateway calls", Run: local.Serve})
	handler, err := h.gateway.Handler(ctx, local)
	if err != nil {
		return err
	}
	h.http = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(h.Log.Handler(), slog.LevelDebug),
	}
	return nil
}
