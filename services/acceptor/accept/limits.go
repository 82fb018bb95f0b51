package accept

import (
	"context"
	"fmt"

	"waybill.dev/waybill/protocol/fault"
)

// limits refuses an envelope if a counter of its kind has reached its limit (OpenWOP
// envelope contract §3.2, §8). The kind's own limit comes first, then the turn's.
//
// An envelope that was accepted before breaches no limit, even if the caller counted
// it: counters exclude an envelope's own correlationId.
func limits(ctx context.Context, e *execution) (*Refusal, error) {
	breach := e.findBreach()
	if breach == nil {
		return nil, nil
	}
	before, err := e.lookup(ctx)
	if err != nil || before != nil {
		return nil, err
	}
	return breach, nil
}

func (e *execution) findBreach() *Refusal {
	c := e.req.Counters
	switch e.env.Type {
	case KindClarificationRequest:
		if r := checkCounter("clarification", "clarificationRounds", c.ClarificationRounds); r != nil {
			return r
		}
	case KindSchemaRequest:
		if r := checkCounter("schema", "schemaRounds", c.SchemaRounds); r != nil {
			return r
		}
	}
	return checkCounter("envelopes", "envelopesPerTurn", c.EnvelopesPerTurn)
}

// checkCounter refuses an envelope that would exceed the cap. A cap of 0 allows none.
func checkCounter(capKind, limit string, c *Counter) *Refusal {
	if c == nil || c.Current < c.Cap {
		return nil
	}
	return &Refusal{
		Status: Breached, Code: fault.CapBreached, CapKind: capKind, Limit: c.Cap, Observed: c.Current + 1,
		Message: fmt.Sprintf("%s limit of %d is reached", limit, c.Cap),
	}
}
