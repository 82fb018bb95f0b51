package accept

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
)

// step is one step of the pipeline. It returns nil to continue, or a refusal. After
// an error the envelope is neither accepted nor refused.
type step struct {
	name string
	run  func(ctx context.Context, e *execution) (*Refusal, error)
	// skipFragments marks steps that do not run for a fragment of a streamed envelope.
	// A fragment is validated, but neither counted nor recorded (OpenWOP envelope
	// contract §2, PartialInfo).
	skipFragments bool
}

// order is the normative order (OpenWOP envelope contract §6). Nothing in it
// may be reordered or skipped. Step 1, finding documents in the text of a
// model, is in the dispatcher. Step 12, accepting, follows the last step here.
func order() []step {
	return []step{
		{name: "capability", run: capability},                // 0
		{name: "shape", run: shape},                          // 2
		{name: "kind", run: kind},                            // 3
		{name: "version", run: version, skipFragments: true}, // 4a
		{name: "payload", run: payload, skipFragments: true}, // 4b
		{name: "contract", run: contract},                    // 5
		{name: "limits", run: limits, skipFragments: true},   // 6
		{name: "redact", run: redact},                        // 7
		{name: "trust", run: trust},                          // 8
		{name: "approval", run: approval},                    // 8b
		{name: stepDedup, run: dedup, skipFragments: true},   // 9
		{name: "asset", run: asset, skipFragments: true},     // 10, stores large assets outside the log
		{name: "route", run: route, skipFragments: true},     // 10, drafts the events
		{name: "record", run: record, skipFragments: true},   // 11
	}
}

// stepDedup is the step to repeat after a lost race to record.
const stepDedup = "dedup"

// Policy is the host's configuration for envelopes.
type Policy struct {
	// Strict refuses a schemaVersion below the advertised one (envelopeStrictness).
	Strict bool
	// Disabled switches the host capability host.aiEnvelope off.
	Disabled bool
	// AnyRequestedKind lets schema.request ask for kinds that are not advertised;
	// only for a test seam that names no catalogue (OpenWOP envelope contract
	// §24, C6).
	AnyRequestedKind bool
	// MaxInlineBytes is the largest asset that is recorded in its payload; 0 records
	// no asset inline.
	MaxInlineBytes int
	// MaxMediaBytes is the longest accepted base64 of an asset, in characters; 0 means
	// DefaultMaxMediaBytes.
	MaxMediaBytes int
}

// Pipeline accepts envelopes. It is safe for concurrent use.
type Pipeline struct {
	kinds    Kinds
	redactor Redactor
	ledger   Ledger
	clock    Clock
	policy   Policy
	assets   Assets // nil means assets above the inline limit are refused
	steps    []step
}

// WithAssets sets the store for assets that are too large for the log.
func (p *Pipeline) WithAssets(a Assets) *Pipeline {
	p.assets = a
	return p
}

// New makes a pipeline from its collaborators.
func New(kinds Kinds, redactor Redactor, ledger Ledger, clock Clock, policy Policy) *Pipeline {
	return &Pipeline{kinds: kinds, redactor: redactor, ledger: ledger, clock: clock, policy: policy, steps: order()}
}

// execution is the state of one envelope in the pipeline. Each step reads what
// earlier steps have set.
type execution struct {
	*Pipeline
	req  Request
	env  envelope
	meta meta
	kind Kind
	// asset is the asset in the payload; nil if none, or the asset step has run.
	asset *mediaAsset
	// embedded are the data: URLs in the payload of another kind, by their text; nil if
	// the asset step has run.
	embedded map[string]*embeddedAsset

	attrs        Attributes
	dataURLBytes []byte // the decoded data: URL of the payload
	redactions   int
	preceding    []wire.Draft // redacted
	drafts       []wire.Draft
	previous     *Record // the ledger's record of the correlationId; valid if lookedUp
	lookedUp     bool
	lostRace     bool    // an attempt to record lost the compare-and-set
	recorded     *Record // ends the pipeline: the envelope is accepted
}

// Result is the result of one envelope.
type Result struct {
	// Outcome is the EnvelopeOutcome document.
	Outcome json.RawMessage
	// Refusal is nil if the envelope was accepted, and if Recalled.
	Refusal *Refusal
	// Recalled: the outcome was recorded by an earlier request.
	Recalled bool
	// Payload is the payload as recorded; nil if nothing was recorded.
	Payload json.RawMessage
	// Preceding are the preceding events of the request, if they were recorded.
	Preceding []wire.Event
	// Events are the events of the outcome.
	Events []wire.Event
	// Head is the head of the run for the caller's next append.
	Head frame.Head
	// Attributes are for spans, logs and the events of a refusal.
	Attributes Attributes
}

// Unrecorded reports an envelope without recorded events: it was refused, or it is a
// fragment.
func (r *Result) Unrecorded() bool { return !r.Recalled && len(r.Events) == 0 }

// Run executes all steps for one envelope. Errors are *fault.Error:
// ServiceUnavailable when the redactor or the log is unreachable, Conflict when the
// run has moved on without this envelope, RunNotFound, RunTerminal. After an error
// nothing is recorded, unless the log's acknowledgement was lost. Repeat the same
// request to find out.
func (p *Pipeline) Run(ctx context.Context, req Request) (*Result, error) {
	e := &execution{Pipeline: p, req: req}
	e.attrs = Attributes{
		NodeID:            req.NodeID,
		AdvertisedVersion: Unlisted,
		Trust:             e.resolveTrust(),
		Traceparent:       req.Traceparent,
	}
	for i := 0; i < len(p.steps) && e.recorded == nil; i++ {
		s := p.steps[i]
		if s.skipFragments && e.env.Partial.IsPartial {
			continue
		}
		refusal, err := s.run(ctx, e)
		switch {
		case errors.Is(err, ErrRaced):
			// The winner of the race may have recorded the same envelope.
			e.lostRace, e.lookedUp = true, false
			i = slices.IndexFunc(p.steps, func(s step) bool { return s.name == stepDedup }) - 1
		case err != nil:
			return nil, fmt.Errorf("accept: %s: %w", s.name, err)
		case refusal != nil:
			return e.refusedResult(ctx, refusal)
		}
	}
	if e.recorded == nil {
		return e.fragmentResult(), nil
	}
	return e.acceptedResult(), nil
}

// acceptedResult is the result of an envelope with a record, new or earlier.
func (e *execution) acceptedResult() *Result {
	e.attrs.Outcome = StatusOf(e.recorded.Outcome)
	recalled := e.recorded == e.previous
	if recalled { // the recorded node, not the one of this request
		e.attrs.NodeID = nodeOf(e.recorded.Events)
	}
	return &Result{
		Outcome: e.recorded.Outcome, Recalled: recalled, Payload: e.recorded.Payload,
		Preceding: e.recorded.Preceding, Events: e.recorded.Events, Head: e.recorded.Head, Attributes: e.attrs,
	}
}

// refusedResult is the result of a refusal. Reason and details go to clients, and
// contain paths and types that the model wrote. They are redacted here, since the
// envelope may not have reached the redact step (OpenWOP envelope contract §11).
func (e *execution) refusedResult(ctx context.Context, r *Refusal) (*Result, error) {
	if err := e.redactRefusal(ctx, r); err != nil {
		return nil, fmt.Errorf("accept: redact refusal: %w", err)
	}
	r.bound()
	doc, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("accept: outcome: %w", err)
	}
	e.attrs.Outcome = r.Status
	return &Result{Outcome: doc, Refusal: r, Head: e.req.Head, Attributes: e.attrs}, nil
}
