// Package acceptor is the service that validates and records the answers of models.
//
//	Accept             -> accept.Pipeline over the run log    (real runs)
//	OpenRun, CloseRun  -> external.Runs                       (runs of external executors)
//	CheckSubmit        -> a2ui.Surface                        (values submitted to a surface)
//	Exercise           -> seam.Exerciser over the same pipeline (test seam)
//	ListKinds          -> kinds.Registry                      (discovery, schemas)
//
// It implements OpenWOP envelope contract §2-§4, §6-§10, §12 and §23.1. The rules
// are in package accept; start reading at accept/pipeline.go.
package acceptor

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/runlog"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/assets"
	"waybill.dev/waybill/services/acceptor/external"
	"waybill.dev/waybill/services/acceptor/kinds"
	"waybill.dev/waybill/services/acceptor/seam"
)

// Strictness is what happens to a schemaVersion below the advertised one.
type Strictness string

// The two values of envelopeStrictness.
const (
	StrictnessWarn   Strictness = "warn"
	StrictnessStrict Strictness = "strict"
)

// Limits are the envelope limits of the host; 0 allows none.
type Limits struct {
	EnvelopesPerTurn    int
	SchemaRounds        int
	ClarificationRounds int
}

// Config is what an operator sets.
type Config struct {
	Limits     Limits
	Strictness Strictness
	// KindsDir has vendor kinds, each in a file <kind>.schema.json; nil means none.
	KindsDir fs.FS
	// Packs are further sources of vendor kinds.
	Packs []*pack.Pack
	// Lint is what happens to a vendor kind outside the Tier-1 subset.
	Lint kinds.Lint
	// NoAIEnvelope switches the capability host.aiEnvelope off: no kind is advertised, and no envelope
	// accepted.
	NoAIEnvelope bool
	// TestSeams enables Exercise and the RPCs for test state.
	TestSeams bool
	// MaxInlineBytes is the largest asset that is recorded in its payload.
	MaxInlineBytes int
	// MaxMediaBytes is the longest accepted base64 of an asset, in characters.
	MaxMediaBytes int
}

// DefaultConfig returns the documented default limits.
func DefaultConfig() Config {
	return Config{
		Limits:     Limits{EnvelopesPerTurn: 5, SchemaRounds: 2, ClarificationRounds: 3},
		Strictness: StrictnessWarn, Lint: kinds.LintWarn,
		MaxInlineBytes: accept.DefaultMaxInlineBytes, MaxMediaBytes: accept.DefaultMaxMediaBytes,
	}
}

// Validate reports every unusable value.
func (c Config) Validate() error {
	var errs []error
	limit := func(name string, n int) {
		if n < 0 || n > 1<<20 {
			errs = append(errs, fmt.Errorf("acceptor.limits.%s: %d: needs a number from 0 to %d", name, n, 1<<20))
		}
	}
	limit("envelopes_per_turn", c.Limits.EnvelopesPerTurn)
	limit("schema_rounds", c.Limits.SchemaRounds)
	limit("clarification_rounds", c.Limits.ClarificationRounds)
	if c.MaxInlineBytes < 0 || c.MaxInlineBytes > accept.MaxPayloadBytes {
		errs = append(errs, fmt.Errorf("acceptor.max_inline_bytes: %d: needs a number from 0 to %d", c.MaxInlineBytes, accept.MaxPayloadBytes))
	}
	if c.MaxMediaBytes < 1 || c.MaxMediaBytes > accept.DefaultMaxMediaBytes {
		errs = append(errs, fmt.Errorf("acceptor.max_media_bytes: %d: needs a number from 1 to %d", c.MaxMediaBytes, accept.DefaultMaxMediaBytes))
	}
	if c.Strictness != StrictnessWarn && c.Strictness != StrictnessStrict {
		errs = append(errs, fmt.Errorf("acceptor.strictness: %q: needs warn or strict", c.Strictness))
	}
	if !c.Lint.Valid() {
		errs = append(errs, fmt.Errorf("acceptor.lint: %q: needs strict, warn or off", c.Lint))
	}
	return errors.Join(errs...)
}

