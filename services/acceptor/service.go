// Package acceptor is the service that takes a model's answers in.
//
//	Accept      -> accept.Pipeline over the run log         (real runs)
//	OpenRun     -> opened.Runs: runs of executors outside   (CloseRun as well)
//	CheckSubmit -> a2ui.Surface: what is filled into a surface
//	Exercise    -> seam.Exerciser over the same pipeline    (test seam)
//	ListKinds   -> kinds.Registry                           (discovery, schemas)
//
// It fulfils OpenWOP envelope contract §2-§4, §6-§10, §12 and §23.1. The rules
// are in accept; start reading at accept/pipeline.go.
package acceptor

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/runlog"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/runspan"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/assets"
	"waybill.dev/waybill/services/acceptor/kinds"
	"waybill.dev/waybill/services/acceptor/opened"
	"waybill.dev/waybill/services/acceptor/seam"
)

// Strictness says what happens to a schemaVersion below the advertised one.
type Strictness string

// The two values of envelopeStrictness.
const (
	StrictnessWarn   Strictness = "warn"
	StrictnessStrict Strictness = "strict"
)

// Limits are the envelope limits of the host; 0 admits none.
type Limits struct {
	EnvelopesPerTurn    int
	SchemaRounds        int
	ClarificationRounds int
}

// Config is what an operator sets.
type Config struct {
	Limits     Limits
	Strictness Strictness
	// KindsDir holds vendor kinds, one <kind>.schema.json a file; nil: none.
	KindsDir fs.FS
	// Packs bring vendor kinds, too.
	Packs []*pack.Pack
	// Lint is what happens to a vendor kind outside the Tier-1 subset.
	Lint kinds.Lint
	// TestSeams serves Exercise.
	TestSeams bool
	// MaxInlineBytes is the largest asset that is recorded within its payload.
	MaxInlineBytes int
	// MaxMediaBytes is the longest base64 of an asset that is taken, in characters.
	MaxMediaBytes int
}

// DefaultConfig gives the limits that discovery documents by default.
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
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
	// Logger takes one line per accept; nil: none.
	Logger *slog.Logger
	// Assets keeps what is too large for the log; nil: assets above the inline cap
	// are refused.
	Assets *assets.Vault
	// Spans takes the spans of accepts; nil: they are not exported.
	Spans Spans
	// Seam keeps the state of the test seam, for all processes of the host. Needed
	// with Config.TestSeams, and only then.
	Seam kv.Store
}

// Spans takes the spans of accepts.
type Spans interface {
	// Accepted takes the span of one accept. sampled is what the caller's trace
	// context says. It does not block.
	Accepted(span *runspan.Span, sampled bool)
}

// Service is the acceptor.
type Service struct {
	spans    Spans
	cfg      Config
	registry *kinds.Registry
	pipeline *accept.Pipeline
	ledger   *accept.LogLedger
	runs     *opened.Runs
	redactor redactorClient
	assets   *assets.Vault   // nil: none are kept
	seam     *seam.Exerciser // nil without test seams
	tests    *seam.Shared    // nil without test seams
	large    turnstile
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
		return nil, errors.New("acceptor: needs records for the state of the test seams")
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
	policy := accept.Policy{Strict: cfg.Strictness == StrictnessStrict, MaxInlineBytes: cfg.MaxInlineBytes, MaxMediaBytes: cfg.MaxMediaBytes}
	ledger := accept.NewLogLedger(d.Log, d.Clock)
	s := &Service{
		spans: d.Spans, metrics: newMetrics(),
		cfg: cfg, registry: registry, log: d.Logger, clock: d.Clock, ledger: ledger,
		pipeline: accept.New(registry, r, ledger, d.Clock, policy),
		large:    make(turnstile, maxLarge),
		assets:   d.Assets,
		redactor: r,
		runs:     opened.New(d.Log, r, d.Clock),
	}
	if d.Assets != nil {
		s.pipeline.Keeping(d.Assets)
	}
	if cfg.TestSeams {
		s.tests = seam.NewShared(d.Seam, d.Clock)
		s.seam = &seam.Exerciser{
			Kinds: registry, Redactor: r, Vault: r, Store: s.tests, Log: s.tests, Clock: d.Clock, Policy: policy,
		}
		if d.Assets != nil {
			s.seam.Assets = d.Assets
		}
	}
	return s, nil
}

// loadKinds registers the protocol's kinds, those of the folder and those of packs.
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
	for _, p := range cfg.Packs {
		for _, a := range p.Accepted() {
			if _, ok := registry.Find(a.Kind); !ok {
				log.Warn("the contract of a pack's node accepts a kind that this host does not have", "pack", p.Name, "type_id", a.TypeID, "kind", a.Kind)
			}
		}
	}
	return registry, nil
}

// Register puts the service's handlers on a server.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	acceptorv1.RegisterAcceptorServer(r, handler{s: s})
}
