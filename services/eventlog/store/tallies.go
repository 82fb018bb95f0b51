package store

import (
	"context"

	"waybill.dev/waybill/services/eventlog/tally"
)

// TallyQuery selects the tallies of a tenant in buckets of a width that start from From and before
// Until, in Unix seconds. An empty WorkflowID selects all workflows.
type TallyQuery struct {
	Tenant      string
	Grain       tally.Grain
	From, Until int64
	WorkflowID  string
}

// Tallied is the tally of a bucket.
type Tallied struct {
	tally.Bucket

	Tally tally.Tally
}

// TallyReader reads tallies. Those of erased runs stay until the tenant has no run left, or the store
// is rebuilt: they name no run.
type TallyReader interface {
	// Tallies returns tallies by time, then workflow. Errors: ErrDamaged.
	Tallies(ctx context.Context, q TallyQuery) ([]Tallied, error)
}

// ErasedTenants returns the tenants of the erased runs.
func (b *Batch) ErasedTenants() []string {
	var out []string
	seen := map[string]bool{}
	for _, e := range b.Erased {
		if !seen[e.Tenant] {
			seen[e.Tenant] = true
			out = append(out, e.Tenant)
		}
	}
	return out
}
