package seam

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// Request is the body of the seam. Members it does not name are ignored.
type Request struct {
	Envelope json.RawMessage `json:"envelope"`
	// HostSupportedEnvelopes takes the place of the host's catalogue; nil: the
	// host's own.
	HostSupportedEnvelopes *[]string `json:"hostSupportedEnvelopes"`
	// NodeAllowedKinds are the contract's accepts; nil: no contract.
	NodeAllowedKinds *[]string  `json:"nodeAllowedKinds"`
	RunTrustBoundary wire.Trust `json:"runTrustBoundary"`
	Counters         struct {
		EnvelopesPerTurn    *accept.Counter `json:"envelopesPerTurn"`
		SchemaRounds        *accept.Counter `json:"schemaRounds"`
		ClarificationRounds *accept.Counter `json:"clarificationRounds"`
	} `json:"counters"`
	// SchemaVersionFloor takes the place of schemaVersions; nil: the host's own.
	SchemaVersionFloor map[string]int `json:"schemaVersionFloor"`
	EnvelopeStrictness string         `json:"envelopeStrictness"`
	PriorCorrelations  []Prior        `json:"priorCorrelations"`
	PersistedDedup     *struct {
		RunID string `json:"runId"`
	} `json:"persistedDedup"`
	// ByokCanaries are known secrets of this call; nil: redaction does not report.
	ByokCanaries        *[]Canary   `json:"byokCanaries"`
	ApprovalGateContext bool        `json:"approvalGateContext"`
	BoundInterruptKind  string      `json:"boundInterruptKind"`
	ProjectTo           *Projection `json:"projectTo"`
}

// Prior is an outcome the caller says was decided before.
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

// Projection names the test log that takes the events.
type Projection struct {
	RunID       string             `json:"runId"`
	NodeID      string             `json:"nodeId"`
	RefusalMode accept.RefusalMode `json:"refusalMode"`
}

// Bounds of a request: a suite sends a handful.
const (
	maxPriors   = 1000
	maxCanaries = 64
)

// Parse reads a body. The envelope in it is not looked at: whatever it is, it
// is judged by the pipeline. Errors: fault.InvalidArgument.
func Parse(body []byte) (*Request, error) {
	envelope, rest, err := split(body)
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
		return badRequest("projectTo.runId must not be empty; it and nodeId have at most 128 bytes")
	case p.RefusalMode != "" && p.RefusalMode != accept.FailNode && p.RefusalMode != accept.DiscardAndWarn:
		return badRequest("projectTo.refusalMode must be fail-node or discard-and-warn")
	}
	return nil
}

// maxID bounds the ids of runs and nodes (run-event.schema.json).
const maxID = 128

func badRequest(message string) *fault.Error {
	return fault.New(fault.InvalidArgument, "%s", message)
}

// approval reports whether the envelope is bound to an approval.
func (r *Request) approval() bool { return r.ApprovalGateContext || r.BoundInterruptKind == "approval" }

// contract is the node's contract as far as the request gives one.
func (r *Request) contract() *accept.Contract {
	if r.NodeAllowedKinds == nil {
		return nil
	}
	return &accept.Contract{Accepts: *r.NodeAllowedKinds}
}

// refusalMode is the projection's, fail-node by default.
func (r *Request) refusalMode() accept.RefusalMode {
	if r.ProjectTo != nil && r.ProjectTo.RefusalMode != "" {
		return r.ProjectTo.RefusalMode
	}
	return accept.FailNode
}

// defaultNode stands for the node of a projection that names none: a failed
// node must have a name.
const defaultNode = "envelope-accept"

// node is the node of the projection: the one it names, else the envelope's.
func (r *Request) node() string {
	var e struct {
		NodeID string `json:"nodeId"`
	}
	_ = strictjson.Read(r.Envelope, &e) // a misshapen envelope names none
	switch {
	case r.ProjectTo.NodeID != "":
		return r.ProjectTo.NodeID
	case e.NodeID != "" && len(e.NodeID) <= maxID:
		return e.NodeID
	default:
		return defaultNode
	}
}
