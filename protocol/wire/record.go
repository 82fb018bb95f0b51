package wire

import (
	"encoding/json"
	"fmt"
	"time"
)

// Owner is who a run belongs to; opaque ids, never personal data.
type Owner struct {
	Tenant    string `json:"tenant"`
	Workspace string `json:"workspace,omitempty"`
	Principal string `json:"principal,omitempty"`
}

// RunRecord is what was asked for when a run was created: the body of its
// start frame. It is written once, before anything of the run happens, and
// everything a dispatcher needs to execute the run follows from it and from the
// events after it. Inputs and the rest have passed the redactor.
type RunRecord struct {
	RunID      string `json:"runId"`
	WorkflowID string `json:"workflowId"`
	// WorkflowDigest pins the definition: a run executes the document it started with.
	WorkflowDigest  string                     `json:"workflowDigest"`
	WorkflowVersion string                     `json:"workflowVersion"`
	Owner           Owner                      `json:"owner"`
	ScopeID         string                     `json:"scopeId,omitempty"`
	CallbackURL     string                     `json:"callbackUrl,omitempty"`
	Inputs          map[string]json.RawMessage `json:"inputs,omitempty"`
	// Defaults are the variables the definition fills in where inputs are silent.
	Defaults     map[string]json.RawMessage `json:"defaults,omitempty"`
	Configurable json.RawMessage            `json:"configurable,omitempty"`
	Tags         []string                   `json:"tags,omitempty"`
	Metadata     json.RawMessage            `json:"metadata,omitempty"`
	// Transport is rest, mcp, a2a or ui; empty for gRPC, which has no value in
	// the protocol's enum (OpenWOP host contract §3.4).
	Transport string `json:"transport,omitempty"`
	// TrustBoundary is the trust of what comes in with the run's inputs.
	TrustBoundary Trust `json:"trustBoundary,omitempty"`
	// RequestDigest identifies the creating request for idempotent retries.
	RequestDigest string `json:"requestDigest,omitempty"`
	TestKey       bool   `json:"testKey,omitempty"`
	// DurationMs is how long the run may take from run.started.
	DurationMs    int64  `json:"durationMs,omitempty"`
	Traceparent   string `json:"traceparent,omitempty"`
	CreatedAt     string `json:"createdAt"`
	EngineVersion int    `json:"engineVersion"`
	// Opened marks a run that an executor outside this host carries out: it has no
	// definition here, and no dispatcher works on it.
	Opened bool `json:"opened,omitempty"`
	// CredentialRef names the tenant's own key for the run's model calls; empty: the
	// host's. It is no key.
	CredentialRef string `json:"credentialRef,omitempty"`
	// NoSecrets says of an opened run that neither it nor its tenant has secrets,
	// NoTenantSecrets that its tenant has none; see Registration.
	NoSecrets       bool `json:"noSecrets,omitempty"`
	NoTenantSecrets bool `json:"noTenantSecrets,omitempty"`
}

// Registration says whose secrets the redactor must have been told, be there none,
// before anything is recorded or shown of a run (OpenWOP envelope contract §11,
// registry).
type Registration struct{ Run, Tenant bool }

// Registration is what the run needs. A run of this host has secrets of its own when
// it uses its tenant's key, and whoever works on it registers them; what an opened
// one has, only its executor knows, so both are needed unless it says otherwise.
func (r *RunRecord) Registration() Registration {
	if !r.Opened {
		return Registration{Run: r.CredentialRef != ""}
	}
	return Registration{Run: !r.NoSecrets, Tenant: !r.NoSecrets && !r.NoTenantSecrets}
}

// ParseRunRecord reads the body of a start frame.
func ParseRunRecord(body []byte) (*RunRecord, error) {
	var r RunRecord
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("parse run record: %w", err)
	}
	if r.RunID == "" || r.WorkflowID == "" || r.Owner.Tenant == "" {
		return nil, fmt.Errorf("parse run record: runId, workflowId and owner.tenant are required")
	}
	return &r, nil
}

// NodeError is the error object of node.failed and run.failed payloads.
type NodeError struct {
	Code      string         `json:"code"`
	Message   string         `json:"message"`
	Details   map[string]any `json:"details,omitempty"`
	Retryable bool           `json:"retryable,omitempty"`
	// RetryAfter is the least wait before another attempt. It is not part of the
	// payload; what comes of it is the delay of node.retried.
	RetryAfter time.Duration `json:"-"`
}
