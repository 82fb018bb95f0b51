package seam

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// Request is the body of the seam. Other members are ignored.
type Request struct {
	Envelope json.RawMessage `json:"envelope"`
	// HostSupportedEnvelopes replaces the host's catalogue; nil uses the host's.
	HostSupportedEnvelopes *[]string `json:"hostSupportedEnvelopes"`
	// NodeAllowedKinds are the kinds that the contract accepts; nil means no contract.
	NodeAllowedKinds *[]string  `json:"nodeAllowedKinds"`
	RunTrustBoundary wire.Trust `json:"runTrustBoundary"`
	Counters         struct {
		EnvelopesPerTurn    *accept.Counter `json:"envelopesPerTurn"`
		SchemaRounds        *accept.Counter `json:"schemaRounds"`
		ClarificationRounds *accept.Counter `json:"clarificationRounds"`
	} `json:"counters"`
	// SchemaVersionFloor replaces schemaVersions; nil uses the host's.
	SchemaVersionFloor map[string]int `json:"schemaVersionFloor"`
	EnvelopeStrictness string         `json:"envelopeStrictness"`
	PriorCorrelations  []Prior        `json:"priorCorrelations"`
	PersistedDedup     *struct {
		RunID string `json:"runId"`
	} `json:"persistedDedup"`
	// ByokCanaries are registered secrets of this call; nil means the outcome does not report
	// redactions.
	ByokCanaries        *[]Canary   `json:"byokCanaries"`
	ApprovalGateContext bool        `json:"approvalGateContext"`
	BoundInterruptKind  string      `json:"boundInterruptKind"`
	ProjectTo           *Projection `json:"projectTo"`
}

// Prior is an earlier outcome that the caller supplies.
type Prior struct {
	CorrelationID string          `json:"correlationId"`
	Outcome       json.RawMessage `json:"outcome"`
	EnvelopeType  string          `json:"envelopeType"`
}

// Canary is a secret the outcome must not show.
type Canary struct {
	Value    string `json:"value"`
	SecretID string `json:"secretId"`
}

// Projection names the test log for the events.
type Projection struct {
	RunID       string             `json:"runId"`
	NodeID      string             `json:"nodeId"`
	RefusalMode accept.RefusalMode `json:"refusalMode"`
}

// Limits of a request. Suites send a few.
const (
	maxPriors   = 1000
	maxCanaries = 64
)

// Parse reads a body. It does not validate the envelope; the pipeline does.
// Errors: fault.InvalidArgument.
func Parse(body []byte) (*Request, error) {
	envelope, rest, err := splitEnvelope(body)
	if err != nil {
		return nil, badRequest("the body is not a JSON object").Wrap(err)
	}
	var r Request
	if err := strictjson.Read(rest, &r); err != nil {
		return nil, badRequest("the body is not a JSON object of the documented shape").Wrap(err)
	}
	r.Envelope = envelope
	switch {
	case r.Envelope == nil:
		return nil, badRequest("envelope is required")
	case r.RunTrustBoundary != "" && r.RunTrustBoundary != wire.Trusted && r.RunTrustBoundary != wire.Untrusted:
		return nil, badRequest("runTrustBoundary must be trusted or untrusted")
	case r.EnvelopeStrictness != "" && r.EnvelopeStrictness != "warn" && r.EnvelopeStrictness != "strict":
		return nil, badRequest("envelopeStrictness must be warn or strict")
	case r.PersistedDedup != nil && r.PersistedDedup.RunID == "":
		return nil, badRequest("persistedDedup.runId must not be empty")
	case len(r.PriorCorrelations) > maxPriors || r.ByokCanaries != nil && len(*r.ByokCanaries) > maxCanaries:
		return nil, badRequest("too many priorCorrelations or byokCanaries")
	}
	return &r, r.checkProjection()
}

func (r *Request) checkProjection() error {
	switch p := r.ProjectTo; {
	case p == nil:
		return nil
	case p.RunID == "" || len(p.RunID) > maxID || len(p.NodeID) > maxID:
		return badRequest("projectTo.runId must not be empty; runId and nodeId have at most 128 bytes")
	case p.RefusalMode != "" && p.RefusalMode != accept.FailNode && p.RefusalMode != accept.DiscardAndWarn:
		return badRequest("projectTo.refusalMode must be fail-node or discard-and-warn")
	}
	return nil
}

// maxID limits the ids of runs and nodes, in bytes (run-event.schema.json).
const maxID = 128

func badRequest(message string) *fault.Error {
	return fault.New(fault.InvalidArgument, "%s", message)
}

// needsApproval reports whether the envelope is bound to an approval.
func (r *Request) needsApproval() bool {
	return r.ApprovalGateContext || r.BoundInterruptKind == "approval"
}

// contract returns the node's contract; nil if the request has none.
func (r *Request) contract() *accept.Contract {
	if r.NodeAllowedKinds == nil {
		return nil
	}
	return &accept.Contract{Accepts: *r.NodeAllowedKinds}
}

// refusalMode returns the projection's refusal mode; the default is fail-node.
func (r *Request) refusalMode() accept.RefusalMode {
	if r.ProjectTo != nil && r.ProjectTo.RefusalMode != "" {
		return r.ProjectTo.RefusalMode
	}
	return accept.FailNode
}

// defaultNode is the node of a projection without nodeId: node.failed needs a node.
const defaultNode = "envelope-accept"

// nodeID returns the node of the projection: its own, else the envelope's, else
// defaultNode.
func (r *Request) nodeID() string {
	var e struct {
		NodeID string `json:"nodeId"`
	}
	_ = strictjson.Read(r.Envelope, &e) // an invalid envelope has no usable nodeId
	switch {
	case r.ProjectTo.NodeID != "":
		return r.ProjectTo.NodeID
	case e.NodeID != "" && len(e.NodeID) <= maxID:
		return e.NodeID
	default:
		return defaultNode
	}
}
