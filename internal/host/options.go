package host

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/host/runlimits"
	"waybill.dev/waybill/internal/host/tools"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/kinds"
	"waybill.dev/waybill/services/dispatcher"
)

// FirstKey is the key of the first KEY=TENANT:SCOPES.
func FirstKey(specs []string) string {
	key, _, _ := strings.Cut(specs[0], "=")
	return key
}

// DevKey is the key of a host that was given none. Everybody knows it.
const DevKey = "dev-key"

// Options are the flags of `waybill dev`, as they are given.
type Options struct {
	HTTPAddr, GRPCAddr, NATSAddr, metricsAddr string
	DataDir                                   string
	APIKeys                                   []string
	Workflows                                 []string
	Kinds, packs, KindLint, Strictness        string
	SecretsFile                               string
	TestSeams, RedactShapes                   bool
	Reflection                                bool
	Models                                    models.Options
	prompts                                   packs.PromptOptions
	Durability                                string
	Tracing                                   tracingOptions
	tools                                     tools.Options
	lease, drainTimeout                       time.Duration
	maxRuns, handedOut                        int
	runLimits                                 runlimits.Limits
	maxQueueWait                              time.Duration
	tenantLimits                              string
	LogLevel, LogFormat                       string
	Demo                                      bool
	DemoRuns                                  bool
	ReadyFile                                 string
	ConfigFile                                string
	keyFile                                   string
	Postgres                                  postgresOptions
	maxBody                                   int64
	MaxInline, MaxMedia                       int
	PublicURL, PublicGRPC                     string
	AssetKeys                                 []string
	interruptKeys                             []string
	runtimeCapabilities                       []string
	audit                                     auditOptions
	webhooks                                  webhookOptions
	Console                                   ConsoleOptions
	admission                                 admissionOptions
}

// The two promises of --durability.
const (
	DurabilitySync    = "sync"
	DurabilityProcess = "process"
)

// PublicFlags are those of the public API.
func (o *Options) PublicFlags(f *pflag.FlagSet, httpAddr, grpcAddr string) {
	f.StringVar(&o.HTTPAddr, "http-addr", httpAddr, "address of the REST API; port 0 takes a free one")
	f.StringVar(&o.GRPCAddr, "grpc-addr", grpcAddr, "address of the gRPC API; port 0 takes a free one")
	f.StringVar(&o.metricsAddr, "metrics-addr", "", "address of the Prometheus metrics and of profiles; empty: nowhere")
	f.StringVar(&o.PublicURL, "public-url", "", "URL at which clients reach the REST API; URLs of assets begin with it; empty: that of --http-addr")
	f.StringVar(&o.PublicGRPC, "public-grpc-addr", "", "HOST:PORT at which clients reach the gRPC API, for discovery; empty: that of --grpc-addr")
	f.StringArrayVar(&o.interruptKeys, "interrupt-keys", nil, "VERSION=KEY that signs the tokens of interrupts: base64 of 32 random bytes, or host (repeatable); the highest signs, all are good; default 1=host")
	f.StringArrayVar(&o.APIKeys, "api-key", nil, "KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:* (repeatable), with user:NAME, group:NAME and role:NAME among the scopes; default dev-key=default:*")
	f.BoolVar(&o.TestSeams, "test-seams", false, "serve the protocol's test seams; never in production")
	f.BoolVar(&o.Reflection, "grpc-reflection", o.Reflection, "let gRPC clients ask the public API what it serves, as grpcurl does")
	f.Int64Var(&o.maxBody, "max-request-body-bytes", 1<<20, "largest request body")
	o.audit.flags(f)
	o.webhooks.flags(f)
	o.Console.flags(f)
	o.admission.flags(f)
}

// minLease is the shortest --lease.
const minLease = 200 * time.Millisecond

// Defaults of --drain-timeout. A terminal should get its prompt back soon.
const (
	DevDrain   = 5 * time.Second
	ServeDrain = 30 * time.Second
)

// ExecutionFlags are those of what executes runs.
func (o *Options) ExecutionFlags(f *pflag.FlagSet, drain time.Duration) {
	f.StringArrayVar(&o.Workflows, "workflows", nil, "directory of *.json workflow definitions, watched for changes (repeatable)")
	f.StringVar(&o.packs, "packs", "", "directory of packs, one folder with a pack.json each; their envelope kinds are served, their node types executed, and their prompt templates filled in")
	f.StringArrayVar(&o.runtimeCapabilities, "runtime-capability", nil, "id of what this host's runtime provides and a node of a pack may require (repeatable)")
	f.DurationVar(&o.lease, "lease", dispatcher.DefaultConfig().Lease.Duration, "lease of a dispatcher: others take over its runs after that long without a renewal")
	f.DurationVar(&o.drainTimeout, "drain-timeout", drain, "on SIGTERM, how long to wait for running calls before releasing their runs; a second signal exits immediately")
	f.IntVar(&o.maxRuns, "max-runs", dispatcher.DefaultConfig().MaxRuns, "runs that a dispatcher executes at a time, without those that sleep or wait for an answer; one eighth more, at least 1, is reserved for tenants below their share")
	o.runLimits.Flags(f)
	f.IntVar(&o.handedOut, "max-handed-out", jetstream.DefaultConfig().MaxPending, "runs that all dispatchers together hold at a time, those included that one has fetched and not begun; the same for all of them")
	f.DurationVar(&o.maxQueueWait, "max-queue-wait", dispatcher.DefaultConfig().Intake.MaxWait, "how long runs may wait for a free place of --max-runs before a dispatcher takes no further ones (503); 0: it takes all")
	f.StringVar(&o.tenantLimits, "tenant-limits", "", "JSON file of tenants' weights, priorities, concurrency and rate limits, read again when it changes; empty: all tenants alike, without limits")
	o.Models.Flags(f)
	o.prompts.Flags(f)
	o.tools.Flags(f)
}

