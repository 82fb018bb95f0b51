package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/config"
	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/kinds"
	"waybill.dev/waybill/services/dispatcher"
)

// devOptions are the flags of `waybill dev`, as they are given.
type devOptions struct {
	httpAddr, grpcAddr, natsAddr, metricsAddr string
	dataDir                                   string
	apiKeys                                   []string
	workflows                                 []string
	kinds, packs, kindLint, strictness        string
	secretsFile                               string
	testSeams, redactShapes                   bool
	reflection                                bool
	models                                    modelOptions
	prompts                                   promptOptions
	durability                                string
	tracing                                   tracingOptions
	tools                                     toolOptions
	lease, drainTimeout                       time.Duration
	maxRuns, handedOut                        int
	runLimits                                 runLimits
	maxQueueWait                              time.Duration
	tenantLimits                              string
	logLevel, logFormat                       string
	demo                                      bool
	demoRuns                                  bool
	readyFile                                 string
	configFile                                string
	keyFile                                   string
	postgres                                  postgresOptions
	maxBody                                   int64
	maxInline, maxMedia                       int
	publicURL, publicGRPC                     string
	assetKeys                                 []string
	interruptKeys                             []string
	runtimeCapabilities                       []string
	audit                                     auditOptions
	webhooks                                  webhookOptions
	browser                                   consoleOptions
	admission                                 admissionOptions
}

// The two promises of --durability.
const (
	durabilitySync    = "sync"
	durabilityProcess = "process"
)

