package store

import (
	"context"
	"errors"

	"waybill.dev/waybill/services/eventlog/tally"
)

// TallyQuery selects the tallies of a tenant in buckets of a width that start from From and before
// Until, in Unix seconds. An empty WorkflowID selects all workflows.
type TallyQuery struct {
	Tenant      string
	Grain       tally.Grain
	From, Until int64
	WorkflowID  string
	// MaxBytes limits the stored bytes that are read; 0 means no limit.
	MaxBytes int
}

// ErrTooLarge means that the tallies of a query have more bytes than it allows.
var ErrTooLarge = errors.New("too many tallies")

// Each row and each query count as this many bytes, in addition to the documents, because many small rows
// and many queries without rows also take time.
const (
	rowCost   = 256
	queryCost = 4 << 10
)

// ReadTallies counts the bytes that queries have read.
type ReadTallies struct {
	Limit, read int
}

// Add counts a tally. Errors: ErrTooLarge.
func (r *ReadTallies) Add(t *Tallied) error { return r.count(rowCost + len(t.WorkflowID) + t.Stored) }

// Query counts a query. Errors: ErrTooLarge.
func (r *ReadTallies) Query() error { return r.count(queryCost) }

func (r *ReadTallies) count(bytes int) error {
	if r.read += bytes; r.Limit > 0 && r.read > r.Limit {
		return ErrTooLarge
	}
	return nil
}

// Tallied is the tally of a bucket.
type Tallied struct {
	tally.Bucket

	Tally tally.Tally
	// Stored is the number of bytes that were read.
	Stored int
}

// TallyReader reads tallies. Those of erased runs stay until the tenant has no run left, or the store
// is rebuilt: they name no run.
type TallyReader interface {
	// Tallies calls each with the tallies by time, then workflow, one at a time, so that memory holds
	// few of them. An error of each ends it. Errors: ErrDamaged, ErrTooLarge.
	Tallies(ctx context.Context, q TallyQuery, each func(*Tallied) error) error
	// TalliedTenants returns the tenants with tallies by name, starting after one. Errors: ErrDamaged.
	TalliedTenants(ctx context.Context, after string, limit int) ([]string, error)
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
