package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// StatisticsQuery selects a span of time. Since and Until are RFC 3339; empty uses the host's default,
// the last 24 hours. An empty WorkflowID selects all workflows.
type StatisticsQuery struct{ Since, Until, WorkflowID string }

// RunTotals counts runs.
type RunTotals struct {
	Created   int64 `json:"created"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
	Failures  []struct {
		Code  string `json:"code"`
		Count int64  `json:"count"`
	} `json:"failures"`
	// P50Ms and P95Ms are nil if no run has completed.
	P50Ms *int64 `json:"p50Ms"`
	P95Ms *int64 `json:"p95Ms"`
}

// UsageTotals counts model calls and their answers.
type UsageTotals struct {
	Calls         int64   `json:"calls"`
	InputTokens   int64   `json:"inputTokens"`
	OutputTokens  int64   `json:"outputTokens"`
	Priced        int64   `json:"priced"`
	CostUSD       float64 `json:"costUsd"`
	Retries       int64   `json:"retries"`
	Answers       int64   `json:"answers"`
	AcceptedFirst int64   `json:"acceptedFirst"`
	Corrected     int64   `json:"corrected"`
}

// Statistics is what the runs of the key's tenant did in a span of time.
type Statistics struct {
	Since     string      `json:"since"`
	Until     string      `json:"until"`
	Runs      RunTotals   `json:"runs"`
	Usage     UsageTotals `json:"usage"`
	Workflows []struct {
		WorkflowID string      `json:"workflowId"`
		Runs       RunTotals   `json:"runs"`
		Usage      UsageTotals `json:"usage"`
	} `json:"workflows"`
	MoreWorkflows int `json:"moreWorkflows"`
	Models        []struct {
		Provider string      `json:"provider"`
		Model    string      `json:"model"`
		Usage    UsageTotals `json:"usage"`
	} `json:"models"`
	Doc json.RawMessage `json:"-"`
}

const statisticsFeature = "statistics"

// Statistics reads the statistics of the key's tenant.
func (c *Client) Statistics(ctx context.Context, q StatisticsQuery) (*Statistics, error) {
	out := &Statistics{}
	query := values("since", q.Since, "until", q.Until, "workflowId", q.WorkflowID)
	a, err := c.into(ctx, request{method: http.MethodGet, path: "/v1/statistics", query: query, feature: statisticsFeature}, out)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, nil
}

// TenantStatistics is what the runs of tenants did in a span of time.
type TenantStatistics struct {
	Since       string          `json:"since"`
	Until       string          `json:"until"`
	Tenants     []TenantTotals  `json:"tenants"`
	MoreTenants int             `json:"moreTenants"`
	Doc         json.RawMessage `json:"-"`
}

// TenantTotals has the counts of a tenant.
type TenantTotals struct {
	Tenant string      `json:"tenant"`
	Runs   RunTotals   `json:"runs"`
	Usage  UsageTotals `json:"usage"`
}

// TenantStatistics reads the statistics of all tenants with a key that has the scope tenants:read, else
// of the key's tenant.
func (c *Client) TenantStatistics(ctx context.Context, since, until string) (*TenantStatistics, error) {
	out := &TenantStatistics{}
	query := values("since", since, "until", until)
	a, err := c.list(ctx, request{path: "/v1/statistics/tenants", query: query, feature: statisticsFeature}, "tenants", out)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, nil
}
