package seam

import (
	"context"
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/acceptor/accept"
)

// Canaries registers secrets for the duration of one call.
type Canaries interface {
	// RegisterCanaries registers the canaries with the redactor, in a new scope.
	// closeScope forgets them. Errors: fault.InvalidArgument for unusable canaries,
	// fault.ServiceUnavailable.
	RegisterCanaries(ctx context.Context, tenant string, canaries []Canary) (scope Scope, closeScope func(), err error)
}

// Scope is the scope of canaries, and their registrations.
type Scope struct {
	Run           subject.Run
	Registrations []string
}

// Exerciser serves the seam.
type Exerciser struct {
	Kinds    accept.Kinds
	Redactor accept.Redactor
	Canaries Canaries
	Store    Store
	Log      TestLog
	Clock    accept.Clock
	// Policy is the host's own.
	Policy accept.Policy
	// Assets stores assets that are too large for a log; nil refuses them.
	Assets accept.Assets
}

// Exercise runs the pipeline on the envelope of one request and returns the
// EnvelopeOutcome. Errors: fault.InvalidArgument for an invalid body,
// fault.ServiceUnavailable when redactor or store are unreachable.
func (e *Exerciser) Exercise(ctx context.Context, tenant string, body []byte) (json.RawMessage, error) {
	req, err := Parse(body)
	if err != nil {
		return nil, err
	}
	policy, err := e.policyFor(ctx, tenant, req)
	if err != nil {
		return nil, err
	}
	scope, closeScope, err := e.redactionScope(ctx, tenant, req)
	if err != nil {
		return nil, err
	}
	defer closeScope()

	l := &ledger{store: e.Store, log: e.Log, tenant: tenant, req: req}
	kinds := catalogue{host: e.Kinds, supported: req.HostSupportedEnvelopes, floor: req.SchemaVersionFloor}
	pipeline := accept.New(kinds, scopedRedactor{e.Redactor, scope.Run}, l, e.Clock, policy)
	if e.Assets != nil {
		pipeline.WithAssets(e.Assets)
	}
	in := acceptRequest(tenant, req)
	// Fail if the redactor loses the canaries.
	in.Registration.Run, in.Registration.Told = scope.Run.RunID != "", scope.Registrations
	res, err := pipeline.Run(ctx, in)
	if err != nil {
		return nil, err
	}
	if res.Recalled {
		return res.Outcome, nil // without projection
	}
	if res.Refusal != nil {
		return l.recordRefusal(ctx, res)
	}
	return res.Outcome, l.trace(ctx, res.Attributes)
}

// acceptRequest returns the envelope in the context that the body sets.
func acceptRequest(tenant string, req *Request) accept.Request {
	r := accept.Request{
		Target:   accept.Target{Run: subject.Run{Tenant: tenant}},
		Document: req.Envelope, Contract: req.contract(), Mode: req.refusalMode(), Boundary: req.RunTrustBoundary,
		Counters: accept.Counters{
			EnvelopesPerTurn: req.Counters.EnvelopesPerTurn, SchemaRounds: req.Counters.SchemaRounds,
			ClarificationRounds: req.Counters.ClarificationRounds,
		},
		ApprovalContext: req.needsApproval(),
	}
	if req.ProjectTo != nil {
		r.Run.RunID, r.NodeID = req.ProjectTo.RunID, req.nodeID()
	}
	return r
}

// scopedRedactor redacts with the secrets of one scope, for any run.
type scopedRedactor struct {
	accept.Redactor

	scope subject.Run
}

// Redact redacts with the secrets of the scope.
func (s scopedRedactor) Redact(ctx context.Context, _ subject.Run, in accept.Texts) (accept.Texts, int, error) {
	return s.Redactor.Redact(ctx, s.scope, in)
}

// policyFor returns the host's policy with the changes of the request and the overlay.
func (e *Exerciser) policyFor(ctx context.Context, tenant string, req *Request) (accept.Policy, error) {
	p := e.Policy
	p.AnyRequestedKind = req.HostSupportedEnvelopes == nil
	if req.EnvelopeStrictness != "" {
		p.Strict = req.EnvelopeStrictness == "strict"
	}
	value, set, err := e.Store.Capability(ctx, tenant, CapabilityEnvelopes)
	if err != nil {
		return p, fmt.Errorf("capability overlay: %w", err)
	}
	p.Disabled = p.Disabled && !set || set && !value
	return p, nil
}

// redactionScope returns the scope whose secrets are redacted: the tenant, or a new
// scope if the request has canaries.
func (e *Exerciser) redactionScope(ctx context.Context, tenant string, req *Request) (Scope, func(), error) {
	if req.ByokCanaries == nil || len(*req.ByokCanaries) == 0 {
		return Scope{Run: subject.Run{Tenant: tenant}}, func() {}, nil
	}
	return e.Canaries.RegisterCanaries(ctx, tenant, *req.ByokCanaries)
}
