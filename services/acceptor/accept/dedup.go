package accept

import (
	"context"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
)

// dedup ends the passage of an envelope whose correlationId is taken in this
// run: with the recorded outcome if the type is the same, whatever else differs,
// and with a conflict if it is not (OpenWOP envelope contract §9).
func dedup(ctx context.Context, p *passage) (*Refusal, error) {
	before, err := p.recall(ctx)
	switch {
	case err != nil:
		return nil, err
	case before == nil && p.raced:
		// Somebody else has moved the run on. What this caller knows of it is old, so
		// it must read the log before it may go on.
		return nil, errMovedOn()
	case before == nil:
		return nil, nil
	case before.Type != p.env.Type:
		return clash(), nil
	}
	p.done = before
	return nil, nil
}

func errMovedOn() error {
	return fault.New(fault.Conflict, "the run has moved on; read its log and try again").Wrap(runlog.ErrConflict)
}

func clash() *Refusal {
	return &Refusal{
		Status: Invalid, Code: fault.EnvelopeCorrelationClash,
		Message: "the correlationId was used in this run by an envelope of another type",
		Details: []Detail{{InstancePath: "/correlationId", Keyword: "unique", Message: "must be fresh, or belong to a re-emission of the same type"}},
	}
}

// recall asks the ledger once.
func (p *passage) recall(ctx context.Context) (*Record, error) {
	if p.looked {
		return p.recalled, nil
	}
	r, err := p.ledger.Recall(ctx, p.req.Place, p.env.CorrelationID)
	if err != nil {
		return nil, err
	}
	p.recalled, p.looked = r, true
	return r, nil
}
