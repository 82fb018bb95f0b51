package wire

import (
	"encoding/json"
	"fmt"
	"time"
)

// Owner identifies the owner of a run; opaque ids, never personal data.
type Owner struct {
	Tenant    string `json:"tenant"`
	Workspace string `json:"workspace,omitempty"`
	Principal string `json:"principal,omitempty"`
}

// RunRecord is the request that created a run: the body of its start frame. It is written once,
// before any event of the run. A dispatcher needs only the record and the events after it to
// execute the run. Inputs and all other members have passed the redactor.
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
	// Defaults are the definition's variables that the inputs leave unset.
	Defaults map[string]json.RawMessage `json:"defaults,omitempty"`
	// Channels are the channels of the definition, including those its nodes declare by writing to
	// them.
	Channels     map[string]Channel `json:"channels,omitempty"`
	Configurable json.RawMessage    `json:"configurable,omitempty"`
	Tags         []string           `json:"tags,omitempty"`
	Metadata     json.RawMessage    `json:"metadata,omitempty"`
	// Transport is rest, mcp, a2a or ui; empty for gRPC, which has no value in
	// the protocol's enum (OpenWOP host contract §3.4).
	Transport string `json:"transport,omitempty"`
	// TrustBoundary is the trust of the run's inputs.
	TrustBoundary Trust `json:"trustBoundary,omitempty"`
	// RequestDigest identifies the creating request for idempotent retries.
	RequestDigest string `json:"requestDigest,omitempty"`
	TestKey       bool   `json:"testKey,omitempty"`
	// DurationMs is the time limit of the run from run.started, as set by its workflow or its
	// creator. Time in which the run is paused or waits for an answer does not count. 0 means no
	// limit. In records without WorkMs it includes the host's limit.
	DurationMs int64 `json:"durationMs,omitempty"`
	// WorkMs is the host's limit on the run. Time in which the run only waits for core.delay does
	// not count either. 0 in records of earlier versions.
	WorkMs int64 `json:"workMs,omitempty"`
	// MaxExecutions is how many nodes the run may start; 0 in records of earlier versions.
	MaxExecutions int    `json:"maxExecutions,omitempty"`
	Traceparent   string `json:"traceparent,omitempty"`
	CreatedAt     string `json:"createdAt"`
	EngineVersion int    `json:"engineVersion"`
	// Opened marks a run that an external executor drives: it has no definition here, and
	// dispatchers
	// ignore it.
	Opened bool `json:"opened,omitempty"`
	// CredentialRef names the tenant's own key for the run's model calls; empty means the host's. It is
	// not
	// the key itself.
	CredentialRef string `json:"credentialRef,omitempty"`
	// NoSecrets: an opened run uses secrets neither of its own nor of its tenant. NoTenantSecrets:
	// its tenant has none. See Registration.
	NoSecrets       bool `json:"noSecrets,omitempty"`
	NoTenantSecrets bool `json:"noTenantSecrets,omitempty"`
	// Masking is the form of sensitive values in this record and in the run's events: mask, omit or
	// hash; empty if there are none. The clear values are stored elsewhere while the run lasts.
	Masking string `json:"masking,omitempty"`
	// Fork is nil unless the run is a fork, Parent unless it is a child.
	Fork   *Fork   `json:"fork,omitempty"`
	Parent *Parent `json:"parent,omitempty"`
	// Schedule is nil if the workflow sets neither priority nor limits.
	Schedule *Schedule `json:"schedule,omitempty"`
}

// ForkMode determines what a fork does with the recorded events of its source.
type ForkMode string

// The two modes of a fork.
const (
	ForkReplay ForkMode = "replay"
	ForkBranch ForkMode = "branch"
)

