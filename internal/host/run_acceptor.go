package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/host/peer"
	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/acceptor/kinds"
)

// ofFiles marks what is wrong with files that the command line names as errors of it.
func ofFiles(err error) error {
	_, unread := errors.AsType[*fs.PathError](err)
	if _, refused := fault.As(err); refused || unread {
		return fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	return err
}

// AcceptorOptions are the flags of `waybill serve acceptor`.
type AcceptorOptions struct {
	ProcessOptions

	NATS                                               natsstore.Address
	DataDir                                            string
	Redactor                                           peer.Address
	Assets                                             AssetOptions
	Kinds, Packs, KindLint, Strictness                 string
	EnvelopesPerTurn, SchemaRounds, ClarificationRound int
	TestSeams                                          bool
}

func (o *AcceptorOptions) Validate() error {
	errs := []error{o.ProcessOptions.Validate(), o.Assets.validate(o.NATS.URL == ""), o.NATS.Validate()}
	if o.Assets.addr != "" && !peer.OnLoopback(o.Assets.addr) && o.TLSCert == "" && !o.insecure {
		errs = append(errs, fmt.Errorf("--assets-addr %s: URLs of assets are credentials, and would cross the network in clear; give --tls-cert and --tls-key, or --insecure", o.Assets.addr))
	}
	if o.Kinds != "" {
		if st, err := os.Stat(o.Kinds); err != nil || !st.IsDir() {
			errs = append(errs, fmt.Errorf("--kinds %q: give an existing directory", o.Kinds))
		}
	}
	return errors.Join(append(errs, o.config().Validate())...)
}

// config is the acceptor's; its own validation names what is unusable.
func (o *AcceptorOptions) config() acceptor.Config {
	cfg := acceptor.DefaultConfig()
	cfg.Lint, cfg.Strictness = kinds.Lint(o.KindLint), acceptor.Strictness(o.Strictness)
	cfg.Limits = acceptor.Limits{EnvelopesPerTurn: o.EnvelopesPerTurn, SchemaRounds: o.SchemaRounds, ClarificationRounds: o.ClarificationRound}
	cfg.MaxInlineBytes, cfg.MaxMediaBytes, cfg.TestSeams = o.Assets.maxInline, o.Assets.maxMedia, o.TestSeams
	if o.Kinds != "" {
		cfg.KindsDir = os.DirFS(o.Kinds)
	}
	return cfg
}

// RunAcceptor serves until ctx ends.
func RunAcceptor(ctx context.Context, o AcceptorOptions, log *slog.Logger) error {
	began, cfg := time.Now(), o.config()
	packs, err := packs.Load(o.Packs, packs.AcceptorOffers(), log)
	if err != nil {
		return err
	}
	cfg.Packs = packs
	// What the process says of itself never shows what it was given to keep.
	own, err := newRedactor(o.ProcessOptions, o.Assets.keys...)
	if err != nil {
		return err
	}
	log = obs.Clean(log, own.Clean)
	a, err := newProcess(o.ProcessOptions, log)
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.listenAssets(o.Assets.addr); err != nil {
		return err
	}
	runs, err := a.openRunLog(ctx, o)
	if err != nil {
		return err
	}
	scrub, err := a.redactor(o, own)
	if err != nil {
		return err
	}
	vault, err := o.Assets.vault(&runs.assets, o.DataDir)
	if err != nil {
		return err
	}
	deps := acceptor.Deps{Assets: vault, Log: runs, Redactor: scrub, Clock: time.Now, Logger: log}
	if cfg.TestSeams {
		if deps.Seam, err = a.seams(ctx, runs.open); err != nil {
			return fmt.Errorf("--test-seams: %w", err)
		}
	}
	spans, err := o.Tracing.exporter(ctx, "waybill-acceptor", log, a.later)
	if err != nil {
		return err
	}
	if spans != nil {
		deps.Spans = spans
	}
	s, err := acceptor.New(cfg, deps)
	if err != nil {
		return ofFiles(err)
	}
	s.Register(a.server)
	a.serveAssets(s)
	a.registry.MustRegister(s.Collectors()...)
	a.needs = []string{acceptorv1.Acceptor_ServiceDesc.ServiceName}
	return a.run(ctx, began, runs.check, func(ctx context.Context) error { return checkRedactor(ctx, scrub) })
}

// logDir is where the embedded NATS server keeps the run log.
func (o *AcceptorOptions) logDir() string { return filepath.Join(o.DataDir, "nats") }
