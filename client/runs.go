package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// StartRun is a request to start a run. Inputs and Configurable are JSON objects.
type StartRun struct {
	WorkflowID   string          `json:"workflowId"`
	Inputs       json.RawMessage `json:"inputs,omitempty"`
	Configurable json.RawMessage `json:"configurable,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
	ScopeID      string          `json:"scopeId,omitempty"`
	CallbackURL  string          `json:"callbackUrl,omitempty"`
	// Key is the Idempotency-Key: the same key and request return the same run. Empty generates one.
	Key string `json:"-"`
}

// Started is a new run.
type Started struct {
	RunID     string      `json:"runId"`
	Status    wire.Status `json:"status"`
	EventsURL string      `json:"eventsUrl"`
	// SourceRunID, FromSeq and Mode are set for forks.
	SourceRunID string `json:"sourceRunId,omitempty"`
	FromSeq     int    `json:"fromSeq,omitempty"`
	Mode        string `json:"mode,omitempty"`
	Replayed    bool   `json:"-"`
	// Doc is the original answer.
	Doc json.RawMessage `json:"-"`
}

// Start creates a run.
func (c *Client) Start(ctx context.Context, s StartRun) (*Started, error) {
	return c.started(ctx, request{method: http.MethodPost, path: "/v1/runs", body: s, key: s.Key})
}

func (c *Client) started(ctx context.Context, r request) (*Started, error) {
	out := &Started{}
	a, err := c.into(ctx, r, out)
	if err != nil {
		return nil, err
	}
	out.Replayed, out.Doc = a.Replayed, a.Body
	return out, nil
}

// Fork is a request to fork a run.
type Fork struct {
	// Mode is replay or branch.
	Mode string `json:"mode"`
	// FromSeq is the first event to repeat; nil uses the host's default.
	FromSeq *int     `json:"fromSeq,omitempty"`
	Overlay *Overlay `json:"runOptionsOverlay,omitempty"`
	Key     string   `json:"-"`
}

// Overlay has the options of a branch that replace those of its source.
type Overlay struct {
	Configurable json.RawMessage `json:"configurable,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
}

// Fork creates a run from the log of another.
func (c *Client) Fork(ctx context.Context, runID string, f Fork) (*Started, error) {
	return c.started(ctx, request{
		method: http.MethodPost, path: runPath(runID) + ":fork", body: f, key: f.Key, feature: "forks of runs", runID: runID,
	})
}

// Run is a snapshot of a run.
type Run struct {
	runstate.Snapshot
	Standing
	// Doc is the original snapshot.
	Doc json.RawMessage `json:"-"`
}

// Standing is the progress of a run, as far as the host reports it.
type Standing struct {
	LastEventAt string `json:"lastEventAt"`
	// Waits is what the run waits for; nil if it has ended.
	Waits *Wait `json:"waits"`
	// StallsAt is when the run counts as stalled unless it records an event; empty means never.
	StallsAt string `json:"stallsAt"`
	// Quarantine is why the run is quarantined; nil if it is not.
	Quarantine *QuarantinedRun `json:"quarantine"`
}

// Stalled reports whether the run has recorded no event for longer than the host allows.
func (s Standing) Stalled(now time.Time) bool {
	at, err := time.Parse(time.RFC3339, s.StallsAt)
	return err == nil && !now.Before(at)
}

// Run reads the snapshot of a run.
func (c *Client) Run(ctx context.Context, runID string) (*Run, error) {
	out := &Run{}
	a, err := c.get(ctx, runPath(runID), nil, &out.Snapshot)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, json.Unmarshal(a.Body, &struct{ Waybill *Standing }{&out.Standing})
}

// RunQuery selects runs; the zero value selects all.
type RunQuery struct {
	Status, WorkflowID, Tag string
	// Filter is in the host's grammar: status:failed workflow:x since:2h.
	Filter string
	// Text is added to Filter: only runs whose contents have words that begin with those of Text.
	Text string
	// Sort is the order: created, model, lastNode, tokens, cost, duration or waitingSince; empty means
	// created. Order is asc or desc; empty means desc.
	Sort, Order string
	Limit       int
	Cursor      string
}

