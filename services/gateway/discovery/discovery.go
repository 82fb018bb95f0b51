// Package discovery computes the discovery document, which describes this host's capabilities.
// It derives from what is registered and configured: a capability that the host lacks is not
// in it (OpenWOP host contract §1).
package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/version"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/engine"
)

// Config is the gateway's part of the document.
type Config struct {
	MaxBodyBytes int64
	// GRPCEndpoint is the public gRPC address, such as grpc://127.0.0.1:9090, or grpcs://
	// with TLS.
	GRPCEndpoint func() string
	TestSeams    bool
	// Annotations means that runs can be annotated.
	Annotations bool
	// Audit describes how to verify the audit log; nil if there is none.
	Audit *audit.Profile
	// Webhooks means that events are delivered to webhooks.
	Webhooks bool
	// Ready returns why the host cannot serve yet; nil if it can.
	Ready func() error
}

// cacheTTL is how long a computed document is served. Changes through this gateway are shown
// immediately, those through others after this time.
const cacheTTL = 200 * time.Millisecond

// retryAfter is the Retry-After if there is no document.
const retryAfter = time.Second

// Source computes and caches the document. It is safe for concurrent use.
type Source struct {
	cfg        Config
	dispatcher dispatcherv1.DispatcherClient
	acceptor   acceptorv1.AcceptorClient
	clock      func() time.Time

	mu sync.Mutex // guards all below
	// started means that the host was ready before: what it offers is loaded.
	started  bool
	computed time.Time
	document engine.Document
}

// New makes a source.
func New(cfg Config, d dispatcherv1.DispatcherClient, a acceptorv1.AcceptorClient, clock func() time.Time) *Source {
	return &Source{cfg: cfg, dispatcher: d, acceptor: a, clock: clock}
}

// Document returns the discovery document.
func (s *Source) Document(ctx context.Context) (engine.Document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started && s.cfg.Ready != nil {
		if err := s.cfg.Ready(); err != nil { // clients cache the document
			return engine.Document{}, fault.New(fault.ServiceUnavailable, "discovery is not available yet: %s", err).After(retryAfter)
		}
	}
	s.started = true
	if now := s.clock(); s.document.JSON != nil && now.Sub(s.computed) < cacheTTL {
		return s.document, nil
	}
	doc, err := s.compute(ctx)
	if err != nil {
		return engine.Document{}, unavailable(err)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return engine.Document{}, unavailable(fmt.Errorf("render discovery: %w", err))
	}
	sum := sha256.Sum256(b)
	s.document = engine.Document{JSON: b, ETag: `"` + hex.EncodeToString(sum[:16]) + `"`}
	s.computed = s.clock()
	return s.document, nil
}

// Changed marks the document as outdated: the next request gets a new one.
func (s *Source) Changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.computed = time.Time{}
}

// unavailable is the error if the document cannot be computed (OpenWOP host contract §1.1).
func unavailable(err error) error {
	return fault.New(fault.ServiceUnavailable, "discovery is temporarily unavailable; retry").After(retryAfter).Wrap(err)
}

// document is the discovery document. Its members are in reading order.
type document struct {
	ProtocolVersion  string           `json:"protocolVersion"`
	ProtocolVersions []string         `json:"protocolVersions"`
	Implementation   implementation   `json:"implementation"`
	EngineVersion    int              `json:"engineVersion"`
	EventLogVersion  int              `json:"eventLogSchemaVersion"`
	Transports       []string         `json:"supportedTransports"`
	GRPC             grpcBlock        `json:"grpc"`
	Envelopes        []string         `json:"supportedEnvelopes"`
	SchemaVersions   map[string]int32 `json:"schemaVersions"`
	Limits           limits           `json:"limits"`
	Strictness       string           `json:"envelopeStrictness,omitempty"`
	Contracts        *contracts       `json:"envelopeContracts,omitempty"`
	EnvelopeFamily   *envelopes       `json:"envelopes,omitempty"`
	ModelGate        *modelGate       `json:"modelCapabilities,omitempty"`
	Providers        *providers       `json:"aiProviders,omitempty"`
	Usage            *usage           `json:"providerUsage,omitempty"`
	Prompts          *prompts         `json:"prompts,omitempty"`
	Secrets          *secrets         `json:"secrets,omitempty"`
	Runtime          []string         `json:"runtimeCapabilities,omitempty"`
	Compliance       *compliance      `json:"compliance,omitempty"`
	Agents           *agents          `json:"agents,omitempty"`
	Auth             *authBlock       `json:"auth,omitempty"`
	Idempotency      idempotency      `json:"idempotency"`
	DebugBundle      supported        `json:"debugBundle"`
	Runs             runs             `json:"runs"`
	Interrupts       interrupts       `json:"interrupts"`
	Interrupt        interruptBlock   `json:"interrupt"`
	Feedback         *feedback        `json:"feedback,omitempty"`
	Webhooks         *webhooks        `json:"webhooks,omitempty"`
	SubWorkflow      *subWorkflow     `json:"subWorkflow,omitempty"`
	Replay           replay           `json:"replay"`
	REST             restTransport    `json:"restTransport"`
	Fixtures         []string         `json:"fixtures,omitempty"`
	Testing          *testing         `json:"testing,omitempty"`
	Observability    *observability   `json:"observability,omitempty"`
}