// Fork names the source of a fork and where the fork diverges from it.
type Fork struct {
	SourceRunID string   `json:"sourceRunId"`
	Mode        ForkMode `json:"mode"`
	// FromSeq is the first sequence the fork produces itself.
	FromSeq int `json:"fromSeq"`
	// Head is the number of events that the fork follows: those of the source when it was forked,
	// for a replay without the cancellation that ended it.
	Head int `json:"head"`
	// Traceparent is the source's; empty if it had none.
	Traceparent string `json:"traceparent,omitempty"`
	// Said are the votes and questions at gates that are open at the end of the copied history (see
	// Ends), in the form of notes. No event records them.
	Said []json.RawMessage `json:"said,omitempty"`
	// Since is set in a replay: when its source, or the source of that, was created.
	Since string `json:"since,omitempty"`
	// Edited is nil unless the fork, or a source of it, has edited nodes.
	Edited *Edited `json:"edited,omitempty"`
}

// Ends returns how many events of the source's history the fork has: for a branch those before it
// starts, for a replay all.
func (f *Fork) Ends() int {
	if f.Mode == ForkReplay {
		return f.Head
	}
	return f.FromSeq
}

// Since returns when the run's time began; for a replay, that of its source.
func (r *RunRecord) Since() string {
	if r.Replays() && r.Fork.Since != "" {
		return r.Fork.Since
	}
	return r.CreatedAt
}

// Ages reports whether a channel of the run drops old entries.
func (r *RunRecord) Ages() bool {
	for _, c := range r.Channels {
		if c.TTLMillis > 0 {
			return true
		}
	}
	return false
}

// Copied returns how many events of the run's log are copies of its source's; 0 for a run that is
// not a fork.
func (r *RunRecord) Copied() int {
	if r.Fork == nil {
		return 0
	}
	return r.Fork.FromSeq
}

// Parent is the node that started the run as its child.
type Parent struct {
	RunID      string `json:"runId"`
	WorkflowID string `json:"workflowId"`
	NodeID     string `json:"nodeId"`
	// Attempt is the 0-based attempt of the node.
	Attempt int `json:"attempt"`
	// Depth is the number of ancestors: 1 for the child of a top-level run.
	Depth int `json:"depth"`
	// Awaited: the node continues when the child has ended. Cascade: the child is cancelled with
	// its
	// parent.
	Awaited bool `json:"awaited,omitempty"`
	Cascade bool `json:"cascade,omitempty"`
}

// Replays reports whether the run must not have any external effect.
func (r *RunRecord) Replays() bool { return r.Fork != nil && r.Fork.Mode == ForkReplay }

// Registration names whose secrets must be registered with the redactor, even if there are none,
// before anything of a run is recorded or shown (OpenWOP envelope contract §11, registry).
type Registration struct {
	Run, Tenant bool
	// Told names the registered secrets in the redactor's terms; the redactor must have all of
	// them.
	Told []string
}

// Registration returns what the run requires. A run of this host has its own secrets if it uses its
// tenant's key, and its dispatcher registers them. The secrets of an opened run are known only to
// its executor, so both are required unless the record says otherwise.
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
	// RetryAfter is the minimum wait before another attempt. It is not part of the payload; the
	// delay of node.retried reflects it.
	RetryAfter time.Duration `json:"-"`
	// Capacity: the peer had no capacity for the call. The node waits exactly RetryAfter and tries
	// again without using up a retry. It is not part of the payload; the wait is recorded as
	// node.retried.
	Capacity bool `json:"-"`
	// Retries are the retries of a node if neither the node nor its workflow sets any. They are not
	// part of the payload.
	Retries int64 `json:"-"`
	// Next is the model to call instead; nil for none. It is not part of the payload; node.retried
	// records it in the error's details.
	Next *NextModel `json:"-"`
	// Turn is the form of a model's answer that the host chose; empty for none. It is a member of
	// node.failed, not of the error.
	Turn string `json:"-"`
	// CausationID is the correlationId of the rejected envelope; empty if none. It belongs to
	// node.failed,
	// not to its payload.
	CausationID string `json:"-"`
}

// NextModel is a model of a node's onError.models, which is called because the one before it failed.
type NextModel struct {
	// Index is its index in the list.
	Index    int    `json:"index"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
}
