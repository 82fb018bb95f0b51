package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// QuarantinedRun is a run that cannot be loaded or continued.
type QuarantinedRun struct {
	RunID      string `json:"runId"`
	WorkflowID string `json:"workflowId"`
	// Reason is log_damaged, definition_missing, engine_version, panic or cannot_continue.
	Reason string `json:"reason"`
	// Since is when it was quarantined; empty if unknown.
	Since string `json:"since"`
	// NextCheckAt is when the host checks the run again, after Checks checks.
	NextCheckAt string `json:"nextCheckAt"`
	Checks      int    `json:"checks"`
	// Tries is how often a dispatcher received the run before it was quarantined.
	Tries int `json:"tries"`
	// Doc is the original row.
	Doc json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps the original row.
func (r *QuarantinedRun) UnmarshalJSON(b []byte) error {
	type plain QuarantinedRun
	err := json.Unmarshal(b, (*plain)(r))
	r.Doc = append(json.RawMessage(nil), b...)
	return err
}

// QuarantinePage is one page of quarantined runs, by id.
type QuarantinePage struct {
	Runs       []QuarantinedRun `json:"runs"`
	NextCursor string           `json:"nextCursor"`
	Doc        json.RawMessage  `json:"-"`
}

// Quarantined reads a page of quarantined runs.
func (c *Client) Quarantined(ctx context.Context, limit int, cursor string) (*QuarantinePage, error) {
	out := &QuarantinePage{}
	query := values("limit", number(limit), "cursor", cursor)
	a, err := c.list(ctx, request{path: "/v1/quarantine", query: query, feature: quarantineFeature}, "runs", out)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, nil
}

// RetryQuarantined puts a quarantined run back into the queue.
func (c *Client) RetryQuarantined(ctx context.Context, runID string) (*Answer, error) {
	return c.write(ctx, request{path: quarantinePath(runID) + ":retry", feature: quarantineFeature}, map[string]any{})
}

// EndQuarantined ends a quarantined run as cancelled.
func (c *Client) EndQuarantined(ctx context.Context, runID, reason string) (*Answer, error) {
	return c.write(ctx, request{path: quarantinePath(runID) + ":end", feature: quarantineFeature}, members("reason", reason))
}

const quarantineFeature = "a quarantine of runs"

func quarantinePath(runID string) string { return "/v1/quarantine/" + url.PathEscape(runID) }

// Owner is the dispatcher that owns a run.
type Owner struct {
	RunID string `json:"runId"`
	// State is none, owned, released, expired or unknown.
	State string `json:"state"`
	// Owner is the id of the dispatcher process, and Host its host name; empty if unknown.
	Owner string `json:"owner"`
	Host  string `json:"host"`
	// Epoch counts the claims of the run.
	Epoch int `json:"epoch"`
	// Since is when it became the owner, ExpiresAt when its lease expires unless it is
	// renewed; empty if unknown.
	Since     string `json:"since"`
	ExpiresAt string `json:"expiresAt"`
	// Limit is the slot or limit that the run waits for; nil if none. Quarantine is why the run is
	// quarantined; nil if it is not.
	Limit      *Limit          `json:"limit"`
	Quarantine *QuarantinedRun `json:"quarantine"`
	// Doc is the original answer.
	Doc json.RawMessage `json:"-"`
}

// Owner finds the dispatcher that owns a run.
func (c *Client) Owner(ctx context.Context, runID string) (*Owner, error) {
	out := &Owner{}
	a, err := c.into(ctx, request{
		method: http.MethodGet, path: runPath(runID) + ":owner", feature: "the owner of a run", runID: runID,
	}, out)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, nil
}