// RunSummary is a row of the list of runs.
type RunSummary struct {
	RunID       string      `json:"runId"`
	WorkflowID  string      `json:"workflowId"`
	Status      wire.Status `json:"status"`
	CreatedAt   string      `json:"createdAt"`
	StartedAt   string      `json:"startedAt"`
	CompletedAt string      `json:"completedAt"`
	Tags        []string    `json:"tags"`
	ErrorCode   string      `json:"errorCode"`
	// LastSequence is the sequence of the last event; -1 before the first.
	LastSequence int `json:"lastSequence"`
	// Stalled is true if the run has recorded no event for longer than the host allows.
	Stalled bool `json:"stalled"`
	// Waits is what the run waits for; nil if it has ended or the host does not report it.
	Waits *Wait `json:"waits"`
	// Quarantine is why the run is quarantined; nil if it is not.
	Quarantine *QuarantinedRun `json:"quarantine"`
	// Model is the model of the last call, LastNode the node of the last event of a node.
	Model    string `json:"model"`
	LastNode string `json:"lastNode"`
	// InputTokens and OutputTokens are nil without a model call, CostUSD is nil if it is unknown.
	InputTokens  *int64   `json:"inputTokens"`
	OutputTokens *int64   `json:"outputTokens"`
	CostUSD      *float64 `json:"costUsd"`
	// DurationMs is nil until the run has ended.
	DurationMs *int64 `json:"durationMs"`
	// WaitingSince is the start of a wait for a person or another system; empty without a wait.
	WaitingSince string `json:"waitingSince"`
	// InputPreview is the beginning of the redacted inputs.
	InputPreview string `json:"inputPreview"`
	// Doc is the original row.
	Doc json.RawMessage `json:"-"`
}

// Wait is what a run waits for.
type Wait struct {
	// For is dispatcher, node, timer, approval, input, external, run, resume or cancellation.
	For       string `json:"for"`
	NodeID    string `json:"nodeId"`
	Attempt   int    `json:"attempt"`
	DueAt     string `json:"dueAt"`
	Questions int    `json:"questions"`
	// Since is the start of the wait, HeldBy the dispatcher with the run; empty if unknown.
	Since  string `json:"since"`
	HeldBy string `json:"heldBy"`
	// Limit is the slot or limit that the run waits for; nil if none.
	Limit *Limit `json:"limit"`
}

// Limit is a slot or a limit that a run waits for until a dispatcher executes it.
type Limit struct {
	// Reason is capacity, concurrency, rate or retry, and Scope dispatcher, tenant or workflow.
	Reason string `json:"reason"`
	Scope  string `json:"scope"`
	// Limit is the number of slots, runs or starts; 0 for retry. PeriodMs is the period of a rate.
	Limit    int   `json:"limit"`
	PeriodMs int64 `json:"periodMs"`
	// Keyed is true if the limit applies per value of the workflow's key.
	Keyed bool `json:"keyed"`
	// Since is the start of the wait. Until is the earliest time of execution; empty if that depends
	// on other runs.
	Since string `json:"since"`
	Until string `json:"until"`
}

// UnmarshalJSON keeps the original row.
func (s *RunSummary) UnmarshalJSON(b []byte) error {
	type plain RunSummary
	err := json.Unmarshal(b, (*plain)(s))
	s.Doc = append(json.RawMessage(nil), b...)
	return err
}

// RunPage is one page of runs in the order of the query.
type RunPage struct {
	Runs       []RunSummary    `json:"runs"`
	NextCursor string          `json:"nextCursor"`
	Doc        json.RawMessage `json:"-"`
}

// terms returns the filter with the text.
func (q *RunQuery) terms() string {
	if q.Text == "" {
		return q.Filter
	}
	return strings.TrimSpace(q.Filter + " text:" + strconv.Quote(q.Text))
}

// Runs reads a page of the list of runs.
func (c *Client) Runs(ctx context.Context, q RunQuery) (*RunPage, error) {
	out := &RunPage{}
	a, err := c.list(ctx, request{path: "/v1/runs", feature: "a list of runs", query: values(
		"status", q.Status, "workflowId", q.WorkflowID, "tag", q.Tag,
		"filter", q.terms(), "sort", q.Sort, "order", q.Order, "limit", number(q.Limit), "cursor", q.Cursor,
	)}, "runs", out)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, nil
}

// RunCounts are the numbers of runs per status.
type RunCounts struct {
	Counts []struct {
		Status wire.Status `json:"status"`
		Count  int64       `json:"count"`
	} `json:"counts"`
	Total int64 `json:"total"`
	// Truncated means that more runs match: each number is a lower bound.
	Truncated bool            `json:"truncated"`
	Doc       json.RawMessage `json:"-"`
}

// CountRuns counts the runs that match a filter.
func (c *Client) CountRuns(ctx context.Context, filter string) (*RunCounts, error) {
	out := &RunCounts{}
	a, err := c.list(ctx, request{path: "/v1/runs:count", feature: "counts of runs", query: values("filter", filter)}, "counts", out)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, nil
}