// DocumentType is the Go type of the discovery document.
var DocumentType = reflect.TypeFor[document]()

// modelGate is present only if some node requires a model capability. It lists the
// capabilities that are required and met, and no others (OpenWOP envelope contract §16.4).
type modelGate struct {
	Supported    bool     `json:"supported"`
	Advertised   []string `json:"advertised"`
	Substitution bool     `json:"substitutionSupported"`
}

type implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type grpcBlock struct {
	Supported bool   `json:"supported"`
	Service   string `json:"service"`
	Endpoint  string `json:"endpoint,omitempty"`
	TLS       string `json:"tls"`
}

// grpcOf describes the gRPC API. The scheme of the address says whether it uses TLS.
func grpcOf(endpoint string) grpcBlock {
	tls := "disabled"
	if strings.HasPrefix(endpoint, "grpcs://") {
		tls = "required"
	}
	return grpcBlock{Supported: true, Service: "openwop.v1.Engine", Endpoint: endpoint, TLS: tls}
}

type limits struct {
	ClarificationRounds int32 `json:"clarificationRounds"`
	SchemaRounds        int32 `json:"schemaRounds"`
	EnvelopesPerTurn    int32 `json:"envelopesPerTurn"`
	MaxNodeExecutions   int32 `json:"maxNodeExecutions"`
	MaxRunDurationMs    int64 `json:"maxRunDurationMs"`
	MaxRequestBodyBytes int64 `json:"maxRequestBodyBytes"`
}

type runs struct {
	PauseResume pauseResume `json:"pauseResume"`
}

type pauseResume struct {
	Supported     bool     `json:"supported"`
	DrainPolicies []string `json:"drainPolicies"`
}

// replay describes the supported forks.
type replay struct {
	Supported   bool     `json:"supported"`
	Modes       []string `json:"modes"`
	Suppression string   `json:"sideEffectSuppression"`
}

type interrupts struct {
	Supported bool             `json:"supported"`
	Kinds     []interrupt.Kind `json:"kinds"`
	Profiles  []string         `json:"profiles"`
}

// interruptProfiles are the protocol's profiles that workflows of this host support (OpenWOP
// host contract §11.1).
var interruptProfiles = []string{
	"openwop-interrupt-quorum", "openwop-interrupt-auth-required", "openwop-interrupt-external-event",
	"openwop-interrupt-cascade-cancel",
}

type observability struct {
	TestSeams testSeams `json:"testSeams"`
}

type testSeams struct {
	OTelScrape        bool `json:"otelScrape"`
	DebugBundleExport bool `json:"debugBundleExport"`
}

type supported struct {
	Supported bool `json:"supported"`
}

type contracts struct {
	Advertised bool `json:"advertised"`
}

type envelopes struct {
	Reasoning   reasoning   `json:"reasoning"`
	TierOne     string      `json:"tierOneSubsetCompliance"`
	Reliability reliability `json:"reliability"`
}

type reasoning struct {
	Supported       bool   `json:"supported"`
	PromptDirective string `json:"promptDirective"`
}

