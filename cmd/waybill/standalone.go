package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/config"
	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/internal/token"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/acceptor/kinds"
	"waybill.dev/waybill/services/redactor"
	"waybill.dev/waybill/services/redactor/redact"
)

// serveCommand runs one service in a process of its own.
func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run one service in a process of its own",
		Long: `Runs one service in a process of its own, for those who want no more of Waybill
than that, or put the services on several machines. All five together, each as often
as needed, on one NATS are a whole host.`,
	}
	c.AddCommand(serveGatewayCommand(), serveAcceptorCommand(), serveDispatcherCommand(), serveEventLogCommand(), serveRedactorCommand())
	return c
}

// commonOptions are those of every service that runs alone.
type commonOptions struct {
	grpcAddr            string
	metricsAddr         string
	tokenFile           string
	tlsCert, tlsKey     string
	clientCA            string
	insecure            bool
	redactShapes        bool
	secretsFile         string
	readyFile           string
	logLevel, logFormat string
	configFile          string
	tracing             tracingOptions
}

func (o *commonOptions) flags(f *pflag.FlagSet, addr string) {
	f.StringVar(&o.grpcAddr, "grpc-addr", addr, "address of the gRPC API; port 0 takes a free one")
	f.StringVar(&o.metricsAddr, "metrics-addr", "", "address of the Prometheus metrics, of /healthz and /readyz, and of profiles; no token guards it; empty: nowhere")
	f.StringVar(&o.tokenFile, "token-file", "", "file with the bearer token that callers must send; empty: none, on loopback only")
	o.tlsFlags(f)
	f.StringVar(&o.clientCA, "tls-client-ca", "", "PEM certificates that vouch for callers: only those that show a certificate of theirs are heard; empty: --token-file decides")
	f.BoolVar(&o.insecure, "insecure", false, "serve other machines without a token or without TLS")
	o.tracing.flags(f)
	o.processFlags(f)
}

func (o *commonOptions) tlsFlags(f *pflag.FlagSet) {
	f.StringVar(&o.tlsCert, "tls-cert", "", "PEM certificate chain to serve with; empty: no TLS")
	f.StringVar(&o.tlsKey, "tls-key", "", "PEM key of --tls-cert")
}

// processFlags are those of any process.
func (o *commonOptions) processFlags(f *pflag.FlagSet) {
	f.StringVar(&o.secretsFile, "secrets-file", "", "YAML file of secret ids and values that must never show, for everybody")
	f.BoolVar(&o.redactShapes, "redact-shapes", true, "also take out text that looks like a secret, though nobody has registered it")
	f.StringVar(&o.readyFile, "ready-file", "", "file to write the addresses to, as JSON, once the service is ready")
	f.StringVar(&o.logLevel, "log-level", "warn", "debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", obs.FormatText, "text or json")
	f.StringVar(&o.configFile, "config", "", "YAML file of flag names and values")
}

// validate returns all that is wrong with the flags, joined. Whoever reaches the
// service may record envelopes and register secrets, so other machines need a
// token, and TLS to keep it.
func (o *commonOptions) validate() error {
	var errs []error
	host, _, err := net.SplitHostPort(o.grpcAddr)
	if err != nil {
		errs = append(errs, fmt.Errorf("--grpc-addr %q: want host:port, such as 127.0.0.1:9091", o.grpcAddr))
	}
	if err := o.tracing.config("").Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--%w", err))
	}
	if (o.tlsCert == "") != (o.tlsKey == "") {
		errs = append(errs, errors.New("--tls-cert and --tls-key belong together; give both or neither"))
	}
	if o.clientCA != "" && o.tlsCert == "" {
		errs = append(errs, errors.New("--tls-client-ca: callers show certificates within TLS; give --tls-cert and --tls-key"))
	}
	if ip := net.ParseIP(host); err == nil && host != "localhost" && (ip == nil || !ip.IsLoopback()) && !o.insecure {
		if o.tokenFile == "" && o.clientCA == "" {
			errs = append(errs, fmt.Errorf("--grpc-addr %s: other machines reach it; give --token-file or --tls-client-ca, or --insecure if something else guards it", o.grpcAddr))
		}
		if o.tlsCert == "" {
			errs = append(errs, fmt.Errorf("--grpc-addr %s: the token would cross the network in clear; give --tls-cert and --tls-key, or --insecure", o.grpcAddr))
		}
	}
	return errors.Join(errs...)
}

// acceptorOptions are the flags of `waybill serve acceptor`.
type acceptorOptions struct {
	commonOptions

	nats                                               natsAddress
	dataDir                                            string
	redactor                                           peer
	assets                                             assetOptions
	kinds, packs, kindLint, strictness                 string
	envelopesPerTurn, schemaRounds, clarificationRound int
	testSeams                                          bool
}

