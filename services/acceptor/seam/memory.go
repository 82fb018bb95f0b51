package seam

import (
	"context"
	"slices"
	"sync"
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// Bounds of a Memory.
const (
	maxOutcomes  = 10_000 // OpenWOP envelope contract §23.1
	maxTestRuns  = 1_000
	maxRunEvents = 10_000
	maxRunSpans  = 1_000
	maxOverlay   = 256
)

// Memory is a Store and a TestLog in the memory of this process: it serves one
// process, and what it keeps dies with it.
type Memory struct {
	clock func() time.Time

	mu       sync.Mutex // guards all below
	outcomes map[Key]Kept
	keys     []Key // of outcomes, oldest first
	runs     map[testRun]*testLog
	order    []testRun // of runs, oldest first
	overlay  map[[2]string]bool
}

type testRun struct{ tenant, runID string }

type testLog struct {
	events []wire.Event
	next   int
	spans  []Span
}

// NewMemory makes an empty memory.
func NewMemory(clock func() time.Time) *Memory {
	m := &Memory{clock: clock}
	m.Reset()
	return m
}

// Reset forgets everything.
func (m *Memory) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outcomes, m.keys = map[Key]Kept{}, nil
	m.runs, m.order = map[testRun]*testLog{}, nil
	m.overlay = map[[2]string]bool{}
}

// Load gives the outcome kept under the key.
func (m *Memory) Load(_ context.Context, k Key) (Kept, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept, found := m.outcomes[k]
	return kept, found, nil
}

// Save keeps an outcome; the oldest goes when there are too many.
func (m *Memory) Save(_ context.Context, k Key, kept Kept) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, found := m.outcomes[k]; !found {
		m.keys = append(m.keys, k)
	}
	m.outcomes[k] = kept
	for len(m.keys) > maxOutcomes {
		delete(m.outcomes, m.keys[0])
		m.keys = slices.Delete(m.keys, 0, 1)
	}
	return nil
}

// Capability gives what the overlay says.
func (m *Memory) Capability(_ context.Context, tenant, name string) (value, set bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, set = m.overlay[[2]string{tenant, name}]
	return value, set, nil
}

// SetCapability puts a capability into the overlay; nil takes it out. Beyond a
// few hundred nothing is put in.
func (m *Memory) SetCapability(tenant, name string, value *bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := [2]string{tenant, name}
	if value == nil {
		delete(m.overlay, k)
	} else if _, there := m.overlay[k]; there || len(m.overlay) < maxOverlay {
		m.overlay[k] = *value
	}
}

// Overlay gives all that a tenant has put into the overlay.
func (m *Memory) Overlay(tenant string) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]bool{}
	for k, v := range m.overlay {
		if k[0] == tenant {
			out[k[1]] = v
		}
	}
	return out
}

// ResetOverlay forgets what a tenant has put into the overlay.
func (m *Memory) ResetOverlay(tenant string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k := range m.overlay {
		if k[0] == tenant {
			delete(m.overlay, k)
		}
	}
}

// Append places events in a run's test log; the oldest go when there are too many.
func (m *Memory) Append(_ context.Context, tenant, runID string, drafts []wire.Draft) ([]wire.Event, error) {
	now := m.clock()
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.log(testRun{tenant, runID})
	placed := make([]wire.Event, 0, len(drafts))
	for _, d := range drafts {
		placed = append(placed, d.Place(runID, l.next, now))
		l.next++
	}
	l.events = append(l.events, placed...)
	l.events = l.events[max(0, len(l.events)-maxRunEvents):]
	return placed, nil
}

// Trace adds a span; the oldest go when there are too many.
func (m *Memory) Trace(_ context.Context, tenant, runID string, span Span) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.log(testRun{tenant, runID})
	span.At = m.clock()
	l.spans = append(l.spans, span)
	l.spans = l.spans[max(0, len(l.spans)-maxRunSpans):]
	return nil
}

// log gives the log of a run, made on first use. m.mu is held.
func (m *Memory) log(at testRun) *testLog {
	if l := m.runs[at]; l != nil {
		return l
	}
	l := &testLog{}
	m.runs[at] = l
	m.order = append(m.order, at)
	for len(m.order) > maxTestRuns {
		delete(m.runs, m.order[0])
		m.order = slices.Delete(m.order, 0, 1)
	}
	return l
}

// Events gives a run's test log; none for an unknown run.
func (m *Memory) Events(tenant, runID string) []wire.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.runs[testRun{tenant, runID}]; l != nil {
		return slices.Clone(l.events)
	}
	return nil
}

// Spans gives the spans of a run's test log.
func (m *Memory) Spans(tenant, runID string) []Span {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.runs[testRun{tenant, runID}]; l != nil {
		return slices.Clone(l.spans)
	}
	return nil
}
