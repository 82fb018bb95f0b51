package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/mtls"
	"waybill.dev/waybill/services/gateway/auth"
)

// GatewayOptions are the flags of `waybill serve gateway`.
type GatewayOptions struct {
	ProcessOptions // of which the address is not used: a gateway's is public
	Spread         Peers
	Host           Options
}

// GatewayPeers are the services that a gateway calls.
var GatewayPeers = []string{nameRedactor, nameAcceptor, nameDispatcher, nameEventLog}

func (o *GatewayOptions) Validate() error {
	var errs []error
	if (o.TLSCert == "") != (o.TLSKey == "") {
		errs = append(errs, errors.New("--tls-cert and --tls-key belong together; give both or neither"))
	}
	if err := o.Tracing.config("").Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--%w", err))
	}
	errs = append(errs, o.Spread.Validate(GatewayPeers...), o.Host.validatePublic(), o.Host.CheckKeyFile())
	if len(o.Host.APIKeys) == 0 {
		errs = append(errs, errors.New("--api-key: nobody could call; give KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:*"))
	}
	if o.Host.audit.on && o.Host.audit.keyFile == "" {
		errs = append(errs, errors.New("--audit-key-file: all gateways sign the audit log with one key; give its file, or --audit=false"))
	}
	return errors.Join(errs...)
}

// RunGateway serves until ctx ends.
func RunGateway(ctx context.Context, o GatewayOptions, log *slog.Logger) error {
	began := time.Now()
	h := &Host{Log: log, opts: o.Host, Group: &lifecycle.Group{}}
	h.opts.SecretsFile, h.opts.RedactShapes = o.secretsFile, o.redactShapes
	defer h.Close()
	defer func() { _ = h.Group.Stop() }() // nothing, unless it could not be built
	specs, err := parseKeys(h.opts.APIKeys)
	if err != nil {
		return err
	}
	if err := h.openRedactor(specs); err != nil {
		return err
	}
	if err := h.listen(); err != nil {
		return err
	}
	h.state.Set(probe.ErrStarting)
	h.lacking.Set(probe.ErrStarting)
	if o.TLSCert != "" {
		if h.certs, err = mtls.Load(mtls.Files{Cert: o.TLSCert, Key: o.TLSKey}, mtls.Reread); err != nil {
			return fmt.Errorf("%w: --tls-cert, --tls-key: %w", exit.ErrUsage, err)
		}
		h.later(h.certs.Close)
	}
	if h.spans, err = o.Tracing.exporter(ctx, "waybill-gateway", h.Log, h.later); err != nil {
		return err
	}
	if err := h.reach(&o.Spread); err != nil {
		return err
	}
	if err := h.buildEarly(ctx, o, specs); err != nil {
		return orStopped(ctx, err)
	}
	h.Start()
	h.Group.Start(lifecycle.Part{Name: "health", Run: probe.Readiness{
		Serving: &h.state, Log: h.Log,
		Check:   h.takes,
		Changed: func(err error) { h.gateway.SetServing(err == nil) },
		First:   func() error { return h.ReadyInfo(time.Since(began)).Write(o.readyFile) },
	}.Watch})
	return h.Group.Wait(ctx)
}

// takes says why this gateway may get no requests; nil: it may. Once all other services have been
// there, the lack of one is no reason: what needs it is answered with 503, as by any other gateway,
// and the rest is served. Only what it writes itself, such as idempotency records, has to be safe.
func (h *Host) takes(ctx context.Context) error {
	own, others := probe.Both(ctx, h.stores.Connected, h.checkPeers)
	h.lacking.Set(errors.Join(own, others))
	return errors.Join(own, h.unmet())
}

// buildEarly builds the gateway, as soon as NATS is there; until then its address
// answers probes.
func (h *Host) buildEarly(ctx context.Context, o GatewayOptions, specs []auth.Spec) error {
	stop := h.answerProbes()
	defer stop()
	if err := h.openSpread(ctx, &o.Spread, "gateway", natsstore.ForGateway); err != nil {
		return err
	}
	return h.buildGateway(ctx, specs)
}