func serveAcceptorCommand() *cobra.Command {
	var o acceptorOptions
	c := &cobra.Command{
		Use:   "acceptor",
		Short: "Take envelopes in for an agent runtime of your own",
		Long: `Serves waybill.acceptor.v1.Acceptor over gRPC, with reflection and health checks:
open a run, hand in envelopes, close the run. The run log is kept in the NATS
JetStream of --nats, or in an embedded one below --data-dir for a first try. Secrets
are taken out by the redactor at --redactor, or by one within this process, which
then serves waybill.redactor.v1.Redactor beside it.`,
		Example: `  waybill serve acceptor --data-dir .acceptor
  waybill serve acceptor --nats nats://nats:4222 --redactor redactor:9092 --kinds ./kinds`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := prepared(cmd, &o.commonOptions, o.validate)
			if err != nil {
				return err
			}
			if o.nats.url == "" {
				makeRoom()
			}
			return runAcceptor(cmd.Context(), o, log)
		},
	}
	f, def := c.Flags(), acceptor.DefaultConfig()
	o.flags(f, "127.0.0.1:9091")
	o.nats.flags(f, "empty: an embedded one")
	f.StringVar(&o.dataDir, "data-dir", ".acceptor", "directory of the embedded NATS server's files; used without --nats")
	f.StringVar(&o.redactor.addr, "redactor", "", "HOST:PORT of a redactor service; empty: one within this process")
	f.StringVar(&o.redactor.tokenFile, "redactor-token-file", "", "file with the bearer token for --redactor")
	f.StringVar(&o.redactor.ca, "redactor-ca", "", "PEM certificates that vouch for --redactor; empty: those that the system trusts, and no TLS on loopback")
	f.StringVar(&o.redactor.cert, "redactor-cert", "", "PEM certificate chain to show to --redactor; empty: none")
	f.StringVar(&o.redactor.key, "redactor-key", "", "PEM key of --redactor-cert")
	f.BoolVar(&o.redactor.plaintext, "redactor-plaintext", false, "send secrets and the token to --redactor in clear, because something else guards the way")
	o.assets.flags(f)
	f.StringVar(&o.kinds, "kinds", "", "directory of further envelope kinds, one KIND.schema.json a file")
	f.StringVar(&o.packs, "packs", "", "directory of packs, one folder with a pack.json each; their envelope kinds are served")
	f.StringVar(&o.kindLint, "kind-lint", string(def.Lint), "strict, warn or off: what becomes of a kind whose schema models cannot be held to")
	f.StringVar(&o.strictness, "envelope-strictness", string(def.Strictness), "warn or strict: whether a schemaVersion below the advertised one is refused")
	f.BoolVar(&o.testSeams, "test-seams", false, "serve the protocol's test seams; never in production")
	f.IntVar(&o.envelopesPerTurn, "limit-envelopes-per-turn", def.Limits.EnvelopesPerTurn, "envelopes that one turn may hold")
	f.IntVar(&o.schemaRounds, "limit-schema-rounds", def.Limits.SchemaRounds, "rounds about schemas that one emission may take")
	f.IntVar(&o.clarificationRound, "limit-clarification-rounds", def.Limits.ClarificationRounds, "clarification requests that one node may make")
	return c
}

func (o *acceptorOptions) validate() error {
	errs := []error{o.commonOptions.validate(), o.assets.validate(o.nats.url == ""), o.nats.validate()}
	if o.assets.addr != "" && !onLoopback(o.assets.addr) && o.tlsCert == "" && !o.insecure {
		errs = append(errs, fmt.Errorf("--assets-addr %s: URLs of assets are credentials, and would cross the network in clear; give --tls-cert and --tls-key, or --insecure", o.assets.addr))
	}
	if o.kinds != "" {
		if st, err := os.Stat(o.kinds); err != nil || !st.IsDir() {
			errs = append(errs, fmt.Errorf("--kinds %q: give an existing directory", o.kinds))
		}
	}
	return errors.Join(append(errs, o.config().Validate())...)
}

// config is the acceptor's; its own validation names what is unusable.
func (o *acceptorOptions) config() acceptor.Config {
	cfg := acceptor.DefaultConfig()
	cfg.Lint, cfg.Strictness = kinds.Lint(o.kindLint), acceptor.Strictness(o.strictness)
	cfg.Limits = acceptor.Limits{EnvelopesPerTurn: o.envelopesPerTurn, SchemaRounds: o.schemaRounds, ClarificationRounds: o.clarificationRound}
	cfg.MaxInlineBytes, cfg.MaxMediaBytes, cfg.TestSeams = o.assets.maxInline, o.assets.maxMedia, o.testSeams
	if o.kinds != "" {
		cfg.KindsDir = os.DirFS(o.kinds)
	}
	return cfg
}

