package retention

import (
	"context"
	"time"
)

// Source is what sets a retention.
type Source string

// The sources of a retention, the most specific first.
const (
	Workflow     Source = "workflow"
	Tenant       Source = "tenant"
	Installation Source = "installation"
)

// Retention is how long runs are kept after their end.
type Retention struct {
	// Keep is 0 without a limit.
	Keep   time.Duration
	Source Source
}

// Policies decides how long runs are kept. The most specific setting wins.
type Policies struct {
	// Default is the retention of the installation; 0 without a limit.
	Default time.Duration
	// Tenant returns the retention of a tenant; ok is false if it has none of its own.
	Tenant func(tenant string) (keep time.Duration, ok bool)
	// Workflow returns the retention of a workflow; ok is false if it sets none, or is unknown. unset is
	// the retention of a version that sets none, which takes part if the workflow is deleted.
	Workflow func(ctx context.Context, tenant, id string, unset time.Duration) (keep time.Duration, ok bool, err error)
}

// Of returns the retention of a workflow's runs. Without a readable definition, its runs are kept.
func (p Policies) Of(ctx context.Context, tenant, workflowID string) (Retention, error) {
	unset := p.OfTenant(tenant)
	keep, ok, err := p.Workflow(ctx, tenant, workflowID, unset.Keep)
	if err != nil {
		return Retention{}, err
	}
	if ok {
		return Retention{keep, Workflow}, nil
	}
	return unset, nil
}

// OfTenant returns the retention of runs whose workflow sets none.
func (p Policies) OfTenant(tenant string) Retention {
	if keep, ok := p.Tenant(tenant); ok {
		return Retention{keep, Tenant}
	}
	return Retention{p.Default, Installation}
}
