package accept

import (
	"context"
	"fmt"

	"waybill.dev/waybill/protocol/fault"
)

// limits passes while every counter that is bound to the kind is below its cap
// (OpenWOP envelope contract §3.2, §8). A kind counts against its own limit
// first, and against the turn's in any case.
//
// An envelope that was accepted before is never breached, also when the caller
// counted it: counters exclude an envelope's own correlationId.
func limits(ctx context.Context, p *passage) (*Refusal, error) {
	breach := p.breach()
	if breach == nil {
		return nil, nil
	}
	before, err := p.recall(ctx)
	if err != nil || before != nil {
		return nil, err
	}
	return breach, nil
}

func (p *passage) breach() *Refusal {
	c := p.req.Counters
	switch p.env.Type {
	case KindClarificationRequest:
		if r := breached("clarification", "clarificationRounds", c.ClarificationRounds); r != nil {
			return r
		}
	case KindSchemaRequest:
		if r := breached("schema", "schemaRounds", c.SchemaRounds); r != nil {
			return r
		}
	}
	return breached("envelopes", "envelopesPerTurn", c.EnvelopesPerTurn)
}

// breached refuses the envelope that would go beyond the cap; a cap of 0 admits
// none.
func breached(capKind, limit string, c *Counter) *Refusal {
	if c == nil || c.Current < c.Cap {
		return nil
	}
	return &Refusal{
		Status: Breached, Code: fault.CapBreached, CapKind: capKind, Limit: c.Cap, Observed: c.Current + 1,
		Message: fmt.Sprintf("%s limit of %d is reached", limit, c.Cap),
	}
}