// Deps are the collaborators; the caller owns and closes them.
type Deps struct {
	Log      runlog.Log
	Redactor redactorv1.RedactorClient
	// Clock returns the current time; nil means time.Now.
	Clock func() time.Time
	// Logger gets one line per accept; nil disables it.
	Logger *slog.Logger
	// Assets stores assets that are too large for the log; nil refuses assets above
	// the inline limit.
	Assets *assets.Store
	// Spans exports the spans of accepts; nil disables it.
	Spans Spans
	// Seam stores the state of the test seam, for all processes of the host. It is
	// required with Config.TestSeams, and unused otherwise.
	Seam kv.Store
}

// Spans exports the spans of accepts.
type Spans interface {
	// Accepted exports the span of one accept. sampled is the flag of the caller's
	// trace context. It does not block.
	Accepted(span *runspan.Span, sampled bool)
}

// Service is the acceptor.
type Service struct {
	spans    Spans
	cfg      Config
	registry *kinds.Registry
	pipeline *accept.Pipeline
	ledger   *accept.LogLedger
	runLog   runlog.Log
	runs     *external.Runs
	redactor redactorClient
	assets   *assets.Store // nil means none are kept
	seams    *seam.Seams   // nil without test seams
	large    largeBodies
	metrics  metrics
	log      *slog.Logger
	clock    func() time.Time
}

// New loads the kinds and builds the service. It starts nothing.
func New(cfg Config, d Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if d.Log == nil || d.Redactor == nil {
		return nil, errors.New("acceptor: needs a run log and a redactor")
	}
	if cfg.TestSeams && d.Seam == nil {
		return nil, errors.New("acceptor: test seams need a store for their state")
	}
	if d.Clock == nil {
		d.Clock = time.Now
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	registry, err := loadKinds(cfg, d.Logger)
	if err != nil {
		return nil, err
	}
	r := redactorClient{client: d.Redactor}
	policy := accept.Policy{
		Strict:         cfg.Strictness == StrictnessStrict,
		Disabled:       cfg.NoAIEnvelope,
		MaxInlineBytes: cfg.MaxInlineBytes,
		MaxMediaBytes:  cfg.MaxMediaBytes,
	}
	ledger := accept.NewLogLedger(d.Log, d.Clock)
	s := &Service{
		cfg:      cfg,
		registry: registry,
		pipeline: accept.New(registry, r, ledger, d.Clock, policy),
		ledger:   ledger,
		runLog:   d.Log,
		runs:     external.New(d.Log, r, d.Clock),
		redactor: r,
		assets:   d.Assets,
		large:    make(largeBodies, maxLargeBodies),
		spans:    d.Spans,
		metrics:  newMetrics(),
		log:      d.Logger,
		clock:    d.Clock,
	}
	if d.Assets != nil {
		s.pipeline.WithAssets(d.Assets)
	}
	if cfg.TestSeams {
		s.seams = seam.New(d.Seam, seam.Exerciser{
			Kinds:    registry,
			Redactor: r,
			Canaries: r,
			Clock:    d.Clock,
			Policy:   policy,
		})
		if d.Assets != nil {
			s.seams.Assets = d.Assets
		}
	}
	return s, nil
}

// loadKinds registers the kinds of the protocol, of the folder and of the packs.
func loadKinds(cfg Config, log *slog.Logger) (*kinds.Registry, error) {
	registry, err := kinds.New(cfg.Lint)
	if err != nil {
		return nil, err
	}
	warn := func(findings []string) {
		for _, w := range findings {
			log.Warn("envelope kind leaves the structured-output subset", "finding", w)
		}
	}
	var errs []error
	if cfg.KindsDir != nil {
		findings, err := registry.LoadDir(cfg.KindsDir)
		warn(findings)
		if err != nil {
			errs = append(errs, fmt.Errorf("acceptor.kinds_dir: %w", err))
		}
	}
	for _, p := range cfg.Packs {
		findings, err := registry.AddPack(p)
		warn(findings)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var loose []string
	for _, v := range registry.Violations() {
		loose = append(loose, v.Kind+": "+strings.Join(v.Rules, ", "))
	}
	if len(loose) > 0 {
		log.Info("envelope kinds outside the strict structured-output subset are served", "kinds", loose)
	}
	for _, p := range cfg.Packs {
		for _, a := range p.Accepted() {
			if _, ok := registry.Find(a.Kind); !ok {
				log.Warn("the contract of a pack's node accepts a kind that this host does not have",
					"pack", p.Name, "type_id", a.TypeID, "kind", a.Kind)
			}
		}
	}
	return registry, nil
}

// Register registers the service's handlers on a server.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	acceptorv1.RegisterAcceptorServer(r, handler{s: s})
}
