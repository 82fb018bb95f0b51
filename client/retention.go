package client

import (
	"context"
	"encoding/json"
	"net/http"
)

const (
	holdFeature      = "legal holds"
	retentionFeature = "retention of runs"
)

// Hold is a legal hold of a run.
type Hold struct {
	RunID  string `json:"runId"`
	Reason string `json:"reason"`
	// HeldBy is the id of the key that set it, Since when.
	HeldBy string `json:"heldBy"`
	Since  string `json:"since"`
}

// HoldPage is one page of holds, by run id.
type HoldPage struct {
	Holds      []Hold          `json:"holds"`
	NextCursor string          `json:"nextCursor"`
	Doc        json.RawMessage `json:"-"`
}

// Hold sets the legal hold of a run, which forbids its erasure. A run that has a hold keeps it.
func (c *Client) Hold(ctx context.Context, runID, reason string) (*Answer, error) {
	r := request{path: runPath(runID) + "/hold", feature: holdFeature, runID: runID}
	return c.write(ctx, r, map[string]any{"reason": reason})
}

// Release removes the legal hold of a run, if it has one.
func (c *Client) Release(ctx context.Context, runID string) (*Answer, error) {
	return c.do(ctx, request{method: http.MethodDelete, path: runPath(runID) + "/hold", feature: holdFeature, runID: runID})
}

// Holds reads a page of legal holds.
func (c *Client) Holds(ctx context.Context, limit int, cursor string) (*HoldPage, error) {
	out := &HoldPage{}
	query := values("limit", number(limit), "cursor", cursor)
	a, err := c.list(ctx, request{path: "/v1/holds", query: query, feature: holdFeature}, "holds", out)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, nil
}

// Retention describes how long the tenant's runs are kept after their end.
type Retention struct {
	// Retention is that of workflows that set none: an age such as 90d, or unlimited.
	Retention string `json:"retention"`
	// Now is the time that retention counts with.
	Now string `json:"now"`
	// Runs are ended runs, Due those whose retention is over, DueNextDay those whose retention ends
	// within a day.
	Runs       int64 `json:"runs"`
	Due        int64 `json:"due"`
	DueNextDay int64 `json:"dueNextDay"`
	Holds      int64 `json:"holds"`
	Ages       []struct {
		FromDays int   `json:"fromDays"`
		ToDays   int   `json:"toDays"` // 0 means no limit
		Runs     int64 `json:"runs"`
	} `json:"ages"`
	Workflows []WorkflowRetention `json:"workflows"`
	Doc       json.RawMessage     `json:"-"`
}

// WorkflowRetention is the retention of a workflow.
type WorkflowRetention struct {
	WorkflowID string `json:"workflowId"`
	Retention  string `json:"retention"`
	// Source is workflow, tenant or installation.
	Source     string `json:"source"`
	Oldest     string `json:"oldest"`
	Runs       int64  `json:"runs"`
	Due        int64  `json:"due"`
	DueNextDay int64  `json:"dueNextDay"`
}

// Retention reads the retention of the tenant's runs.
func (c *Client) Retention(ctx context.Context) (*Retention, error) {
	out := &Retention{}
	a, err := c.into(ctx, request{method: http.MethodGet, path: "/v1/retention", feature: retentionFeature}, out)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, nil
}

// Erasure selects ended runs to erase.
type Erasure struct {
	// Filter has the terms of the list of runs, EndedBefore is an RFC 3339 time. All selects all ended
	// runs, without the other two.
	Filter, EndedBefore string
	All                 bool
	DryRun              bool
	Cursor              string
}

// Erased is the outcome for one page of runs.
type Erased struct {
	Erased  int `json:"erased"`
	Refused []struct {
		RunID   string `json:"runId"`
		Error   string `json:"error"`
		Message string `json:"message"`
	} `json:"refused"`
	NextCursor string `json:"nextCursor"`
}

// Erase erases the ended runs of one page of the list of runs. Repeat it with NextCursor until that is
// empty.
func (c *Client) Erase(ctx context.Context, e Erasure) (*Erased, error) {
	body := members("filter", e.Filter, "endedBefore", e.EndedBefore, "cursor", e.Cursor)
	if e.All {
		body["all"] = true
	}
	if e.DryRun {
		body["dryRun"] = true
	}
	body["limit"] = 200
	out := &Erased{}
	_, err := c.into(ctx, request{method: http.MethodPost, path: "/v1/runs:erase", body: body, feature: "erasing runs in bulk"}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Archiving selects ended runs to write to the archive of the host.
type Archiving struct {
	// RunIDs are up to 100 runs; the other selections are then empty.
	RunIDs []string
	// Filter has the terms of the list of runs, EndedBefore is an RFC 3339 time. All selects all ended
	// runs, without the other two.
	Filter, EndedBefore string
	All                 bool
	DryRun              bool
	Cursor              string
}

// Archived is the outcome for the named runs, or one page of runs.
type Archived struct {
	Archived int `json:"archived"`
	Refused  []struct {
		RunID   string `json:"runId"`
		Error   string `json:"error"`
		Message string `json:"message"`
	} `json:"refused"`
	NextCursor string `json:"nextCursor"`
}

// Archive writes ended runs to the archive of the host. A run is written once, however often it is
// archived. Repeat it with NextCursor until that is empty.
func (c *Client) Archive(ctx context.Context, r Archiving) (*Archived, error) {
	body := members("filter", r.Filter, "endedBefore", r.EndedBefore, "cursor", r.Cursor)
	if r.All {
		body["all"] = true
	}
	if r.DryRun {
		body["dryRun"] = true
	}
	if len(r.RunIDs) > 0 {
		body["runIds"] = r.RunIDs
	}
	out := &Archived{}
	_, err := c.into(ctx, request{method: http.MethodPost, path: "/v1/runs:archive", body: body, feature: "archiving runs"}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// RunArchive exports the archive of a run that has ended: its debug bundle with all events, and a
// chain of hashes. The answer's bytes are those that the hashes cover.
func (c *Client) RunArchive(ctx context.Context, runID string) (*Answer, error) {
	return c.do(ctx, request{
		method: http.MethodGet, path: runPath(runID) + "/archive", feature: "archives of runs", runID: runID,
	})
}

// EraseTenant erases everything of the key's tenant except its audit log; its runs must be erased before.
func (c *Client) EraseTenant(ctx context.Context) (*Answer, error) {
	return c.write(ctx, request{path: "/v1/tenant:erase", feature: "erasing a tenant"}, map[string]any{})
}
