package accept

import (
	"context"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
)

// dedup handles a correlationId that is already recorded in this run. An envelope
// of the same type gets the recorded outcome, whatever else differs; one of another
// type is refused (OpenWOP envelope contract §9).
func dedup(ctx context.Context, e *execution) (*Refusal, error) {
	before, err := e.lookup(ctx)
	switch {
	case err != nil:
		return nil, err
	case before == nil && e.lostRace:
		// Another writer has extended the run. The caller must read the log before it
		// continues.
		return nil, errMovedOn()
	case before == nil:
		return nil, nil
	case before.Type != e.env.Type:
		return correlationClash(), nil
	}
	e.recorded = before
	return nil, nil
}

func errMovedOn() error {
	return fault.New(fault.Conflict, "the run has moved on; read its log and try again").Wrap(runlog.ErrConflict)
}

func correlationClash() *Refusal {
	return &Refusal{
		Status: Invalid, Code: fault.EnvelopeCorrelationClash,
		Message: "the correlationId was used in this run by an envelope of another type",
		Details: []Detail{{
			InstancePath: "/correlationId", Keyword: "unique",
			Message: "must be fresh, or belong to a re-emission of the same type",
		}},
	}
}

// lookup calls the ledger at most once per attempt.
func (e *execution) lookup(ctx context.Context) (*Record, error) {
	if e.lookedUp {
		return e.previous, nil
	}
	r, err := e.ledger.Lookup(ctx, e.req.Target, e.env.CorrelationID)
	if err != nil {
		return nil, err
	}
	e.previous, e.lookedUp = r, true
	return r, nil
}