type reliability struct {
	Supported   bool             `json:"supported"`
	Events      []wire.EventType `json:"events"`
	MaxAttempts int32            `json:"maxRetryAttempts"`
	Completion  completion       `json:"completion"`
}

type completion struct {
	DistinguishesTruncation bool  `json:"distinguishesTruncation"`
	Multiplier              int32 `json:"truncationBudgetMultiplier"`
}

type providers struct {
	Supported  []string `json:"supported"`
	SelfHosted []string `json:"selfHosted,omitempty"`
	BYOK       []string `json:"byok,omitempty"`
	Policies   policies `json:"policies"`
	// MaxInlineMediaBytes is 0 if assets are never stored in the log.
	MaxInlineMediaBytes *int64 `json:"maxInlineMediaBytes,omitempty"`
}

// policies are the supported modes of operator rules (OpenWOP host contract §5.8).
type policies struct {
	Modes  []modelgate.PolicyMode `json:"modes"`
	Scopes []string               `json:"scopes"`
}

// agents advertises that the reasoning of models is shown. This host has no other agent features.
type agents struct {
	Reasoning agentReasoning `json:"reasoning"`
}

type agentReasoning struct {
	Verbosity  string `json:"verbosity"`
	TokenLimit int    `json:"tokenLimit"`
	Streaming  bool   `json:"streaming"`
}

// secrets is present if tenants may use their own keys.
type secrets struct {
	Supported  bool     `json:"supported"`
	Scopes     []string `json:"scopes"`
	Resolution string   `json:"resolution"`
}

// compliance is present if sensitive values are kept out of the log.
type compliance struct {
	DefaultMode string `json:"defaultMode"`
}

type usage struct {
	Supported     bool `json:"supported"`
	CostEstimates bool `json:"costEstimates"`
	// Currency is the currency of costs and of the catalogue's prices.
	Currency string `json:"currency"`
}

type idempotency struct {
	Supported     bool   `json:"supported"`
	Layer1Seconds int    `json:"layer1RetentionSeconds"`
	CrossRegion   string `json:"crossRegion"`
}

type restTransport struct {
	ConditionalRunGet bool `json:"conditionalRunGet"`
}

type testing struct {
	MockProviders []string `json:"mockProviders,omitempty"`
	TestKeyPrefix string   `json:"testKeyPrefix"`
}

// RetentionSeconds is the lifetime of idempotency records: a day, as the protocol requires.
const RetentionSeconds = 86400

// reliabilityEvents are the events that the dispatcher emits.
var reliabilityEvents = []wire.EventType{
	wire.EventEnvelopeRetryAttempted, wire.EventEnvelopeRetryExhausted, wire.EventEnvelopeRefusal,
	wire.EventEnvelopeTruncated, wire.EventEnvelopeNLToFormat, wire.EventEnvelopeRecovery,
}

