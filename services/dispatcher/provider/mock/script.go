package mock

import (
	"context"
	"slices"
	"sync"
)

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

// maxNodes limits the node ids in Memory, so that a host that is never reset does not grow without
// limit.
const maxNodes = 10_000

// Memory keeps scripts in this process. It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex // guards queues and budgets
	queues  map[queueKey][]Entry
	budgets map[queueKey]int
}

type queueKey struct{ tenant, nodeID string }

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{queues: map[queueKey][]Entry{}, budgets: map[queueKey]int{}} }

// Program replaces a queue; the entries are copied.
func (m *Memory) Program(_ context.Context, tenant, nodeID string, entries []Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	put(m.queues, queueKey{tenant, nodeID}, slices.Clone(entries))
	return nil
}

// Take removes the next entry and notes the budget.
func (m *Memory) Take(_ context.Context, tenant, nodeID string, budget int) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := queueKey{tenant, nodeID}
	put(m.budgets, at, budget)
	queue := m.queues[at]
	if len(queue) == 0 {
		return Entry{}, nil
	}
	m.queues[at] = queue[1:]
	return queue[0], nil
}

// LastBudget is the budget of the latest call.
func (m *Memory) LastBudget(_ context.Context, tenant, nodeID string) (tokens int, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tokens, ok = m.budgets[queueKey{tenant, nodeID}]
	return tokens, ok, nil
}

// Reset drops all of a tenant.
func (m *Memory) Reset(_ context.Context, tenant string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.queues)
	for at := range m.queues {
		if at.tenant == tenant {
			delete(m.queues, at)
		}
	}
	for at := range m.budgets {
		if at.tenant == tenant {
			delete(m.budgets, at)
		}
	}
	return before - len(m.queues), nil
}

// put sets a key. A full map drops any other key first.
func put[V any](m map[queueKey]V, key queueKey, v V) {
	if _, known := m[key]; !known && len(m) >= maxNodes {
		for victim := range m {
			delete(m, victim)
			break
		}
	}
	m[key] = v
}
