package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// Capabilities reads the discovery document. It needs no credential.
func (c *Client) Capabilities(ctx context.Context) (*Answer, error) {
	var doc struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	const path = "/.well-known/openwop"
	a, err := c.get(ctx, path, nil, &doc)
	if err == nil && doc.ProtocolVersion == "" {
		err = &ForeignError{URL: c.Base() + path, Status: a.Status, Reason: "no protocolVersion in the document"}
	}
	return a, err
}

// Schema reads the JSON Schema of an envelope kind. It needs no credential.
func (c *Client) Schema(ctx context.Context, kind string) (*Answer, error) {
	return c.do(ctx, request{method: http.MethodGet, path: "/schemas/envelopes/" + url.PathEscape(kind) + ".schema.json"})
}

// OpenInterrupt is an open question of a run.
type OpenInterrupt struct {
	RunID      string                 `json:"runId"`
	WorkflowID string                 `json:"workflowId"`
	Status     wire.Status            `json:"status"`
	Interrupt  runstate.OpenInterrupt `json:"interrupt"`
	// Doc is the original row.
	Doc json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps the original row.
func (o *OpenInterrupt) UnmarshalJSON(b []byte) error {
	type plain OpenInterrupt
	err := json.Unmarshal(b, (*plain)(o))
	o.Doc = append(json.RawMessage(nil), b...)
	return err
}

// InterruptQuery selects open questions; the zero value selects all.
type InterruptQuery struct {
	WorkflowID, Kind string
	// Eligible excludes questions that the caller may not answer.
	Eligible bool
	Limit    int
	Cursor   string
}

// InterruptPage is one page of open questions. It may be empty although another page follows.
type InterruptPage struct {
	Interrupts []OpenInterrupt `json:"interrupts"`
	NextCursor string          `json:"nextCursor"`
	Doc        json.RawMessage `json:"-"`
}

// Interrupts reads a page of open questions, by run, newest first.
func (c *Client) Interrupts(ctx context.Context, q InterruptQuery) (*InterruptPage, error) {
	query := values("workflowId", q.WorkflowID, "kind", q.Kind, "limit", number(q.Limit), "cursor", q.Cursor)
	if q.Eligible {
		query.Set("eligible", "true")
	}
	out := &InterruptPage{}
	a, err := c.list(ctx, request{path: "/v1/interrupts", query: query, feature: "a list of open questions"}, "interrupts", out)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, nil
}

// Resolve answers the question of a run's node. The value is any JSON. With the interruptId of a
// question, a Waybill host answers 409 if the node asks another one by then.
func (c *Client) Resolve(ctx context.Context, runID, nodeID, interruptID string, value json.RawMessage, key string) (*Answer, error) {
	r := request{
		method: http.MethodPost, path: runPath(runID) + "/interrupts/" + url.PathEscape(nodeID),
		body: map[string]any{"resumeValue": value}, key: key,
	}
	if interruptID != "" {
		r.header = http.Header{"Waybill-Interrupt-Id": {interruptID}}
	}
	return c.do(ctx, r)
}

// WorkflowSummary is a row of the list of workflows.
type WorkflowSummary struct {
	WorkflowID string `json:"workflowId"`
	Name       string `json:"name"`
	Version    string `json:"version"`
	Digest     string `json:"digest"`
	// Origin is tenant, or shared for a workflow of the host. File is the name of its file.
	Origin string `json:"origin,omitempty"`
	File   string `json:"file,omitempty"`
	// Warnings are probable mistakes, such as another definition of the id that is hidden.
	Warnings []string `json:"warnings,omitempty"`
}

// WorkflowPage is one page of workflows, by id.
type WorkflowPage struct {
	Workflows  []WorkflowSummary `json:"workflows"`
	NextCursor string            `json:"nextCursor"`
	Doc        json.RawMessage   `json:"-"`
}

// Workflows reads a page of the list of workflows.
func (c *Client) Workflows(ctx context.Context, limit int, cursor string) (*WorkflowPage, error) {
	out := &WorkflowPage{}
	query := values("limit", number(limit), "cursor", cursor)
	a, err := c.list(ctx, request{path: "/v1/workflows", query: query, feature: "a list of workflows"}, "workflows", out)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, nil
}

// WorkflowFinding is a problem or a warning about a definition. Path is a JSON pointer.
type WorkflowFinding struct {
	Path    string `json:"path"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// WorkflowValidation is the result of ValidateWorkflow.
type WorkflowValidation struct {
	Valid    bool              `json:"valid"`
	Problems []WorkflowFinding `json:"problems"`
	Warnings []WorkflowFinding `json:"warnings"`
}

// ValidateWorkflow checks a definition on the host without registering it.
func (c *Client) ValidateWorkflow(ctx context.Context, definition json.RawMessage) (*WorkflowValidation, error) {
	out := &WorkflowValidation{}
	_, err := c.into(ctx, request{
		method: http.MethodPost, path: "/v1/workflows:validate", body: definition, feature: "checks of workflows",
	}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// WorkflowVersion is a version of a workflow.
type WorkflowVersion struct {
	Version string `json:"version"`
	Digest  string `json:"digest"`
	// Current means that new runs use the version.
	Current bool `json:"current"`
}

// WorkflowVersions are the versions of a workflow, the current one first. Doc is the answer.
type WorkflowVersions struct {
	Doc        json.RawMessage   `json:"-"`
	WorkflowID string            `json:"workflowId"`
	Versions   []WorkflowVersion `json:"versions"`
}

// WorkflowVersions lists the versions of a workflow.
func (c *Client) WorkflowVersions(ctx context.Context, id string) (*WorkflowVersions, error) {
	out := &WorkflowVersions{}
	a, err := c.list(ctx, request{path: workflowPath(id) + "/versions", feature: versionsFeature}, "versions", out)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, nil
}

// WorkflowVersion reads a version of a definition; an empty version is the current one.
func (c *Client) WorkflowVersion(ctx context.Context, id, version string) (json.RawMessage, error) {
	var doc struct {
		Version string `json:"version"`
	}
	a, err := c.get(ctx, workflowPath(id), values("version", version), &doc)
	if err != nil {
		return nil, err
	}
	if version != "" && doc.Version != version { // a host of one version reads no query
		return nil, &UnofferedError{Feature: versionsFeature, Reason: fmt.Sprintf("asked for version %s, it returned %s", version, doc.Version)}
	}
	return a.Body, nil
}

const versionsFeature = "versions of workflows"

func workflowPath(id string) string { return "/v1/workflows/" + url.PathEscape(id) }

// DeleteWorkflow deletes a workflow, or one version of it if version is set.
func (c *Client) DeleteWorkflow(ctx context.Context, id, version string) (*Answer, error) {
	return c.do(ctx, request{
		method: http.MethodDelete, path: workflowPath(id), query: values("version", version), feature: "deleting workflows",
	})
}

// PutWorkflow registers a definition.
func (c *Client) PutWorkflow(ctx context.Context, definition json.RawMessage) (*Answer, error) {
	return c.do(ctx, request{method: http.MethodPost, path: "/v1/workflows", body: definition, feature: "registering workflows"})
}
