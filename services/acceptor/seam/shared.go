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

// Bounds of what is kept. How long it is kept is the store's business.
const (
	maxRunEvents = 10_000
	maxRunSpans  = 1_000
	maxOverlay   = 256
	maxName      = 256     // of a capability
	maxRecord    = 3 << 20 // bytes that a record may have
)

// Shared is a Store and a TestLog over records that all processes share: what is
// kept outlives each of them. All of it has passed the redactor. Every tenant has
// a space of its own, which Reset empties.
type Shared struct {
	records kv.Store
	clock   func() time.Time
	ends    ends
}

// NewShared keeps test state in records.
func NewShared(records kv.Store, clock func() time.Time) *Shared {
	return &Shared{records: records, clock: clock}
}

func (s *Shared) space(tenant string) epoch.Space { return epoch.New(s.records, "seam", tenant) }

// Reset forgets everything of a tenant.
func (s *Shared) Reset(ctx context.Context, tenant string) error {
	return reached(s.space(tenant).Clear(ctx))
}

// reached turns the store's failure into a fault that may be tried again.
func reached(err error) error {
	if errors.Is(err, kv.ErrUnavailable) {
		return fault.New(fault.ServiceUnavailable, "the records of the test seams cannot be reached; try again").After(time.Second).Wrap(err)
	}
	return err
}

func (k Key) record() string {
	return "outcome." + epoch.Token(k.RunID) + "." + epoch.Token(k.CorrelationID)
}

// Load gives the outcome kept under the key.
func (s *Shared) Load(ctx context.Context, k Key) (kept Kept, found bool, err error) {
	now, err := s.space(k.Tenant).Now(ctx)
	if err != nil {
		return Kept{}, false, reached(err)
	}
	return load(ctx, now, k)
}

func load(ctx context.Context, now epoch.Records, k Key) (kept Kept, found bool, err error) {
	value, _, err := now.Get(ctx, k.record())
	if err != nil || value == nil {
		return Kept{}, false, reached(err)
	}
	if err := json.Unmarshal(value, &kept); err != nil {
		return Kept{}, false, fmt.Errorf("kept outcome: %w", err)
	}
	return kept, true, nil
}

// Save keeps an outcome, unless one is kept already; it gives the one that is.
func (s *Shared) Save(ctx context.Context, k Key, kept Kept) (Kept, error) {
	value, err := json.Marshal(kept)
	if err != nil {
		return Kept{}, err
	}
	now, err := s.space(k.Tenant).Now(ctx)
	if err != nil {
		return Kept{}, reached(err)
	}
	err = now.Update(ctx, k.record(), value, 0)
	if !errors.Is(err, kv.ErrConflict) {
		return kept, reached(err)
	}
	first, _, err := load(ctx, now, k)
	return first, err
}

// overlayRecord holds what a tenant's host is taken to be able to.
const overlayRecord = "overlay"

// Capability gives what the overlay says.
func (s *Shared) Capability(ctx context.Context, tenant, name string) (value, set bool, err error) {
	overlay, err := s.Overlay(ctx, tenant)
	value, set = overlay[name]
	return value, set, err
}