func devCommand() *cobra.Command {
	var o devOptions
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run the whole host in one process, on embedded NATS and SQLite",
		Long: `Runs gateway, acceptor, dispatcher, event log and redactor in one process, on an
embedded NATS JetStream server and a SQLite read model. State is kept in --data-dir.
Every flag can be set as an environment variable (WAYBILL_ and the flag's name in
capitals) or in the --config file; flags beat environment beats file.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(cmd.Flags(), os.LookupEnv); err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			if err := o.validate(); err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			log, err := obs.NewLogger(cmd.ErrOrStderr(), o.logLevel, o.logFormat)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			if o.durability == durabilitySync {
				makeRoom()
			}
			return runDev(cmd.Context(), o, log, cmd.OutOrStdout())
		},
	}
	f := c.Flags()
	o.reflection = true // who develops asks with grpcurl; in production it is off (OpenWOP host contract §9.4)
	o.publicFlags(f, "127.0.0.1:8080", "127.0.0.1:9090")
	o.executionFlags(f, devDrain)
	f.StringArrayVar(&o.assetKeys, "asset-keys", nil, "VERSION=KEY that signs the URLs of assets: base64 of 32 random bytes, or host (repeatable); the highest signs, all are good; default 1=host")
	f.StringVar(&o.natsAddr, "nats-addr", "", "address where NATS clients may read run events (user = tenant, password = API key); empty: nowhere")
	f.StringVar(&o.dataDir, "data-dir", ".waybill", "directory of all state")
	f.StringVar(&o.kinds, "kinds", "", "directory of further envelope kinds, one KIND.schema.json a file")
	f.StringVar(&o.kindLint, "kind-lint", "warn", "strict, warn or off: what becomes of a kind whose schema models cannot be held to")
	f.StringVar(&o.strictness, "envelope-strictness", "warn", "warn or strict: whether a schemaVersion below the advertised one is refused")
	f.StringVar(&o.secretsFile, "secrets-file", "", "YAML file of secret ids and values that must never show, for everybody")
	f.BoolVar(&o.redactShapes, "redact-shapes", true, "also take out text that looks like a secret, though nobody has registered it")
	f.StringVar(&o.durability, "durability", durabilitySync, "sync: an acknowledged write is on disk; process: it survives the process, not a power cut")
	f.IntVar(&o.maxInline, "max-inline-media-bytes", accept.DefaultMaxInlineBytes, "largest image, sound or file that is recorded within its event; larger ones are stored and recorded as a URL")
	f.IntVar(&o.maxMedia, "max-media-base64-bytes", accept.DefaultMaxMediaBytes, "largest image, sound or file that is taken from a model, in characters of base64")
	o.tracing.flags(f)
	f.StringVar(&o.logLevel, "log-level", "warn", "debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", obs.FormatText, "text or json")
	f.BoolVar(&o.demo, "demo", false, "run the example workflow once and print what came out")
	f.BoolVar(&o.demoRuns, "demo-runs", true, "serve the demo workflows and, in a data directory that is new, begin with a run of each")
	f.StringVar(&o.readyFile, "ready-file", "", "file to write the addresses to, as JSON, once the host is ready")
	f.StringVar(&o.configFile, "config", "", "YAML file of flag names and values")
	return c
}

// publicFlags are those of the public API.
func (o *devOptions) publicFlags(f *pflag.FlagSet, httpAddr, grpcAddr string) {
	f.StringVar(&o.httpAddr, "http-addr", httpAddr, "address of the REST API; port 0 takes a free one")
	f.StringVar(&o.grpcAddr, "grpc-addr", grpcAddr, "address of the gRPC API; port 0 takes a free one")
	f.StringVar(&o.metricsAddr, "metrics-addr", "", "address of the Prometheus metrics and of profiles; empty: nowhere")
	f.StringVar(&o.publicURL, "public-url", "", "URL at which clients reach the REST API; URLs of assets begin with it; empty: that of --http-addr")
	f.StringVar(&o.publicGRPC, "public-grpc-addr", "", "HOST:PORT at which clients reach the gRPC API, for discovery; empty: that of --grpc-addr")
	f.StringArrayVar(&o.interruptKeys, "interrupt-keys", nil, "VERSION=KEY that signs the tokens of interrupts: base64 of 32 random bytes, or host (repeatable); the highest signs, all are good; default 1=host")
	f.StringArrayVar(&o.apiKeys, "api-key", nil, "KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:* (repeatable), with user:NAME, group:NAME and role:NAME among the scopes; default dev-key=default:*")
	f.BoolVar(&o.testSeams, "test-seams", false, "serve the protocol's test seams; never in production")
	f.BoolVar(&o.reflection, "grpc-reflection", o.reflection, "let gRPC clients ask the public API what it serves, as grpcurl does")
	f.Int64Var(&o.maxBody, "max-request-body-bytes", 1<<20, "largest request body")
	o.audit.flags(f)
	o.webhooks.flags(f)
	o.browser.flags(f)
	o.admission.flags(f)
}

// minLease is the shortest --lease.
const minLease = 200 * time.Millisecond

// Defaults of --drain-timeout. A terminal should get its prompt back soon.
const (
	devDrain   = 5 * time.Second
	serveDrain = 30 * time.Second
)

// executionFlags are those of what executes runs.
func (o *devOptions) executionFlags(f *pflag.FlagSet, drain time.Duration) {
	f.StringArrayVar(&o.workflows, "workflows", nil, "directory of *.json workflow definitions, watched for changes (repeatable)")
	f.StringVar(&o.packs, "packs", "", "directory of packs, one folder with a pack.json each; their envelope kinds are served, their node types executed, and their prompt templates filled in")
	f.StringArrayVar(&o.runtimeCapabilities, "runtime-capability", nil, "id of what this host's runtime provides and a node of a pack may require (repeatable)")
	f.DurationVar(&o.lease, "lease", dispatcher.DefaultConfig().Lease.Duration, "lease of a dispatcher: others take over its runs after that long without a renewal")
	f.DurationVar(&o.drainTimeout, "drain-timeout", drain, "on SIGTERM, how long to wait for running calls before releasing their runs; a second signal exits immediately")
	f.IntVar(&o.maxRuns, "max-runs", dispatcher.DefaultConfig().MaxRuns, "runs that a dispatcher executes at a time, without those that sleep or wait for an answer; one eighth more, at least 1, is reserved for tenants below their share")
	o.runLimits.flags(f)
	f.IntVar(&o.handedOut, "max-handed-out", jetstream.DefaultConfig().MaxPending, "runs that all dispatchers together hold at a time, those included that one has fetched and not begun; the same for all of them")
	f.DurationVar(&o.maxQueueWait, "max-queue-wait", dispatcher.DefaultConfig().Intake.MaxWait, "how long runs may wait for a free place of --max-runs before a dispatcher takes no further ones (503); 0: it takes all")
	f.StringVar(&o.tenantLimits, "tenant-limits", "", "JSON file of tenants' weights, priorities, concurrency and rate limits, read again when it changes; empty: all tenants alike, without limits")
	o.models.flags(f)
	o.prompts.flags(f)
	o.tools.flags(f)
}

// validate returns all that is wrong with the flags, joined; each names the
// flag, the value and the remedy.
func (o *devOptions) validate() error {
	if len(o.apiKeys) == 0 {
		o.apiKeys = []string{devKey + "=default:*"}
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.durability != durabilitySync && o.durability != durabilityProcess {
		bad("--durability %q: want %s or %s", o.durability, durabilitySync, durabilityProcess)
	}
	if !kinds.Lint(o.kindLint).Valid() {
		bad("--kind-lint %q: want strict, warn or off", o.kindLint)
	}
	if s := acceptor.Strictness(o.strictness); s != acceptor.StrictnessWarn && s != acceptor.StrictnessStrict {
		bad("--envelope-strictness %q: want warn or strict", o.strictness)
	}
	if o.maxInline < 0 || o.maxInline > accept.MaxPayloadBytes {
		bad("--max-inline-media-bytes %d: want 0 to %d", o.maxInline, accept.MaxPayloadBytes)
	}
	if _, err := token.ParseKeys(o.assetKeys, nil); err != nil {
		bad("--asset-keys: %w", err)
	}
	if o.maxMedia < 1 || o.maxMedia > accept.DefaultMaxMediaBytes {
		bad("--max-media-base64-bytes %d: want 1 to %d", o.maxMedia, accept.DefaultMaxMediaBytes)
	}
	if err := o.tracing.config("waybill").Validate(); err != nil {
		bad("--%w", err)
	}
	if st, err := os.Stat(o.kinds); o.kinds != "" && (err != nil || !st.IsDir()) {
		bad("--kinds %q: give an existing directory", o.kinds)
	}
	return errors.Join(append(errs, o.validatePublic(), o.validateExecution())...)
}

func (o *devOptions) validatePublic() error {
	var errs []error
	if u, err := url.Parse(o.publicURL); err != nil || o.publicURL != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		errs = append(errs, fmt.Errorf("--public-url %q: want a URL such as https://waybill.example", o.publicURL))
	}
	if _, _, err := net.SplitHostPort(o.publicGRPC); o.publicGRPC != "" && err != nil {
		errs = append(errs, fmt.Errorf("--public-grpc-addr %q: want HOST:PORT, such as grpc.waybill.example:443", o.publicGRPC))
	}
	if _, err := token.ParseKeys(o.interruptKeys, nil); err != nil {
		errs = append(errs, fmt.Errorf("--interrupt-keys: %w", err))
	}
	if o.maxBody < 1 || o.maxBody > 6<<20 {
		errs = append(errs, fmt.Errorf("--max-request-body-bytes %d: want 1 to %d (a run's record must fit one NATS message)", o.maxBody, 6<<20))
	}
	return errors.Join(append(errs, o.browser.validate(o.publicURL), o.admission.validate(), o.audit.validate(), o.webhooks.validate(o.testSeams, os.LookupEnv))...)
}

func (o *devOptions) validateExecution() error {
	errs := append(o.models.validate(), o.prompts.validate()...)
	if o.lease < minLease {
		errs = append(errs, fmt.Errorf("--lease %s: want at least %s, so that renewals can keep it", o.lease, minLease))
	}
	if o.drainTimeout < 0 {
		errs = append(errs, fmt.Errorf("--drain-timeout %s: want at least 0s", o.drainTimeout))
	}
	if o.maxRuns < 1 {
		errs = append(errs, fmt.Errorf("--max-runs %d: want at least 1", o.maxRuns))
	}
	errs = append(errs, o.runLimits.validate()...)
	if o.handedOut < 1 {
		errs = append(errs, fmt.Errorf("--max-handed-out %d: want at least 1", o.handedOut))
	}
	if o.maxQueueWait < 0 {
		errs = append(errs, fmt.Errorf("--max-queue-wait %s: want at least 0, which is no bound", o.maxQueueWait))
	}
	for _, d := range append([]string{o.packs, o.prompts.dir}, o.workflows...) {
		if st, err := os.Stat(d); d != "" && (err != nil || !st.IsDir()) {
			errs = append(errs, fmt.Errorf("directory %q cannot be read: give an existing directory to --workflows, --packs or --prompts", d))
		}
	}
	return errors.Join(append(errs, o.tools.validate())...)
}

// runDev runs the host until ctx ends.
func runDev(ctx context.Context, o devOptions, log *slog.Logger, out io.Writer) error {
	began := time.Now()
	isNew := o.demoRuns && empty(o.dataDir)
	if err := os.MkdirAll(o.dataDir, 0o700); err != nil {
		return fmt.Errorf("--data-dir %s: %w", o.dataDir, err)
	}
	unlock, err := lockDir(o.dataDir)
	if err != nil {
		return err
	}
	defer unlock()
	h, err := compose(ctx, o, log)
	if err != nil {
		return err
	}
	defer h.close()
	h.start()
	if err := h.untilReady(ctx); err != nil {
		return errors.Join(err, h.group.Stop())
	}
	loader := &workflowLoader{client: h.clients.dispatcher, log: h.log}
	if err := errors.Join(loader.loadExamples(ctx), o.loadDemo(ctx, loader), loader.loadDirs(ctx, o.workflows)); err != nil {
		return errors.Join(err, h.group.Stop())
	}
	h.group.Start(loader.watch(o.workflows))
	ready := h.readyInfo(time.Since(began))
	if err := ready.write(o.readyFile); err != nil {
		return errors.Join(err, h.group.Stop())
	}
	banner(out, o, ready, h.consoleLink(ready))
	if isNew {
		c, err := client.New(ready.HTTP, client.WithToken(firstKey(o.apiKeys)))
		if err != nil {
			return errors.Join(err, h.group.Stop())
		}
		startDemoRuns(ctx, c, h.log)
	}
	if o.demo {
		if err := demo(ctx, out, ready, firstKey(o.apiKeys)); err != nil && ctx.Err() == nil {
			return errors.Join(fmt.Errorf("demo run: %w", err), h.group.Stop())
		}
	}
	return h.group.Wait(ctx)
}

// lockFile keeps two hosts from sharing a data directory.
func lockPath(dir string) string { return filepath.Join(dir, "lock") }