// redactorOptions are the flags of `waybill serve redactor`.
type redactorOptions struct {
	commonOptions
	host devOptions
}

func serveRedactorCommand() *cobra.Command {
	var o redactorOptions
	c := &cobra.Command{
		Use:   "redactor",
		Short: "Take secrets out of documents, texts and streams",
		Long: `Serves waybill.redactor.v1.Redactor over gRPC, with reflection and health checks.
Secrets live in its memory only, and die with it: callers register those of their
runs, and register them again when it was restarted. Of several, each knows the runs
of some tenants: whoever calls them finds out which. What a host's other services are
given of secrets is given to its redactors as well, with the same flags and variables:
only so it never shows.`,
		Example: `  waybill serve redactor --secrets-file secrets.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := prepared(cmd, &o.commonOptions, func() error { return errors.Join(o.validate(), o.host.validateSecrets()) })
			if err != nil {
				return err
			}
			return runRedactor(cmd.Context(), o, log)
		},
	}
	o.flags(c.Flags(), "127.0.0.1:9092")
	o.host.secretFlags(c.Flags())
	return c
}

// prepared reads the settings from all their places, checks them and opens the log.
func prepared(cmd *cobra.Command, o *commonOptions, validate func() error) (*slog.Logger, error) {
	if err := config.Load(cmd.Flags(), os.LookupEnv); err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if err := validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	log, err := obs.NewLogger(cmd.ErrOrStderr(), o.logLevel, o.logFormat)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return log, nil
}

// runRedactor serves until ctx ends.
func runRedactor(ctx context.Context, o redactorOptions, log *slog.Logger) error {
	began := time.Now()
	h := &host{log: log, opts: o.host}
	h.opts.secretsFile, h.opts.redactShapes = o.secretsFile, o.redactShapes
	specs, err := parseKeys(o.host.apiKeys)
	if err != nil {
		return err
	}
	if err := h.openRedactor(specs); err != nil {
		return err
	}
	a, err := newAlone(o.commonOptions, h.log)
	if err != nil {
		return err
	}
	defer a.close()
	if a.calls.Exporter, err = o.tracing.exporter(ctx, "waybill-redactor", h.log, a.later); err != nil {
		return err
	}
	h.redactor.Register(a.server)
	return a.run(ctx, began, nil, nil)
}

// newRedactor makes a redactor that knows the secrets of the operator's file, and the
// keys that URLs of assets are signed with.
func newRedactor(o commonOptions, assetKeys ...string) (*redactor.Service, error) {
	cfg := redactor.DefaultConfig()
	cfg.Shapes = o.redactShapes
	var err error
	if cfg.HostSecrets, err = readSecrets(o.secretsFile); err != nil {
		return nil, fmt.Errorf("%w: --secrets-file: %w", errUsage, err)
	}
	for i, key := range token.Secrets(assetKeys) {
		cfg.HostSecrets = append(cfg.HostSecrets, redact.Secret{ID: fmt.Sprintf("asset-key-%d", i+1), Value: redact.Value(key)})
	}
	return redactor.New(cfg)
}

// runAcceptor serves until ctx ends.
func runAcceptor(ctx context.Context, o acceptorOptions, log *slog.Logger) error {
	began, cfg := time.Now(), o.config()
	packs, err := loadPacks(o.packs, acceptorOffers(), log)
	if err != nil {
		return err
	}
	cfg.Packs = packs
	// What the process says of itself never shows what it was given to keep.
	own, err := newRedactor(o.commonOptions, o.assets.keys...)
	if err != nil {
		return err
	}
	log = obs.Clean(log, own.Clean)
	a, err := newAlone(o.commonOptions, log)
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.listenAssets(o.assets.addr); err != nil {
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
	vault, err := o.assets.vault(&runs.assets, o.dataDir)
	if err != nil {
		return err
	}
	deps := acceptor.Deps{Assets: vault, Log: runs, Redactor: scrub, Clock: time.Now, Logger: log}
	if cfg.TestSeams {
		if deps.Seam, err = a.seams(ctx, runs.open); err != nil {
			return fmt.Errorf("--test-seams: %w", err)
		}
	}
	spans, err := o.tracing.exporter(ctx, "waybill-acceptor", log, a.later)
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
func (o *acceptorOptions) logDir() string { return filepath.Join(o.dataDir, "nats") }