// ErrNoRuns is returned by Latest if there are no runs.
var ErrNoRuns = errors.New("there are no runs")

// Latest reads the newest run's row.
func (c *Client) Latest(ctx context.Context) (*RunSummary, error) {
	page, err := c.Runs(ctx, RunQuery{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(page.Runs) == 0 {
		return nil, ErrNoRuns
	}
	return &page.Runs[0], nil
}

// Cancel ends a run. If it has ended before, Cancel does nothing and returns no error.
func (c *Client) Cancel(ctx context.Context, runID, reason string) (*Answer, error) {
	return c.write(ctx, request{path: runPath(runID) + "/cancel"}, members("reason", reason))
}

// CancelAll cancels up to 100 runs.
func (c *Client) CancelAll(ctx context.Context, runIDs []string, reason string) (*Answer, error) {
	body := members("reason", reason)
	body["runIds"] = runIDs
	return c.write(ctx, request{path: "/v1/runs:bulk-cancel", feature: "cancelling several runs in one request"}, body)
}

// RetryAll starts up to 100 runs again, each as a fork from its first event. The same key starts each
// run once; empty generates one.
func (c *Client) RetryAll(ctx context.Context, runIDs []string, key string) (*Answer, error) {
	r := request{path: "/v1/runs:bulk-retry", feature: "retrying several runs in one request", key: key}
	return c.write(ctx, r, map[string]any{"runIds": runIDs})
}

// Delete erases a run that has ended. If it was erased before, Delete does nothing and returns no
// error.
func (c *Client) Delete(ctx context.Context, runID string) (*Answer, error) {
	return c.do(ctx, request{method: http.MethodDelete, path: runPath(runID), feature: "erasing runs", runID: runID})
}

// Pause stops a run until it is resumed. drain is immediate or drain-current-node; empty uses the
// host's default.
func (c *Client) Pause(ctx context.Context, runID, reason, drain string) (*Answer, error) {
	r := request{path: runPath(runID) + ":pause", feature: "pausing runs", runID: runID}
	return c.write(ctx, r, members("reason", reason, "drainPolicy", drain))
}

// Resume resumes a paused run.
func (c *Client) Resume(ctx context.Context, runID, reason string) (*Answer, error) {
	r := request{path: runPath(runID) + ":resume", feature: "pausing runs", runID: runID}
	return c.write(ctx, r, members("reason", reason))
}

// Diff is the differences of two runs.
type Diff struct {
	A             string      `json:"a"`
	B             string      `json:"b"`
	DivergedAtSeq *int        `json:"divergedAtSeq"`
	EventDiffs    []EventDiff `json:"eventDiffs"`
	StateDiff     map[string]struct {
		A json.RawMessage `json:"a"`
		B json.RawMessage `json:"b"`
	} `json:"stateDiff"`
	Truncated bool            `json:"truncated"`
	Doc       json.RawMessage `json:"-"`
}

// EventDiff is one event that differs between two runs.
type EventDiff struct {
	Seq    int         `json:"seq"`
	Op     string      `json:"op"`
	AEvent *wire.Event `json:"aEvent"`
	BEvent *wire.Event `json:"bEvent"`
}

// Diff compares two runs.
func (c *Client) Diff(ctx context.Context, a, b string) (*Diff, error) {
	out := &Diff{}
	got, err := c.into(ctx, request{
		method: http.MethodGet, path: runPath(a) + ":diff", query: values("against", b), feature: "a comparison of runs", runID: a,
	}, out)
	if err != nil {
		return nil, err
	}
	out.Doc = got.Body
	return out, nil
}

// Bundle exports the debug bundle of a run, which has no prompts and answers.
func (c *Client) Bundle(ctx context.Context, runID string) (*Answer, error) {
	return c.do(ctx, request{
		method: http.MethodGet, path: runPath(runID) + "/debug-bundle", feature: "debug bundles", runID: runID,
	})
}

// write posts a body.
func (c *Client) write(ctx context.Context, r request, body map[string]any) (*Answer, error) {
	r.method, r.body = http.MethodPost, body
	return c.do(ctx, r)
}

func runPath(runID string) string { return "/v1/runs/" + url.PathEscape(runID) }

// members returns an object of the pairs with a value.
func members(pairs ...string) map[string]any {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out[pairs[i]] = pairs[i+1]
		}
	}
	return out
}

// values returns a query of the pairs with a value.
func values(pairs ...string) url.Values {
	out := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out.Set(pairs[i], pairs[i+1])
		}
	}
	return out
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