func (s *Source) compute(ctx context.Context) (*document, error) {
	kinds, err := s.acceptor.ListKinds(ctx, &acceptorv1.ListKindsRequest{})
	if err != nil {
		return nil, err
	}
	can, err := s.dispatcher.Describe(ctx, &dispatcherv1.DescribeRequest{})
	if err != nil {
		return nil, err
	}
	d := &document{
		ProtocolVersion: wire.ProtocolVersion, ProtocolVersions: []string{wire.ProtocolVersion},
		Implementation: implementation{version.Name, version.Version},
		EngineVersion:  wire.EngineVersion, EventLogVersion: wire.EventLogSchemaVersion, Transports: []string{"rest", "grpc"},
		GRPC:           grpcOf(s.cfg.GRPCEndpoint()),
		SchemaVersions: map[string]int32{},
		Limits: limits{
			ClarificationRounds: kinds.GetClarificationRounds(), SchemaRounds: kinds.GetSchemaRounds(),
			EnvelopesPerTurn: kinds.GetEnvelopesPerTurn(), MaxNodeExecutions: can.GetMaxNodeExecutions(),
			MaxRunDurationMs: can.GetMaxRunDurationMs(), MaxRequestBodyBytes: s.cfg.MaxBodyBytes,
		},
		Idempotency: idempotency{Supported: true, Layer1Seconds: RetentionSeconds, CrossRegion: "single-region"},
		DebugBundle: supported{true},
		Runs:        runs{PauseResume: pauseResume{Supported: true, DrainPolicies: engine.DrainPolicies()}},
		Interrupts:  interrupts{Supported: true, Kinds: interrupt.Kinds(), Profiles: interruptProfiles},
		Interrupt:   interruptOf(),
		Replay:      replay{Supported: true, Modes: engine.ForkModes(), Suppression: "recorded-outcome"},
		REST:        restTransport{ConditionalRunGet: true},
		Auth:        authOf(s.cfg.Audit),
		Feedback:    feedbackOf(s.cfg.Annotations),
	}
	if len(kinds.GetKinds()) > 0 { // host.aiEnvelope is on
		d.addModels(kinds, can)
	}
	d.Envelopes = append([]string{}, slices.Sorted(maps.Keys(d.SchemaVersions))...)
	if mode := can.GetMaskingMode(); mode != "" {
		d.Compliance = &compliance{DefaultMode: mode}
	}
	d.Runtime = can.GetRuntimeCapabilities()
	d.Webhooks = webhooksOf(s.cfg)
	d.SubWorkflow = subWorkflowOf(can)
	if !s.cfg.TestSeams {
		return d, nil
	}
	d.Testing = &testing{MockProviders: can.GetMockProviders(), TestKeyPrefix: auth.TestKeyPrefix}
	d.Observability = &observability{testSeams{OTelScrape: true, DebugBundleExport: true}}
	d.Fixtures, err = s.fixtures(ctx)
	return d, err
}

// addModels adds the families about models and their envelopes.
func (d *document) addModels(kinds *acceptorv1.ListKindsResponse, can *dispatcherv1.DescribeResponse) {
	for _, k := range kinds.GetKinds() {
		d.SchemaVersions[k.GetName()] = k.GetVersion()
	}
	d.Strictness, d.Contracts = kinds.GetStrictness(), &contracts{Advertised: true}
	d.EnvelopeFamily = &envelopes{
		Reasoning: reasoning{Supported: true, PromptDirective: can.GetReasoningDirective()},
		TierOne:   kinds.GetSubset(),
		Reliability: reliability{
			Supported: true, Events: reliabilityEvents, MaxAttempts: min(can.GetMaxRetryAttempts(), kinds.GetSchemaRounds()+1),
			Completion: completion{DistinguishesTruncation: true, Multiplier: can.GetTruncationMultiplier()},
		},
	}
	d.Usage = &usage{Supported: true, CostEstimates: true, Currency: "USD"}
	d.Agents = &agents{Reasoning: agentReasoning{Verbosity: "full", TokenLimit: 512, Streaming: true}}
	if can.GetGatesModels() {
		d.ModelGate = &modelGate{
			Supported:    true,
			Substitution: !can.GetRefusesSubstitution(),
			Advertised:   append([]string{}, can.GetModelCapabilities()...),
		}
	}
	if len(can.GetProviders()) > 0 {
		d.Providers = &providers{
			Supported:           can.GetProviders(),
			SelfHosted:          can.GetSelfHosted(),
			BYOK:                can.GetByok(),
			Policies:            policies{modelgate.PolicyModes(), []string{"tenant"}},
			MaxInlineMediaBytes: kinds.MaxInlineMediaBytes,
		}
	}
	if len(can.GetByok()) > 0 {
		d.Secrets = &secrets{Supported: true, Scopes: []string{"tenant"}, Resolution: "host-managed"}
	}
	d.Prompts = promptsOf(can.GetPrompts())
}

// fixtures returns the protocol's fixture workflows that this host can execute.
func (s *Source) fixtures(ctx context.Context) ([]string, error) {
	var out []string
	for after := ""; ; {
		res, err := s.dispatcher.ListWorkflows(ctx, &dispatcherv1.ListWorkflowsRequest{Limit: 500, After: after})
		if err != nil {
			return nil, err
		}
		for _, w := range res.GetWorkflows() {
			after = w.GetWorkflowId()
			if w.GetExecutable() && (strings.HasPrefix(after, "conformance-") || strings.HasPrefix(after, "openwop-smoke-")) {
				out = append(out, after)
			}
		}
		if !res.GetMore() {
			return out, nil
		}
	}
}
