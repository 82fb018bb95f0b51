package seam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/epoch"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// Limits of the test state. The store expires it.
const (
	maxRunEvents = 10_000
	maxRunSpans  = 1_000
	maxOverlay   = 256
	maxName      = 256     // of a capability
	maxRecord    = 3 << 20 // bytes
)

// Shared is a Store and a TestLog over records that all processes share. The state is
// redacted and outlives the processes. Every tenant has its own space, which Reset
// empties.
type Shared struct {
	store kv.Store
	clock func() time.Time
	ends  endCache
}

// NewShared stores test state in records.
func NewShared(records kv.Store, clock func() time.Time) *Shared {
	return &Shared{store: records, clock: clock}
}

func (s *Shared) records(tenant string) epoch.Space { return epoch.New(s.store, "seam", tenant) }

// Reset deletes the state of a tenant.
func (s *Shared) Reset(ctx context.Context, tenant string) error {
	return storeFault(s.records(tenant).Clear(ctx))
}

// storeFault turns an unavailable store into a fault that may be retried.
func storeFault(err error) error {
	if errors.Is(err, kv.ErrUnavailable) {
		return fault.New(fault.ServiceUnavailable, "the store of the test seams is unreachable; try again").After(time.Second).Wrap(err)
	}
	return err
}

func (k Key) record() string {
	return "outcome." + epoch.Token(k.RunID) + "." + epoch.Token(k.CorrelationID)
}

// Load returns the outcome of the key.
func (s *Shared) Load(ctx context.Context, k Key) (outcome StoredOutcome, found bool, err error) {
	now, err := s.records(k.Tenant).Now(ctx)
	if err != nil {
		return StoredOutcome{}, false, storeFault(err)
	}
	return load(ctx, now, k)
}

func load(ctx context.Context, now epoch.Records, k Key) (outcome StoredOutcome, found bool, err error) {
	value, _, err := now.Get(ctx, k.record())
	if err != nil || value == nil {
		return StoredOutcome{}, false, storeFault(err)
	}
	if err := json.Unmarshal(value, &outcome); err != nil {
		return StoredOutcome{}, false, fmt.Errorf("stored outcome: %w", err)
	}
	return outcome, true, nil
}

// Save stores the outcome if the key has none, and returns the key's outcome.
func (s *Shared) Save(ctx context.Context, k Key, outcome StoredOutcome) (StoredOutcome, error) {
	value, err := json.Marshal(outcome)
	if err != nil {
		return StoredOutcome{}, err
	}
	now, err := s.records(k.Tenant).Now(ctx)
	if err != nil {
		return StoredOutcome{}, storeFault(err)
	}
	err = now.Update(ctx, k.record(), value, 0)
	if !errors.Is(err, kv.ErrConflict) {
		return outcome, storeFault(err)
	}
	first, _, err := load(ctx, now, k)
	return first, err
}

// overlayRecord has a tenant's overlay of capabilities.
const overlayRecord = "overlay"

// Capability returns the overlay's value of a capability.
func (s *Shared) Capability(ctx context.Context, tenant, name string) (value, set bool, err error) {
	overlay, err := s.Overlay(ctx, tenant)
	value, set = overlay[name]
	return value, set, err
}

// Overlay returns a tenant's overlay.
func (s *Shared) Overlay(ctx context.Context, tenant string) (map[string]bool, error) {
	now, err := s.records(tenant).Now(ctx)
	if err != nil {
		return nil, storeFault(err)
	}
	value, _, err := now.Get(ctx, overlayRecord)
	if err != nil {
		return nil, storeFault(err)
	}
	return readOverlay(value)
}

func readOverlay(value []byte) (map[string]bool, error) {
	overlay := map[string]bool{}
	if value == nil {
		return overlay, nil
	}
	if err := json.Unmarshal(value, &overlay); err != nil {
		return nil, fmt.Errorf("capability overlay: %w", err)
	}
	return overlay, nil
}

// SetCapability adds a capability to the overlay; nil removes it. Errors:
// fault.InvalidArgument when there are too many, fault.ServiceUnavailable.
func (s *Shared) SetCapability(ctx context.Context, tenant, name string, value *bool) error {
	return s.changeOverlay(ctx, tenant, func(overlay map[string]bool) error {
		_, there := overlay[name]
		switch {
		case value == nil:
			delete(overlay, name)
		case len(name) > maxName || !there && len(overlay) >= maxOverlay:
			return badRequest("the overlay has at most 256 capabilities, with names of at most 256 bytes; reset it")
		default:
			overlay[name] = *value
		}
		return nil
	})
}

