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
	Defaults map[string]json.RawMessage `json:"defaults,omitempty"`
	// Channels are those of the definition, and those that its nodes declare by
	// writing to them.
	Channels     map[string]Channel `json:"channels,omitempty"`
	Configurable json.RawMessage    `json:"configurable,omitempty"`
	Tags         []string           `json:"tags,omitempty"`
	Metadata     json.RawMessage    `json:"metadata,omitempty"`
	// Transport is rest, mcp, a2a or ui; empty for gRPC, which has no value in
	// the protocol's enum (OpenWOP host contract §3.4).
	Transport string `json:"transport,omitempty"`
	// TrustBoundary is the trust of what comes in with the run's inputs.
	TrustBoundary Trust `json:"trustBoundary,omitempty"`
	// RequestDigest identifies the creating request for idempotent retries.
	RequestDigest string `json:"requestDigest,omitempty"`
	TestKey       bool   `json:"testKey,omitempty"`
	// DurationMs is how long the run may take from run.started by the wish of its workflow or
	// its creator. Time in which it is paused, or waits for an answer, does not count. 0: they
	// set no limit. In records without WorkMs the host's limit is part of it.
	DurationMs int64 `json:"durationMs,omitempty"`
	// WorkMs is the host's limit on the run. Time in which the run only waits for core.delay does
	// not count either. 0 in records of earlier versions.
	WorkMs int64 `json:"workMs,omitempty"`
	// MaxExecutions is how many nodes the run may start; 0 in records of earlier versions.
	MaxExecutions int    `json:"maxExecutions,omitempty"`
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
	// Masking is how sensitive values stand in this record and in the run's events: mask,
	// omit or hash; empty: there are none. The clear ones are kept elsewhere while the
	// run lasts.
	Masking string `json:"masking,omitempty"`
	// Fork is nil for a run that is no fork, Parent for one that is nobody's child.
	Fork   *Fork   `json:"fork,omitempty"`
	Parent *Parent `json:"parent,omitempty"`
	// Schedule is nil where the workflow sets neither priority nor limits.
	Schedule *Schedule `json:"schedule,omitempty"`
}

// ForkMode says what a fork does with what its source recorded.
type ForkMode string

// The two modes of a fork.
const (
	ForkReplay ForkMode = "replay"
	ForkBranch ForkMode = "branch"
)

// Fork says of which run a run is a fork, and from where on it goes its own way.
type Fork struct {
	SourceRunID string   `json:"sourceRunId"`
	Mode        ForkMode `json:"mode"`
	// FromSeq is the first sequence that is produced anew.
	FromSeq int `json:"fromSeq"`
	// Head is how many events the source had when it was forked.
	Head int `json:"head"`
	// Traceparent is the source's; empty: it had none.
	Traceparent string `json:"traceparent,omitempty"`
	// Said are the votes and questions at gates that stand open where the source's history
	// ends (see Ends), as notes of its log have them: no event tells of them.
	Said []json.RawMessage `json:"said,omitempty"`
	// Since is, in a replay, when its source was created, or what that replayed.
	Since string `json:"since,omitempty"`
}

// Ends is how many events the fork has of its source's history: a branch those before it
// begins, a replay all.
func (f *Fork) Ends() int {
	if f.Mode == ForkReplay {
		return f.Head
	}
	return f.FromSeq
}

// Since is when the run's time began: that of a replay with its source.
func (r *RunRecord) Since() string {
	if r.Replays() && r.Fork.Since != "" {
		return r.Fork.Since
	}
	return r.CreatedAt
}

// Ages reports whether a channel of the run drops what is too old.
func (r *RunRecord) Ages() bool {
	for _, c := range r.Channels {
		if c.TTLMillis > 0 {
			return true
		}
	}
	return false
}

// Copied is how many events of the run's log are its source's; 0 for a run that is no fork.
func (r *RunRecord) Copied() int {
	if r.Fork == nil {
		return 0
	}
	return r.Fork.FromSeq
}

// Parent is the node of a run that started a run as its child.
type Parent struct {
	RunID      string `json:"runId"`
	WorkflowID string `json:"workflowId"`
	NodeID     string `json:"nodeId"`
	// Attempt is the 0-based attempt of the node.
	Attempt int `json:"attempt"`
	// Depth is how many runs are above: 1 for the child of a run that nobody started.
	Depth int `json:"depth"`
	// Awaited says that the node goes on when the child has ended, Cascade that the
	// child is cancelled with its parent.
	Awaited bool `json:"awaited,omitempty"`
	Cascade bool `json:"cascade,omitempty"`
}

// Replays reports that nothing of the run may reach anybody outside.
func (r *RunRecord) Replays() bool { return r.Fork != nil && r.Fork.Mode == ForkReplay }

// Registration says whose secrets the redactor must have been told, be there none,
// before anything is recorded or shown of a run (OpenWOP envelope contract §11,
// registry).
type Registration struct {
	Run, Tenant bool
	// Told names what was registered, in the redactor's words: it has to know all of it.
	Told []string
}

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
	// Capacity says that the peer had no room for the call: the node waits for RetryAfter,
	// which is the whole pause then, and tries again without using up a retry. It is not
	// part of the payload; the wait is recorded as node.retried.
	Capacity bool `json:"-"`
	// CausationID is the correlationId of the envelope that was refused; empty: none
	// was. It is that of node.failed, no part of its payload.
	CausationID string `json:"-"`
}
