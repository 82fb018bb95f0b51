package host

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"time"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/services/gateway"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/rest"
)

// newGateway creates the gateway and its servers; nothing is served before p.start. ready returns why
// the host cannot serve, warnings the problems of a serving host.
func (c *core) newGateway(ctx context.Context, p *publicServer, key Key, mode string, ready func() error, warnings func() []string) error {
	specs, err := parseAPIKeys(p.opts.APIKeys)
	if err != nil {
		return err
	}
	c.bytes = p.opts.Callers.pool(p.opts.MaxBodyBytes, auth.Sole(specs))
	secret, err := key.secret()
	if err != nil {
		return err
	}
	answers, err := key.interruptKeys(p.opts.InterruptKeys)
	if err != nil {
		return err
	}
	c.audit, err = c.openAudit(&p.opts.Audit, key.DataDir)
	if err != nil {
		return err
	}
	p.broken = c.brokenAudits()
	if p.webhooks, err = c.newWebhooks(p, secret, answers); err != nil {
		return err
	}
	rates, file, err := p.opts.rateLimits(c.log, os.LookupEnv)
	if err != nil { // the file was changed since Validate
		return exit.With(exit.Usage, err)
	}
	admitted := p.opts.Admission
	admitted.Bytes = c.bytes
	p.gateway, err = gateway.New(gateway.Config{
		Keys: specs, InterruptKeys: answers, TokenLifetime: p.opts.TokenLifetime, RunKey: secret,
		REST:  rest.Config{MaxBodyBytes: p.opts.MaxBodyBytes, Patience: p.opts.Callers.Patience},
		Rates: rates, RateFile: file, Admission: admitted, MaxStreams: p.opts.MaxStreams, GRPCStreams: p.opts.Callers.GRPCStreams,
		BaseURL: p.baseURL, GRPCEndpoint: p.grpcEndpoint, BasePath: p.opts.Browser.BasePath,
		StalledAfter: p.opts.Browser.StalledAfter, Console: p.consoleConfig(mode),
		TestSeams: p.opts.TestSeams, Reflection: p.opts.Reflection,
	}, gateway.Deps{
		Clients: gateway.Clients{
			Dispatcher: c.clients.Dispatcher,
			EventLog:   c.clients.EventLog,
			Acceptor:   c.clients.Acceptor,
			Redactor:   c.clients.Redactor,
		},
		Stores: gateway.Stores{
			Annotations: c.stores.Annotations,
			Desk:        c.stores.Desk,
			Notices:     c.stores.Notices,
			Records:     c.stores.Records,
			RateUsage:   c.stores.RateUsage,
			AuditKeys:   c.stores.AuditKeys,
		},
		Audit:    c.audit,
		Webhooks: p.webhooks,
		Spans:    c.spans,

		Propagator: c.telemetry.Propagator(),
		Ready:      ready,
		Warnings:   warnings,
		Clock:      time.Now,
		Logger:     c.log,
	})
	if err != nil {
		return err
	}
	c.group.Start(lifecycle.Part{Name: "audit of keys", Run: p.gateway.AuditKeys})
	c.group.Start(lifecycle.Part{Name: "rate limits", Run: p.gateway.LimitRates})
	return c.newServers(ctx, p)
}

// newServers creates the gRPC servers of the public API: one for the network, and one within the
// process for REST.
func (c *core) newServers(ctx context.Context, p *publicServer) error {
	var opts []grpc.ServerOption
	if p.certs != nil {
		creds, err := p.certs.Server()
		if err != nil {
			return err
		}
		opts = append(opts, grpc.Creds(creds))
	}
	p.grpc = p.gateway.Server(opts...)
	local := p.gateway.Local()
	c.group.Start(lifecycle.Part{Name: "gateway calls", Run: local.Serve})
	handler, err := p.gateway.Handler(ctx, local)
	if err != nil {
		return err
	}
	p.http = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
	}
	return nil
}
