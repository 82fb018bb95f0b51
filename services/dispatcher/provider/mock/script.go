package mock

import "context"

// Scripts are the queues of entries for each node id of a tenant, across runs. Processes must share
// them (OpenWOP envelope contract §23, distribution).
type Scripts interface {
	// Program replaces a queue.
	Program(ctx context.Context, tenant, nodeID string, entries []Entry) error
	// Take removes the next entry and records the call's budget. An exhausted queue returns an
	// empty entry.
	Take(ctx context.Context, tenant, nodeID string, budget int) (Entry, error)
	// LastBudget returns the budget of the latest call; ok is false without one.
	LastBudget(ctx context.Context, tenant, nodeID string) (tokens int, ok bool, err error)
	// Reset removes everything of a tenant and returns the number of queues.
	Reset(ctx context.Context, tenant string) (int, error)
}