// Validate returns all that is wrong with the flags, joined; each names the
// flag, the value and the remedy.
func (o *Options) Validate() error {
	if len(o.APIKeys) == 0 {
		o.APIKeys = []string{DevKey + "=default:*"}
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Durability != DurabilitySync && o.Durability != DurabilityProcess {
		bad("--durability %q: want %s or %s", o.Durability, DurabilitySync, DurabilityProcess)
	}
	if !kinds.Lint(o.KindLint).Valid() {
		bad("--kind-lint %q: want strict, warn or off", o.KindLint)
	}
	if s := acceptor.Strictness(o.Strictness); s != acceptor.StrictnessWarn && s != acceptor.StrictnessStrict {
		bad("--envelope-strictness %q: want warn or strict", o.Strictness)
	}
	if o.MaxInline < 0 || o.MaxInline > accept.MaxPayloadBytes {
		bad("--max-inline-media-bytes %d: want 0 to %d", o.MaxInline, accept.MaxPayloadBytes)
	}
	if _, err := token.ParseKeys(o.AssetKeys, nil); err != nil {
		bad("--asset-keys: %w", err)
	}
	if o.MaxMedia < 1 || o.MaxMedia > accept.DefaultMaxMediaBytes {
		bad("--max-media-base64-bytes %d: want 1 to %d", o.MaxMedia, accept.DefaultMaxMediaBytes)
	}
	if err := o.Tracing.config("waybill").Validate(); err != nil {
		bad("--%w", err)
	}
	if st, err := os.Stat(o.Kinds); o.Kinds != "" && (err != nil || !st.IsDir()) {
		bad("--kinds %q: give an existing directory", o.Kinds)
	}
	return errors.Join(append(errs, o.validatePublic(), o.ValidateExecution())...)
}

func (o *Options) validatePublic() error {
	var errs []error
	if u, err := url.Parse(o.PublicURL); err != nil || o.PublicURL != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		errs = append(errs, fmt.Errorf("--public-url %q: want a URL such as https://waybill.example", o.PublicURL))
	}
	if _, _, err := net.SplitHostPort(o.PublicGRPC); o.PublicGRPC != "" && err != nil {
		errs = append(errs, fmt.Errorf("--public-grpc-addr %q: want HOST:PORT, such as grpc.waybill.example:443", o.PublicGRPC))
	}
	if _, err := token.ParseKeys(o.interruptKeys, nil); err != nil {
		errs = append(errs, fmt.Errorf("--interrupt-keys: %w", err))
	}
	if o.maxBody < 1 || o.maxBody > 6<<20 {
		errs = append(errs, fmt.Errorf("--max-request-body-bytes %d: want 1 to %d (a run's record must fit one NATS message)", o.maxBody, 6<<20))
	}
	return errors.Join(append(errs, o.Console.validate(o.PublicURL), o.admission.validate(), o.audit.validate(), o.webhooks.validate(o.TestSeams, os.LookupEnv))...)
}

func (o *Options) ValidateExecution() error {
	errs := append(o.Models.Validate(), o.prompts.Validate()...)
	if o.lease < minLease {
		errs = append(errs, fmt.Errorf("--lease %s: want at least %s, so that renewals can keep it", o.lease, minLease))
	}
	if o.drainTimeout < 0 {
		errs = append(errs, fmt.Errorf("--drain-timeout %s: want at least 0s", o.drainTimeout))
	}
	if o.maxRuns < 1 {
		errs = append(errs, fmt.Errorf("--max-runs %d: want at least 1", o.maxRuns))
	}
	errs = append(errs, o.runLimits.Validate()...)
	if o.handedOut < 1 {
		errs = append(errs, fmt.Errorf("--max-handed-out %d: want at least 1", o.handedOut))
	}
	if o.maxQueueWait < 0 {
		errs = append(errs, fmt.Errorf("--max-queue-wait %s: want at least 0, which is no bound", o.maxQueueWait))
	}
	for _, d := range append([]string{o.packs, o.prompts.Dir}, o.Workflows...) {
		if st, err := os.Stat(d); d != "" && (err != nil || !st.IsDir()) {
			errs = append(errs, fmt.Errorf("directory %q cannot be read: give an existing directory to --workflows, --packs or --prompts", d))
		}
	}
	return errors.Join(append(errs, o.tools.Validate())...)
}
