package accept

import "encoding/json"

// shown is the result for a fragment of a streamed envelope: it may be shown,
// redacted, and that is all. The last piece (isPartial false) is the envelope.
func (p *passage) shown() *Result {
	a := NewAcceptance(p.env.EnvelopeID, p.facts.Trust, nil)
	doc, _ := json.Marshal(a) // strings only
	p.facts.Outcome = Accepted
	return &Result{Outcome: doc, Payload: p.env.Payload, Head: p.req.Head, Facts: p.facts}
}
