package accept

import "context"

// record makes the envelope's events durable in one append. After a lost
// compare-and-set, Pipeline.Run goes back to dedup.
func record(ctx context.Context, e *execution) (*Refusal, error) {
	r, err := e.ledger.Record(ctx, e.req.Target, Entry{
		Type: e.env.Type, EnvelopeID: e.env.EnvelopeID, CorrelationID: e.env.CorrelationID, Trust: e.attrs.Trust,
		Payload: e.env.Payload, Redactions: e.redactions, Preceding: e.preceding, Drafts: e.drafts,
	})
	if err != nil {
		return nil, err
	}
	e.recorded = r
	return nil, nil
}