// Overlay gives all that a tenant has put into the overlay.
func (s *Shared) Overlay(ctx context.Context, tenant string) (map[string]bool, error) {
	now, err := s.space(tenant).Now(ctx)
	if err != nil {
		return nil, reached(err)
	}
	value, _, err := now.Get(ctx, overlayRecord)
	if err != nil {
		return nil, reached(err)
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

// SetCapability puts a capability into the overlay; nil takes it out. Errors:
// fault.InvalidArgument when there are too many, fault.ServiceUnavailable.
func (s *Shared) SetCapability(ctx context.Context, tenant, name string, value *bool) error {
	return s.changeOverlay(ctx, tenant, func(overlay map[string]bool) error {
		_, there := overlay[name]
		switch {
		case value == nil:
			delete(overlay, name)
		case len(name) > maxName || !there && len(overlay) >= maxOverlay:
			return badRequest("at most 256 capabilities can be switched, with names of at most 256 bytes; reset the overlay")
		default:
			overlay[name] = *value
		}
		return nil
	})
}

// ResetOverlay forgets what a tenant has put into the overlay.
func (s *Shared) ResetOverlay(ctx context.Context, tenant string) error {
	return s.changeOverlay(ctx, tenant, func(overlay map[string]bool) error {
		clear(overlay)
		return nil
	})
}

func (s *Shared) changeOverlay(ctx context.Context, tenant string, change func(map[string]bool) error) error {
	now, err := s.space(tenant).Now(ctx)
	if err != nil {
		return reached(err)
	}
	return reached(now.Change(ctx, overlayRecord, func(value []byte) ([]byte, error) {
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

// Append places events at the end of a run's test log.
func (s *Shared) Append(ctx context.Context, tenant, runID string, drafts []wire.Draft) ([]wire.Event, error) {
	return s.place(ctx, tenant, eventsOf(runID), runID, drafts)
}

// AppendOnce places what an accepted envelope causes, unless it is there.
func (s *Shared) AppendOnce(ctx context.Context, tenant, runID, correlationID string, drafts []wire.Draft) ([]wire.Event, error) {
	there, err := s.Events(ctx, tenant, runID)
	if err != nil {
		return nil, err
	}
	if caused := accept.Caused(there, correlationID); len(caused) > 0 {
		return caused, nil
	}
	l, caused := eventsOf(runID), []wire.Event(nil)
	l.from = len(there)
	l.stop = func(record []byte) (bool, error) { // somebody was faster: with the same?
		events, err := wire.ParseEvents(record)
		caused = accept.Caused(events, correlationID)
		return len(caused) > 0, err
	}
	placed, err := s.place(ctx, tenant, l, runID, drafts)
	if len(caused) > 0 {
		return caused, err
	}
	return placed, err
}

func eventsOf(runID string) list {
	return list{name: "log." + epoch.Token(runID) + ".", limit: maxRunEvents, count: countEvents}
}

func (s *Shared) place(ctx context.Context, tenant string, l list, runID string, drafts []wire.Draft) ([]wire.Event, error) {
	var placed []wire.Event
	if len(drafts) == 0 {
		return nil, nil
	}
	at := s.clock()
	err := s.extend(ctx, tenant, l, func(first int) ([]byte, int, error) {
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

// Events gives a run's test log; none for an unknown run.
func (s *Shared) Events(ctx context.Context, tenant, runID string) ([]wire.Event, error) {
	records, err := s.below(ctx, tenant, "log."+epoch.Token(runID)+".")
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
	l := list{name: "span." + epoch.Token(runID) + ".", limit: maxRunSpans, count: func([]byte) (int, error) { return 1, nil }}
	return s.extend(ctx, tenant, l, func(first int) ([]byte, int, error) {
		span.Index = first
		b, err := json.Marshal(span)
		return b, 1, err
	})
}

// Spans gives the spans of a run's test log; those of all for an empty runID.
func (s *Shared) Spans(ctx context.Context, tenant, runID string) ([]Span, error) {
	prefix := "span."
	if runID != "" {
		prefix += epoch.Token(runID) + "."
	}
	records, err := s.below(ctx, tenant, prefix)
	if err != nil {
		return nil, err
	}
	var spans []Span
	for _, r := range records {
		var span Span
		if err := json.Unmarshal(r, &span); err != nil {
			return nil, fmt.Errorf("kept span: %w", err)
		}
		spans = append(spans, span)
	}
	return spans, nil
}

func (s *Shared) below(ctx context.Context, tenant, prefix string) ([][]byte, error) {
	now, err := s.space(tenant).Now(ctx)
	if err != nil {
		return nil, reached(err)
	}
	records, err := now.List(ctx, prefix)
	return records, reached(err)
}
