package fold

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
)

// records reads an event that may record an envelope.
func (n *node) records(e wire.Event, p *payload) {
	if tokens := reasoningOf(p); tokens != nil && e.Type == wire.EventLogAppended {
		n.reasoning = tokens
		return
	}
	if e.Type == "log.appended" && p.Fields.RefusalMode != "" {
		gate := view.Gate{
			Name: "contract", Code: string(fault.EnvelopeContractViolation), Reason: p.Message,
			RefusedKind: p.Fields.Kind, AcceptedKinds: p.Fields.AllowedKinds,
		}
		n.refuses(n.last(e), gate, &view.Envelope{
			Outcome: view.OutcomeDiscarded, Events: []view.EventRef{ref(e)}, CorrelationID: e.CausationID,
		})
		return
	}
	r, ok := recordedBy(e, p)
	if !ok || e.CausationID == "" {
		n.companion(e)
		return
	}
	// Without node.started an external executor opened the run: each envelope stands alone.
	cause := view.Cause("")
	if n.handedIn = n.handedIn || n.current == nil; n.handedIn {
		cause = view.CauseHandedIn
	}
	c := n.call(e, n.handedIn, cause)
	n.repeats(c, r.Answer.With)
	x := &view.Envelope{
		Key: r.EnvelopeID, Form: view.FormEnvelope, Outcome: view.OutcomeAccepted, Kind: r.EnvelopeType, EnvelopeID: r.EnvelopeID,
		CorrelationID: e.CausationID, Version: r.Version, Trust: string(e.ContentTrust), Events: []view.EventRef{ref(e)},
		Gates: passed(map[view.GateName]string{"redaction": redaction(r.Payload, e.ContentTrust), "routing": string(e.Type)}),
	}
	if size := integer(r.Answer.Size); size != nil {
		n, i := int(*size), whole(r.Answer.Index)
		x.Size, x.Index = &n, &i
	}
	c.Envelopes = append(c.Envelopes, x)
	n.recorded[e.Sequence] = recording{c, x}
}

// recordedBy returns the envelope behind an event (OpenWOP envelope contract §10).
func recordedBy(e wire.Event, p *payload) (stamp, bool) {
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

// Payload returns the payload of the envelope that an event records; nil if it records none.
func Payload(e wire.Event) json.RawMessage {
	r, _ := recordedBy(e, parse(e.Payload))
	return r.Payload
}

// repeats adds envelopes that an earlier call recorded. They have its outcome.
func (n *node) repeats(c *view.Call, sequences []int) {
	for _, seq := range sequences {
		before, ok := n.recorded[seq]
		same := func(x *view.Envelope) bool { return x.EnvelopeID == before.envelope.EnvelopeID }
		if !ok || before.call == c || slices.ContainsFunc(c.Envelopes, same) {
			continue
		}
		x := *before.envelope
		x.Key, x.Outcome = fmt.Sprintf("%s~%d", x.Key, c.Ordinal), view.OutcomeCached
		x.Gates = passed(map[view.GateName]string{
			"dedup": fmt.Sprintf("the outcome of attempt %d, event %d", before.call.Attempt, seq), "routing": "no new events",
		})
		c.Envelopes = append(c.Envelopes, &x)
	}
}

// companion adds a further event of a recorded envelope, such as the question of a clarification.
func (n *node) companion(e wire.Event) {
	if e.CausationID == "" || n.current == nil {
		return
	}
	for _, c := range n.current.Calls {
		for _, x := range c.Envelopes {
			if x.CorrelationID != e.CausationID || x.Outcome != view.OutcomeAccepted {
				continue
			}
			x.Events = append(x.Events, ref(e))
			x.Gates[len(x.Gates)-1].Note += ", " + string(e.Type)
		}
	}
}

func (n *node) completed(e wire.Event, p *payload) {
	x := n.current
	if x == nil {
		return
	}
	defer n.end(view.ResultCompleted, nil)
	x.Turn = p.Turn
	_, envelopes := p.Outputs["envelopes"]
	if len(x.Calls) == 0 || envelopes || len(x.Calls[len(x.Calls)-1].Envelopes) > 0 {
		return
	}
	n.adds(x.Calls[len(x.Calls)-1], &view.Envelope{
		Form: view.FormValue, Outcome: view.OutcomeAccepted, Gates: ofValue(nil), Events: []view.EventRef{ref(e)},
	})
	// The rejected answers of a node that returns a value were values, too.
	for _, c := range x.Calls {
		for _, v := range c.Envelopes {
			if stop := v.Stop(); v.Form != view.FormValue && stop != nil {
				v.Form, v.Gates = view.FormValue, ofValue(stop)
			}
		}
	}
}

func (n *node) failed(e wire.Event, p *payload) {
	if n.current == nil {
		n.begin(e)
	}
	x := n.current
	defer n.end(view.ResultFailed, p.Error)
	x.Turn = p.Turn
	gate, ok := refusalOf(p.Error)
	if !ok || len(x.Calls) == 0 {
		return
	}
	c := x.Calls[len(x.Calls)-1]
	if c.Failure == nil && c.Truncated == nil && c.Refusal == nil {
		if i := len(c.Envelopes) - 1; gate.Name == "limits" && i >= 0 && c.Envelopes[i].Outcome == view.OutcomeRefused {
			c.Envelopes[i].Events = append(c.Envelopes[i].Events, ref(e))
		} else {
			n.refuses(c, gate, &view.Envelope{
				Outcome: view.OutcomeRefused, Events: []view.EventRef{ref(e)}, CorrelationID: e.CausationID,
			})
		}
	}
	if x.Exhausted == 0 {
		return
	}
	for _, v := range c.Envelopes {
		if stop := v.Stop(); stop != nil && v.Outcome == view.OutcomeRefused {
			stop.Code = p.Error.Code
		}
	}
}

// marker matches the marker of a redacted secret.
var marker = regexp.MustCompile(`\[REDACTED:[^\]]*\]`)

func redaction(payload []byte, trust wire.Trust) string {
	text := "nothing redacted"
	switch n := len(marker.FindAllIndex(payload, -1)); {
	case n == 1:
		text = "1 secret redacted"
	case n > 1:
		text = fmt.Sprintf("%d secrets redacted", n)
	}
	if trust == wire.Untrusted {
		text += "; tagged untrusted"
	}
	return text
}
