package accept

import "context"

// record makes the envelope's events durable, in one append. Losing the
// compare-and-set sends the passage back to dedup.
func record(ctx context.Context, p *passage) (*Refusal, error) {
	r, err := p.ledger.Record(ctx, p.req.Place, Entry{
		Type: p.env.Type, EnvelopeID: p.env.EnvelopeID, CorrelationID: p.env.CorrelationID, Trust: p.facts.Trust,
		Payload: p.env.Payload, Redactions: p.redactions, Preceding: p.preceding, Drafts: p.drafts,
	})
	if err != nil {
		return nil, err
	}
	p.done = r
	return nil, nil
}
