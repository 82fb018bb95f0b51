package retention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// claimTime is how long the claim of an erasure excludes a hold. An erasure marks its run within
// half of it.
const claimTime = 30 * time.Second

// Hold is a legal hold of a run.
type Hold struct {
	RunID  string    `json:"-"`
	Reason string    `json:"reason,omitempty"`
	HeldBy string    `json:"heldBy,omitempty"`
	Since  time.Time `json:"since"`
}

// record is what a run's key has: a hold, or the claim of an erasure. The compare-and-set of the key
// decides between the two.
type record struct {
	Hold *Hold `json:"hold,omitempty"`
	// Until is when a claim ends.
	Until time.Time `json:"until,omitzero"`
}

// Holds are the legal holds. It is safe for concurrent use, also by several processes.
type Holds struct {
	store kv.Store
	log   runlog.Reader
	clock func() time.Time
}

// NewHolds returns the holds in a store.
func NewHolds(store kv.Store, log runlog.Reader, clock func() time.Time) *Holds {
	return &Holds{store, log, clock}
}

const holdPrefix = "hold."

// Key is the key of a run in the store.
func Key(run subject.Run) string { return tenantPrefix(run.Tenant) + run.RunID }

func tenantPrefix(tenant string) string { return holdPrefix + tenant + "." }

// Set sets the hold of a run, and returns the one in force. created is false if there was one.
// Errors: fault.RunNotFound, fault.ServiceUnavailable.
func (h *Holds) Set(ctx context.Context, run subject.Run, hold Hold) (_ Hold, created bool, err error) {
	if err := h.exists(ctx, run); err != nil {
		return Hold{}, false, err
	}
	hold.RunID, hold.Since = run.RunID, h.clock().UTC().Truncate(time.Millisecond)
	for {
		r, revision, err := h.read(ctx, run)
		switch {
		case err != nil:
			return Hold{}, false, err
		case r.Hold != nil:
			return *r.Hold, false, nil
		case r.Until.After(h.clock()):
			return Hold{}, false, fault.New(fault.ServiceUnavailable, "the run is being erased; try again").After(time.Second)
		}
		revision, err = h.write(ctx, run, record{Hold: &hold}, revision)
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err != nil {
			return Hold{}, false, unavailable(err)
		}
		// An erasure whose claim is over may have marked the run.
		if err := h.exists(ctx, run); err != nil {
			_ = h.store.Delete(ctx, Key(run), revision) // it is deleted with the run, too
			return Hold{}, false, err
		}
		return hold, true, nil
	}
}

// exists reports a run that is unknown or erased. A damaged run can be held.
func (h *Holds) exists(ctx context.Context, run subject.Run) error {
	_, err := h.log.Last(ctx, run)
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		return fault.NoRun()
	case err != nil && !errors.Is(err, frame.ErrDamaged):
		return unavailable(err)
	}
	return nil
}

// Release removes the hold of a run. released is false if there was none. Errors:
// fault.ServiceUnavailable.
func (h *Holds) Release(ctx context.Context, run subject.Run) (released bool, err error) {
	for {
		r, revision, err := h.read(ctx, run)
		if err != nil || r.Hold == nil {
			return false, err
		}
		err = h.store.Delete(ctx, Key(run), revision)
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		return err == nil, unavailable(err)
	}
}

// List returns holds of a tenant by run id, after one. more reports that others follow.
func (h *Holds) List(ctx context.Context, tenant, after string, limit int) (holds []Hold, more bool, err error) {
	entries, err := kv.List(ctx, h.store, tenantPrefix(tenant))
	if err != nil {
		return nil, false, unavailable(err)
	}
	for _, e := range entries {
		id := strings.TrimPrefix(e.Key, tenantPrefix(tenant))
		r, err := parse(e)
		if err != nil || r.Hold == nil || id <= after {
			continue
		}
		r.Hold.RunID = id
		holds = append(holds, *r.Hold)
	}
	slices.SortFunc(holds, func(a, b Hold) int { return strings.Compare(a.RunID, b.RunID) })
	if more = len(holds) > limit; more {
		holds = holds[:limit]
	}
	return holds, more, nil
}

// Claim excludes a hold of a run while it is being marked as erased, for at most half of claimTime:
// use the returned context. release ends the claim of a run that was not marked. An erasure takes over
// the claim of another one, which may be dead, and then leaves it to end by itself. Errors:
// fault.Conflict if the run has a hold, fault.ServiceUnavailable.
func (h *Holds) Claim(ctx context.Context, run subject.Run) (within context.Context, release func(marked bool), err error) {
	for {
		r, revision, err := h.read(ctx, run)
		switch {
		case err != nil:
			return nil, nil, err
		case r.Hold != nil:
			return nil, nil, held(*r.Hold)
		}
		shared := r.Until.After(h.clock())
		revision, err = h.write(ctx, run, record{Until: h.clock().Add(claimTime)}, revision)
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, nil, unavailable(err)
		}
		within, cancel := context.WithTimeout(ctx, claimTime/2)
		return within, func(marked bool) {
			cancel()
			if !marked && !shared {
				_ = h.store.Delete(context.WithoutCancel(ctx), Key(run), revision) // it ends anyway
			}
		}, nil
	}
}

// Check reports a run with a hold. Errors: fault.Conflict, fault.ServiceUnavailable.
func (h *Holds) Check(ctx context.Context, run subject.Run) error {
	r, _, err := h.read(ctx, run)
	if err == nil && r.Hold != nil {
		return held(*r.Hold)
	}
	return err
}

// held is the error of an erasure of a held run.
func held(hold Hold) error {
	return fault.New(fault.Conflict, "the run has a legal hold since %s; release it first, with the scope runs:hold", hold.Since.Format(time.RFC3339)).
		With("legalHold", true)
}

func (h *Holds) read(ctx context.Context, run subject.Run) (record, uint64, error) {
	e, err := h.store.Get(ctx, Key(run))
	if errors.Is(err, kv.ErrNotFound) {
		return record{}, e.Revision, nil
	}
	if err != nil { // a damaged record may be a hold
		return record{}, 0, unavailable(err)
	}
	r, err := parse(e)
	if r.Hold != nil {
		r.Hold.RunID = run.RunID
	}
	return r, e.Revision, unavailable(err)
}

func parse(e kv.Entry) (record, error) {
	var r record
	if err := json.Unmarshal(e.Value, &r); err != nil {
		return r, fmt.Errorf("legal hold %s at revision %d: %w", e.Key, e.Revision, err)
	}
	return r, nil
}

func (h *Holds) write(ctx context.Context, run subject.Run, r record, revision uint64) (uint64, error) {
	value, err := json.Marshal(r)
	if err != nil {
		return 0, fmt.Errorf("render the hold of run %s: %w", run.RunID, err)
	}
	return h.store.Update(ctx, Key(run), value, revision)
}

func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.ServiceUnavailable, "legal holds are unavailable; try again").After(time.Second).Wrap(err)
}
