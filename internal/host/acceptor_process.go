package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/host/peer"
	"waybill.dev/waybill/internal/obs/tracing"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/redactor"
)

// AcceptorProcess are the settings of a separate acceptor process, for external runs.
type AcceptorProcess struct {
	Process
	// NATS has the run log; without a URL it is embedded, in DataDir.
	NATS     natsstore.Address
	DataDir  string
	Recovery Recovery
	// Redactor is the address of the redactor; empty runs it in this process.
	Redactor  peer.Address
	Envelopes Envelopes
	Packs     string
	Assets    AssetServing
	Cold      ColdStore
}

// DefaultAcceptorProcess are the settings without flags.
func DefaultAcceptorProcess(grpcAddr string) AcceptorProcess {
	return AcceptorProcess{
		Process:   DefaultProcess(grpcAddr),
		NATS:      natsstore.DefaultAddress(),
		Envelopes: DefaultEnvelopes(),
		Assets:    defaultAssetServing(),
		Cold:      DefaultColdStore(),
	}
}

// Validate returns all errors, joined.
func (o *AcceptorProcess) Validate() error {
	return errors.Join(
		o.Process.Validate(), o.NATS.Validate(), o.checkValues(),
		o.Assets.validateKey(o.NATS.URL == ""), o.Envelopes.validateKinds(), o.Cold.Validate(),
	)
}

// Check returns all errors in the values, joined. It reads neither files nor variables.
func (o *AcceptorProcess) Check() error {
	return errors.Join(o.Process.Check(), o.NATS.Check(), o.checkValues(), o.Cold.Check())
}

func (o *AcceptorProcess) checkValues() error {
	errs := []error{o.Assets.check(o.Envelopes.MaxMediaBytes), o.Envelopes.Check(), o.Recovery.validate()}
	if addr := o.Assets.Addr; addr != "" && !peer.OnLoopback(addr) && o.TLS.Cert == "" && !o.Insecure {
		errs = append(errs, fmt.Errorf("--assets-addr %s: URLs of assets are credentials, and would cross the network in clear; give --tls-cert and --tls-key, or --insecure", addr))
	}
	return errors.Join(errs...)
}

// config is the acceptor's config, which validates itself.
func (o *AcceptorProcess) config() acceptor.Config {
	cfg := o.Envelopes.config()
	if o.Envelopes.Kinds != "" {
		cfg.KindsDir = os.DirFS(o.Envelopes.Kinds)
	}
	return cfg
}

// RunAcceptor serves until ctx ends.
func RunAcceptor(ctx context.Context, o AcceptorProcess, log *slog.Logger) error {
	cfg := o.config()
	var err error
	offers := packs.AcceptorOffers()
	if !o.Envelopes.AIEnvelope {
		offers = packs.WithoutEnvelopes(offers)
	}
	if cfg.Packs, err = packs.Load(o.Packs, offers, log); err != nil {
		return err
	}
	out, err := openOutputs(ctx, "waybill-acceptor", o.Telemetry, o.Secrets, Credentials{AssetKeys: o.Assets.Keys}, log)
	if err != nil {
		return err
	}
	p, err := newProcess(&o.Process, out)
	if err != nil {
		return err
	}
	defer p.close()
	assets, err := p.listenAssets(o.Assets.Addr)
	if err != nil {
		return err
	}
	store, err := p.openShared(ctx, &o.Cold)
	if err != nil {
		return err
	}
	runs, err := p.openRunLog(ctx, &o, store)
	if err != nil {
		return err
	}
	deps := acceptor.Deps{Log: runs, Clock: time.Now, Logger: p.log}
	if deps.Redactor, err = p.connectRedactor(o.Redactor, out.redactor); err != nil {
		return err
	}
	if deps.Assets, err = o.Assets.vault(&runs.assets, o.DataDir, p.log); err != nil {
		return err
	}
	if cfg.TestSeams {
		if deps.Seam, err = p.openSeams(ctx, runs.opener); err != nil {
			return fmt.Errorf("--test-seams: %w", err)
		}
	}
	if p.spans != nil {
		deps.Spans = p.spans
	}
	s, err := acceptor.New(cfg, deps)
	if err != nil {
		return usageOfFiles(err)
	}
	s.Register(p.server)
	p.serveAssets(s, assets, &o)
	p.registry.MustRegister(s.Collectors()...)
	p.needs = []string{acceptorv1.Acceptor_ServiceDesc.ServiceName}
	return p.serve(ctx, runs.check, func(ctx context.Context) error { return checkRedactor(ctx, deps.Redactor) })
}

// connectRedactor creates the client of another redactor process. Without an address it serves own
// in this process.
func (p *process) connectRedactor(at peer.Address, own *redactor.Service) (redactorv1.RedactorClient, error) {
	if at.Addr == "" {
		if at != (peer.Address{}) {
			return nil, exit.Usagef("--redactor-ca, --redactor-token-file and --redactor-plaintext belong to --redactor")
		}
		own.Register(p.server)
		return redactorv1.NewRedactorClient(p.serveLocally("redactor", own.Register)), nil
	}
	conn, err := at.Dial(p.later, append(peer.ToRedactors(), tracing.Forward()...)...)
	if err != nil {
		return nil, exit.Usagef("--redactor: %w", err)
	}
	p.later(func() { _ = conn.Close() })
	return redactorv1.NewRedactorClient(conn), nil
}

// checkRedactor sends the redactor an empty request.
func checkRedactor(ctx context.Context, r redactorv1.RedactorClient) error {
	if _, err := r.Redact(ctx, &redactorv1.RedactRequest{Scope: &redactorv1.Scope{Tenant: "health"}}); err != nil {
		return fmt.Errorf("redactor: %w", err)
	}
	return nil
}