// ResetOverlay empties a tenant's overlay.
func (s *Shared) ResetOverlay(ctx context.Context, tenant string) error {
	return s.changeOverlay(ctx, tenant, func(overlay map[string]bool) error {
		clear(overlay)
		return nil
	})
}

func (s *Shared) changeOverlay(ctx context.Context, tenant string, change func(map[string]bool) error) error {
	now, err := s.records(tenant).Now(ctx)
	if err != nil {
		return storeFault(err)
	}
	return storeFault(now.Change(ctx, overlayRecord, func(value []byte) ([]byte, error) {
		overlay, err := readOverlay(value)
		if err != nil {
			return nil, err
		}
		if err := change(overlay); err != nil {
			return nil, err
		}
		return json.Marshal(overlay)
	}))
}

// Append adds events at the end of a run's test log.
func (s *Shared) Append(ctx context.Context, tenant, runID string, drafts []wire.Draft) ([]wire.Event, error) {
	return s.appendEvents(ctx, tenant, eventsOf(runID), runID, drafts)
}

// AppendOnce adds the events of an accepted envelope, unless the log has them.
func (s *Shared) AppendOnce(ctx context.Context, tenant, runID, correlationID string, drafts []wire.Draft) ([]wire.Event, error) {
	there, err := s.Events(ctx, tenant, runID)
	if err != nil {
		return nil, err
	}
	if caused := accept.EventsCausedBy(there, correlationID); len(caused) > 0 {
		return caused, nil
	}
	l, caused := eventsOf(runID), []wire.Event(nil)
	l.from = len(there)
	l.stop = func(record []byte) (bool, error) { // another process may append the same events
		events, err := wire.ParseEvents(record)
		caused = accept.EventsCausedBy(events, correlationID)
		return len(caused) > 0, err
	}
	placed, err := s.appendEvents(ctx, tenant, l, runID, drafts)
	if len(caused) > 0 {
		return caused, err
	}
	return placed, err
}

func eventsOf(runID string) list {
	return list{name: "log." + epoch.Token(runID) + ".", limit: maxRunEvents, count: countEvents}
}

func (s *Shared) appendEvents(ctx context.Context, tenant string, l list, runID string, drafts []wire.Draft) ([]wire.Event, error) {
	var placed []wire.Event
	if len(drafts) == 0 {
		return nil, nil
	}
	at := s.clock()
	err := s.appendRecord(ctx, tenant, l, func(first int) ([]byte, int, error) {
		placed = make([]wire.Event, 0, len(drafts))
		for i, d := range drafts {
			placed = append(placed, d.Place(runID, first+i, at))
		}
		return wire.AppendEvents(nil, placed), len(placed), nil
	})
	if err != nil {
		return nil, err
	}
	return placed, nil
}

func countEvents(record []byte) (int, error) {
	events, err := wire.SplitArray(record)
	return len(events), err
}

// Events returns a run's test log; none for an unknown run.
func (s *Shared) Events(ctx context.Context, tenant, runID string) ([]wire.Event, error) {
	records, err := s.listRecords(ctx, tenant, "log."+epoch.Token(runID)+".")
	if err != nil {
		return nil, err
	}
	var events []wire.Event
	for _, r := range records {
		more, err := wire.ParseEvents(r)
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	return events, nil
}

// Trace adds a span to a run's test log.
func (s *Shared) Trace(ctx context.Context, tenant, runID string, span Span) error {
	span.RunID, span.At = runID, s.clock()
	l := list{
		name:  "span." + epoch.Token(runID) + ".",
		limit: maxRunSpans,
		count: func([]byte) (int, error) { return 1, nil },
	}
	return s.appendRecord(ctx, tenant, l, func(first int) ([]byte, int, error) {
		span.Index = first
		b, err := json.Marshal(span)
		return b, 1, err
	})
}

// Spans returns the spans of a run's test log, or of all runs for an empty runID.
func (s *Shared) Spans(ctx context.Context, tenant, runID string) ([]Span, error) {
	prefix := "span."
	if runID != "" {
		prefix += epoch.Token(runID) + "."
	}
	records, err := s.listRecords(ctx, tenant, prefix)
	if err != nil {
		return nil, err
	}
	var spans []Span
	for _, r := range records {
		var span Span
		if err := json.Unmarshal(r, &span); err != nil {
			return nil, fmt.Errorf("stored span: %w", err)
		}
		spans = append(spans, span)
	}
	return spans, nil
}

func (s *Shared) listRecords(ctx context.Context, tenant, prefix string) ([][]byte, error) {
	now, err := s.records(tenant).Now(ctx)
	if err != nil {
		return nil, storeFault(err)
	}
	records, err := now.List(ctx, prefix)
	return records, storeFault(err)
}
