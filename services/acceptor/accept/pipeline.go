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

// step is one station of the pipeline. It passes an envelope on with (nil,
// nil), or refuses it; an error says that nothing was decided.
type step struct {
	name string
	run  func(ctx context.Context, p *passage) (*Refusal, error)
	// whole marks steps that a fragment of a streamed envelope does not take: it
	// is judged, but it is not counted, recorded or bound (OpenWOP envelope
	// contract §2, PartialInfo).
	whole bool
}

// order is the normative order (OpenWOP envelope contract §6). Nothing in it
// may be reordered or skipped. Step 1, finding documents in the text of a
// model, is the dispatcher's; 12 is what remains when all of these have passed.
func order() []step {
	return []step{
		{name: "capability", run: capability},        // 0
		{name: "shape", run: shape},                  // 2
		{name: "kind", run: kind},                    // 3
		{name: "version", run: version, whole: true}, // 4a
		{name: "payload", run: payload, whole: true}, // 4b
		{name: "contract", run: contract},            // 5
		{name: "limits", run: limits, whole: true},   // 6
		{name: "redact", run: redact},                // 7
		{name: "trust", run: trust},                  // 8
		{name: "approval", run: approval},            // 8b
		{name: stepDedup, run: dedup, whole: true},   // 9
		{name: "asset", run: asset, whole: true},     // 10, what does not go into the log
		{name: "route", run: route, whole: true},     // 10
		{name: "record", run: record, whole: true},   // 11
	}
}

// stepDedup is where a passage goes back to when it lost the race to record.
const stepDedup = "dedup"

// Policy is what the host has decided about envelopes.
type Policy struct {
	// Strict refuses a schemaVersion below the advertised one (envelopeStrictness).
	Strict bool
	// Disabled switches the host capability host.aiEnvelope off.
	Disabled bool
	// AnyRequestedKind lets schema.request ask for kinds that are not advertised;
	// only for a test seam that names no catalogue (OpenWOP envelope contract
	// §24, C6).
	AnyRequestedKind bool
	// MaxInlineBytes is the largest asset that is recorded within its payload; 0:
	// none is.
	MaxInlineBytes int
	// MaxMediaBytes is the longest base64 of an asset that is taken, in characters;
	// 0: DefaultMaxMediaBytes.
	MaxMediaBytes int
}

// Pipeline accepts envelopes. It is safe for concurrent use.
type Pipeline struct {
	kinds    Kinds
	redactor Redactor
	ledger   Ledger
	clock    Clock
	policy   Policy
	assets   Assets // nil: assets above the inline cap are refused
	steps    []step
}

// Keeping gives the pipeline a place for assets that are too large for the log.
func (l *Pipeline) Keeping(a Assets) *Pipeline {
	l.assets = a
	return l
}

// New makes a pipeline from its collaborators.
func New(kinds Kinds, redactor Redactor, ledger Ledger, clock Clock, policy Policy) *Pipeline {
	return &Pipeline{kinds: kinds, redactor: redactor, ledger: ledger, clock: clock, policy: policy, steps: order()}
}

// passage is one envelope on its way through the pipeline. Each step reads what
// earlier ones have set.
type passage struct {
	*Pipeline
	req  Request
	env  envelope
	meta meta
	kind Kind
	// carried is the asset within the payload; nil: none, or it has been dealt with.
	carried *carried

	facts      Facts
	embedded   []byte // what a data: URL in the payload holds
	redactions int
	preceding  []wire.Draft // without secrets
	drafts     []wire.Draft
	recalled   *Record // what the ledger knew; valid once looked is true
	looked     bool
	raced      bool    // the first attempt to record lost
	done       *Record // set by the step that ends the passage with an acceptance
}

// Result is what became of an envelope.
type Result struct {
	// Outcome is the EnvelopeOutcome document.
	Outcome json.RawMessage
	// Refusal is set unless the envelope was accepted, or its outcome recalled.
	Refusal *Refusal
	// Recalled says that the outcome was decided earlier.
	Recalled bool
	// Payload is the payload as recorded; nil unless something was.
	Payload json.RawMessage
	// Preceding are those of the request, if they were recorded.
	Preceding []wire.Event
	// Events are those of the outcome.
	Events []wire.Event
	// Head is where the run's log ends, as far as the caller needs to know it.
	Head frame.Head
	// Facts are for spans, logs and the events of a refusal.
	Facts Facts
}

// Unrecorded reports an envelope that left nothing in the log: it was refused, or is a
// fragment.
func (r *Result) Unrecorded() bool { return !r.Recalled && len(r.Events) == 0 }

// Run takes one envelope through all steps. Errors: a *fault.Error
// (ServiceUnavailable when the redactor or the log cannot be reached, Conflict
// when the run has moved on without this envelope, RunNotFound, RunTerminal);
// nothing is recorded then, unless the log's acknowledgement was lost: the same
// request again finds out.
func (l *Pipeline) Run(ctx context.Context, req Request) (*Result, error) {
	p := &passage{Pipeline: l, req: req}
	p.facts = Facts{NodeID: req.NodeID, Floor: Unlisted, Trust: p.resolveTrust(), Traceparent: req.Traceparent}
	for i := 0; i < len(l.steps) && p.done == nil; i++ {
		s := l.steps[i]
		if s.whole && p.env.Partial.IsPartial {
			continue
		}
		refusal, err := s.run(ctx, p)
		switch {
		case errors.Is(err, ErrRaced):
			// A lost compare-and-set goes back to dedup: the winner may have recorded
			// this very envelope.
			p.raced, p.looked = true, false
			i = slices.IndexFunc(l.steps, func(s step) bool { return s.name == stepDedup }) - 1
		case err != nil:
			return nil, fmt.Errorf("accept: %s: %w", s.name, err)
		case refusal != nil:
			return p.refuse(ctx, refusal)
		}
	}
	if p.done == nil {
		return p.passed(), nil
	}
	return p.accepted(), nil
}

// accepted is the result of a passage that was not refused.
func (p *passage) accepted() *Result {
	p.facts.Outcome = StatusOf(p.done.Outcome)
	recalled := p.done == p.recalled
	if recalled { // what the log says of it, whoever asks again
		p.facts.NodeID = nodeOf(p.done.Events)
	}
	return &Result{
		Outcome: p.done.Outcome, Recalled: recalled, Payload: p.done.Payload,
		Preceding: p.done.Preceding, Events: p.done.Events, Head: p.done.Head, Facts: p.facts,
	}
}

// refuse is the result of a refusal. A refused envelope has not passed the
// redactor, yet reason and details go to clients, and paths and types in them
// were written by the model: so they pass it here (OpenWOP envelope contract §11).
func (p *passage) refuse(ctx context.Context, r *Refusal) (*Result, error) {
	if err := p.scrub(ctx, r); err != nil {
		return nil, fmt.Errorf("accept: redact refusal: %w", err)
	}
	doc, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("accept: outcome: %w", err)
	}
	p.facts.Outcome = r.Status
	return &Result{Outcome: doc, Refusal: r, Head: p.req.Head, Facts: p.facts}, nil
}
