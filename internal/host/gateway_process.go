package host

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/host/peer"
	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/mtls"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/services/gateway/session"
)

// GatewayProcess are the settings of a separate gateway process.
type GatewayProcess struct {
	Public    Public
	TLS       TLS
	Secrets   Secrets
	Telemetry Telemetry
	ReadyFile string
	NATS      natsstore.Address
	Peers     peer.Options
	Key       Key
	Cold      ColdStore
}

// GatewayPeers returns the services that a gateway calls.
func GatewayPeers() []string {
	return []string{peer.Redactor, peer.Acceptor, peer.Dispatcher, peer.EventLog}
}

// Validate returns all errors, joined.
func (o *GatewayProcess) Validate() error {
	return errors.Join(o.checkValues(), validateTelemetry(o.Telemetry, os.Environ()), validateSharedNATS(&o.NATS), o.Public.Validate(), o.Key.Validate(), o.Secrets.Validate(), o.Cold.Validate())
}

// Check returns all errors in the values, joined. It reads neither files nor variables.
func (o *GatewayProcess) Check() error {
	return errors.Join(o.checkValues(), validateTelemetry(o.Telemetry, nil), o.NATS.Check(), o.Public.Check(), o.Cold.Check())
}

func (o *GatewayProcess) checkValues() error {
	errs := []error{o.TLS.validate(), o.Peers.Validate(GatewayPeers()...)}
	if len(o.Public.APIKeys) == 0 {
		errs = append(errs, errors.New("--api-key is required: without a key no request is accepted; use KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:*"))
	}
	if o.Public.Audit.On && o.Public.Audit.KeyFile == "" {
		errs = append(errs, errors.New("--audit-key-file: all gateways sign the audit log with one key; give its file, or --audit=false"))
	}
	return errors.Join(errs...)
}

// gatewayProcess is a gateway whose other services are in other processes.
type gatewayProcess struct {
	core

	opts   *GatewayProcess
	began  time.Time
	public *publicServer
	peers  *peer.Watch
	// notReady wraps the reason why the gateway is not ready.
	notReady, lacking probe.Serving
}

// RunGateway serves until ctx ends.
func RunGateway(ctx context.Context, o GatewayProcess, log *slog.Logger) error {
	began := time.Now()
	known := Credentials{APIKeys: o.Public.APIKeys, InterruptKeys: o.Public.InterruptKeys, Models: &models.Options{}}
	out, err := openOutputs(ctx, "waybill-gateway", o.Telemetry, o.Secrets, known, log)
	if err != nil {
		return err
	}
	g := &gatewayProcess{opts: &o, began: began, public: &publicServer{opts: &o.Public}}
	g.use(out)
	defer g.close()
	defer func() { _ = g.group.Stop() }() // already stopped, unless the gateway could not be built
	if err := g.build(ctx); err != nil {
		return ignoreStop(ctx, err)
	}
	g.public.start(&g.core, g.lacking.Gauge())
	g.group.Start(lifecycle.Part{Name: "health", Run: probe.Readiness{
		Serving: &g.notReady, Log: g.log,
		Check:   g.check,
		Changed: func(err error) { g.public.gateway.SetServing(err == nil) },
		First:   func() error { return g.public.addresses(time.Since(g.began)).Write(o.ReadyFile) },
	}.Watch})
	return g.group.Wait(ctx)
}

// build creates the gateway as soon as NATS answers; until then its address answers probes only.
func (g *gatewayProcess) build(ctx context.Context) (err error) {
	limitMemory()
	g.notReady.Set(probe.ErrStarting)
	g.lacking.Set(probe.ErrStarting)
	if err := g.public.listen(g.later); err != nil {
		return err
	}
	if files := g.opts.TLS; files.Cert != "" {
		if g.public.certs, err = mtls.Load(mtls.Files{Cert: files.Cert, Key: files.Key}, mtls.Reread); err != nil {
			return exit.Usagef("--tls-cert, --tls-key: %w", err)
		}
		g.later(g.public.certs.Close)
	}
	if g.clients, g.peers, err = peer.Connect(&g.opts.Peers, g.log, g.later); err != nil {
		return err
	}
	stop := g.public.answerProbes(g.reason)
	defer stop()
	needs := withSeams(g.opts.Public.TestSeams, natsstore.ForGateway)
	if err := g.openStores(ctx, &g.opts.NATS, "gateway", jetstream.DefaultConfig(), g.notReady.Set, needs...); err != nil {
		return err
	}
	if err := g.readShared(ctx, &g.opts.Cold); err != nil {
		return err
	}
	return g.newGateway(ctx, g.public, g.opts.Key, session.Production, g.reason, g.auditWarnings)
}

// reason returns why the gateway is not ready, as shown to callers; nil if it is ready.
func (g *gatewayProcess) reason() error { return probe.Public(g.notReady.Reason()) }

// check returns why the gateway is not ready; nil if it is. Once all other services have served, a
// missing one does not make the gateway unready: requests that need it get 503, as from any other
// gateway. Only the gateway's own writes, such as idempotency records, must be safe.
func (g *gatewayProcess) check(ctx context.Context) error {
	own, others := probe.Both(ctx, g.stores.Connected, g.peers.Check)
	g.lacking.Set(errors.Join(own, others))
	return errors.Join(own, g.peers.NeverServed())
}
