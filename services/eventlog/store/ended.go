package store

import "context"

// Workflow identifies a workflow of a tenant.
type Workflow struct{ Tenant, WorkflowID string }

// EndedQuery selects ended runs of a workflow.
type EndedQuery struct {
	Workflow

	// Before selects runs that ended before; in wire.TimeLayout.
	Before string
	// After is the last run of the previous page; the zero End is the start.
	After End
	Limit int
}

// End is a run's position in the order of ends. The zero End is before all.
type End struct{ CompletedAt, RunID string }

// Ender finds runs by their end, with an index.
type Ender interface {
	// Oldest returns, of each workflow with ended runs, the run that ended first, ordered by workflow
	// and starting after one; the zero Workflow starts at the first. Errors: ErrDamaged.
	Oldest(ctx context.Context, after Workflow, limit int) ([]Run, error)
	// Ended returns ended runs, in the order of their ends. Errors: ErrDamaged.
	Ended(ctx context.Context, q EndedQuery) ([]Run, error)
	// CountEnded counts the runs of a workflow that ended before each instant, in wire.TimeLayout.
	CountEnded(ctx context.Context, of Workflow, before []string) ([]int64, error)
}
