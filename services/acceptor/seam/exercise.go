package seam

import (
	"context"
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/acceptor/accept"
)

// Vault makes secrets known for the time of one call.
type Vault interface {
	// Open gives a scope in which the canaries are known to the redactor. close
	// forgets them. Errors: fault.InvalidArgument for unusable canaries,
	// fault.ServiceUnavailable.
	Open(ctx context.Context, tenant string, canaries []Canary) (scope Scope, closeScope func(), err error)
}

// Scope is where canaries are known, and what the redactor was told there.
type Scope struct {
	Run  subject.Run
	Told []string
}

// Exerciser serves the seam.
type Exerciser struct {
	Kinds    accept.Kinds
	Redactor accept.Redactor
	Vault    Vault
	Store    Store
	Log      TestLog
	Clock    accept.Clock
	// Policy is the host's own.
	Policy accept.Policy
	// Assets keeps what is too large for a log; nil: nobody does.
	Assets accept.Assets
}

// Exercise runs the pipeline on the document of one request and gives the
// EnvelopeOutcome. Errors: fault.InvalidArgument for an unusable body,
// fault.ServiceUnavailable when redactor or store cannot be reached.
func (x *Exerciser) Exercise(ctx context.Context, tenant string, body []byte) (json.RawMessage, error) {
	req, err := Parse(body)
	if err != nil {
		return nil, err
	}
	policy, err := x.policy(ctx, tenant, req)
	if err != nil {
		return nil, err
	}
	scope, closeScope, err := x.scope(ctx, tenant, req)
	if err != nil {
		return nil, err
	}
	defer closeScope()

	l := &ledger{store: x.Store, log: x.Log, tenant: tenant, req: req}
	kinds := catalogue{host: x.Kinds, supported: req.HostSupportedEnvelopes, floor: req.SchemaVersionFloor}
	pipeline := accept.New(kinds, scoped{x.Redactor, scope.Run}, l, x.Clock, policy)
	if x.Assets != nil {
		pipeline.Keeping(x.Assets)
	}
	in := request(tenant, req)
	// A redactor that has lost them lets nothing through.
	in.Registration.Run, in.Registration.Told = scope.Run.RunID != "", scope.Told
	res, err := pipeline.Run(ctx, in)
	if err != nil {
		return nil, err
	}
	if res.Recalled {
		return res.Outcome, nil // projects nothing
	}
	if res.Refusal != nil {
		return l.refused(ctx, res)
	}
	return res.Outcome, l.trace(ctx, res.Facts)
}

// request is the envelope in the surroundings the body gives it.
func request(tenant string, req *Request) accept.Request {
	r := accept.Request{
		Place:    accept.Place{Run: subject.Run{Tenant: tenant}},
		Document: req.Envelope, Contract: req.contract(), Mode: req.refusalMode(), Boundary: req.RunTrustBoundary,
		Counters: accept.Counters{
			EnvelopesPerTurn: req.Counters.EnvelopesPerTurn, SchemaRounds: req.Counters.SchemaRounds,
			ClarificationRounds: req.Counters.ClarificationRounds,
		},
		ApprovalContext: req.approval(),
	}
	if req.ProjectTo != nil {
		r.Run.RunID, r.NodeID = req.ProjectTo.RunID, req.node()
	}
	return r
}

// scoped redacts with the secrets of one scope, whatever the run.
type scoped struct {
	accept.Redactor

	scope subject.Run
}

// Redact scrubs with the secrets of the scope.
func (s scoped) Redact(ctx context.Context, _ subject.Run, in accept.Texts) (accept.Texts, int, error) {
	return s.Redactor.Redact(ctx, s.scope, in)
}

// policy is the host's, changed as the request and the overlay want it.
func (x *Exerciser) policy(ctx context.Context, tenant string, req *Request) (accept.Policy, error) {
	p := x.Policy
	p.AnyRequestedKind = req.HostSupportedEnvelopes == nil
	if req.EnvelopeStrictness != "" {
		p.Strict = req.EnvelopeStrictness == "strict"
	}
	value, set, err := x.Store.Capability(ctx, tenant, CapabilityEnvelopes)
	if err != nil {
		return p, fmt.Errorf("capability overlay: %w", err)
	}
	p.Disabled = set && !value
	return p, nil
}

// scope is where the secrets of the call are known: the tenant, or a scope of
// its own when there are canaries.
func (x *Exerciser) scope(ctx context.Context, tenant string, req *Request) (Scope, func(), error) {
	if req.ByokCanaries == nil || len(*req.ByokCanaries) == 0 {
		return Scope{Run: subject.Run{Tenant: tenant}}, func() {}, nil
	}
	return x.Vault.Open(ctx, tenant, *req.ByokCanaries)
}
