package acceptor

import (
	"errors"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// maxPreceding bounds the payload of an event that is told before an envelope's, in bytes:
// names and numbers are all that it has.
const maxPreceding = 4096

// precedingOf reads what a model call has to tell besides its envelope. Nobody gets an event
// into a log in this way that could be anything else: what may come is on a closed list, is
// about the node that asked the model, and has the members of its type and no others.
func precedingOf(req *acceptorv1.AcceptRequest) ([]wire.Draft, error) {
	told := req.GetPreceding()
	if len(told) > 0 && req.GetHead() == nil {
		return nil, notPreceding(": needs head; it is for callers that follow the log")
	}
	drafts := make([]wire.Draft, 0, len(told))
	seen := map[wire.EventType]bool{}
	for i, e := range told {
		d := wire.Draft{Type: wire.EventType(e.GetType()), NodeID: req.GetNodeId(), Payload: e.GetPayload()}
		if !d.Type.MayPrecede() || seen[d.Type] {
			return nil, notPreceding("[%d].type: needs %s or %s, each once", i, wire.EventProviderUsage, wire.EventEnvelopeRecovery)
		}
		seen[d.Type] = true
		if err := about(d); err != nil {
			return nil, notPreceding("[%d].payload: must be a payload of %s about node_id: %v", i, d.Type, err)
		}
		switch t := wire.Trust(e.GetContentTrust()); t {
		case "", wire.Trusted:
		case wire.Untrusted:
			d.Trust = t
		default:
			return nil, notPreceding("[%d].content_trust: needs trusted or untrusted", i)
		}
		drafts = append(drafts, d)
	}
	return drafts, nil
}

// notPreceding refuses what is to stand before an envelope, and not the envelope, as the detail
// tells: its caller may hand that in alone.
func notPreceding(format string, args ...any) error {
	return fault.New(fault.ValidationError, "preceding"+format, args...).With("field", "preceding")
}

// about checks that a draft has a payload of its type about its node.
func about(d wire.Draft) error {
	var (
		usage    wire.ProviderUsage
		recovery wire.EnvelopeRecovery
		node     *string
		into     any
	)
	if d.Type == wire.EventProviderUsage {
		into, node = &usage, &usage.NodeID
	} else {
		into, node = &recovery, &recovery.NodeID
	}
	if err := strictjson.Decode(d.Payload, strictjson.Limits{MaxBytes: maxPreceding, MaxDepth: 1}, into); err != nil {
		return err
	}
	if *node != d.NodeID {
		return errors.New("its nodeId is another")
	}
	return nil
}

// errForeign is about a run that an executor outside this host carries out: it records
// what its envelopes cause, and nothing else.
func errForeign() error {
	return notPreceding(": only for runs that this host carries out")
}
