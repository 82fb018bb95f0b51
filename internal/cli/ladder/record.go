package ladder

import (
	"fmt"
	"regexp"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// records takes an event that may record an envelope.
func (n *node) records(e wire.Event, p document) {
	if e.Type == "log.appended" && p.Fields.RefusalMode != "" {
		gate := Rung{
			Gate: "contract", Code: fault.EnvelopeContractViolation, Reason: p.Message,
			RefusedKind: p.Fields.Kind, AcceptedKinds: p.Fields.AllowedKinds,
		}
		n.refuses(n.last(), gate, Envelope{
			Outcome:       OutcomeDiscarded,
			Events:        []Event{named(e)},
			CorrelationID: e.CausationID,
		})
		return
	}
	r, ok := recordedBy(e, p)
	if !ok || e.CausationID == "" {
		n.companion(e)
		return
	}
	// Without a node.started the run was opened by an executor outside: each envelope
	// stands for itself.
	cause := ""
	if n.handedIn = n.handedIn || n.current == nil; n.handedIn {
		cause = causeHandedIn
	}
	c := n.call(func(*Call) bool { return n.handedIn }, cause)
	n.repeats(c, r.Answer.With)
	x := &Envelope{
		Key:           r.EnvelopeID,
		Outcome:       OutcomeAccepted,
		Kind:          r.EnvelopeType,
		EnvelopeID:    r.EnvelopeID,
		CorrelationID: e.CausationID,
		Version:       r.Version,
		Trust:         string(e.ContentTrust),
		Events:        []Event{named(e)},
		Rungs:         passed(map[Gate]string{"redaction": redaction(r.Payload, e.ContentTrust), "routing": string(e.Type)}),
	}
	c.Envelopes = append(c.Envelopes, x)
	n.recorded[e.Sequence] = recording{c, x}
}

// recordedBy is the envelope behind an event (OpenWOP envelope contract §10).
func recordedBy(e wire.Event, p document) (stamp, bool) {
	var r stamp
	switch e.Type {
	case "artifact.created":
		r = p.stamp
		r.EnvelopeType, r.EnvelopeID = p.ArtifactType, p.ArtifactID
	case "clarification.requested":
		r = p.Envelope
	case "log.appended":
		r = p.Fields.stamp
	}
	return r, r.EnvelopeType != "" && r.EnvelopeID != ""
}

// repeats shows envelopes that an earlier call has recorded: their outcome is the one
// of before.
func (n *node) repeats(c *Call, sequences []int) {
	for _, seq := range sequences {
		before, ok := n.recorded[seq]
		if !ok || before.call == c || slices.ContainsFunc(c.Envelopes, func(x *Envelope) bool { return x.EnvelopeID == before.envelope.EnvelopeID }) {
			continue
		}
		x := *before.envelope
		x.Key, x.Outcome = fmt.Sprintf("%s~%d", x.Key, c.Ordinal), OutcomeCached
		x.Rungs = passed(map[Gate]string{
			"dedup":   fmt.Sprintf("the outcome of attempt %d, event %d", before.call.Attempt, seq),
			"routing": "no new events",
		})
		c.Envelopes = append(c.Envelopes, &x)
	}
}

// companion is a further event of an envelope that was recorded: a clarification also asks.
func (n *node) companion(e wire.Event) {
	if e.CausationID == "" || n.current == nil {
		return
	}
	for _, c := range n.current.Calls {
		for _, x := range c.Envelopes {
			if x.CorrelationID != e.CausationID || x.Outcome != OutcomeAccepted {
				continue
			}
			x.Events = append(x.Events, named(e))
			x.Rungs[len(x.Rungs)-1].Note += ", " + string(e.Type)
		}
	}
}

func (n *node) completed(e wire.Event, p document) {
	x := n.current
	if x == nil {
		return
	}
	_, envelopes := p.Outputs["envelopes"]
	if len(x.Calls) > 0 && !envelopes && len(x.Calls[len(x.Calls)-1].Envelopes) == 0 {
		n.adds(x.Calls[len(x.Calls)-1], Envelope{
			Value:   true,
			Outcome: OutcomeAccepted,
			Rungs:   ofValue(nil),
			Events:  []Event{named(e)},
		})
		for _, c := range x.Calls { // a node that gives a value had values refused, too
			for _, v := range c.Envelopes {
				if stop := v.Stop(); !v.Value && stop != nil {
					v.Value, v.Rungs = true, ofValue(stop)
				}
			}
		}
	}
	n.end("completed", nil)
}

func (n *node) failed(e wire.Event, p document) {
	if n.current == nil {
		n.begin()
	}
	x := n.current
	defer n.end("failed", p.Error)
	if len(x.Calls) == 0 || p.Error == nil {
		return
	}
	gate, ok := refusalOf(p.Error)
	if !ok {
		return
	}
	c := x.Calls[len(x.Calls)-1]
	if c.Failure == nil && c.Truncated == nil && c.Refusal == nil {
		if i := len(c.Envelopes) - 1; gate.Gate == "limits" && i >= 0 && c.Envelopes[i].Outcome == OutcomeRefused {
			c.Envelopes[i].Events = append(c.Envelopes[i].Events, named(e))
		} else {
			n.refuses(c, gate, Envelope{Outcome: OutcomeRefused, Events: []Event{named(e)}, CorrelationID: e.CausationID})
		}
	}
	if x.Exhausted > 0 {
		for _, v := range c.Envelopes {
			if stop := v.Stop(); stop != nil && v.Outcome == OutcomeRefused {
				stop.Code = p.Error.Code
			}
		}
	}
}

// marker stands for a secret that was taken out.
var marker = regexp.MustCompile(`\[REDACTED:[^\]]*\]`)

func redaction(payload []byte, trust wire.Trust) string {
	text := "nothing to take out"
	switch n := len(marker.FindAllIndex(payload, -1)); {
	case n == 1:
		text = "1 secret taken out"
	case n > 1:
		text = fmt.Sprintf("%d secrets taken out", n)
	}
	if trust == wire.Untrusted {
		text += "; tagged untrusted"
	}
	return text
}
