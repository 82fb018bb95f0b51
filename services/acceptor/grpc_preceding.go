package acceptor

import (
	"errors"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// maxPrecedingBytes limits the payload of a preceding event. It has names and numbers
// only.
const maxPrecedingBytes = 4096

// parsePreceding reads the further events of a model call, which are recorded before
// the envelope's. A caller cannot add any other event to a log in this way. The types
// are a closed list, the node must be the one that called the model, and the payload
// must have exactly the members of its type.
func parsePreceding(req *acceptorv1.AcceptRequest) ([]wire.Draft, error) {
	events := req.GetPreceding()
	if len(events) > 0 && req.GetHead() == nil {
		return nil, errPreceding(": needs head; it is for callers that follow the log")
	}
	drafts := make([]wire.Draft, 0, len(events))
	seen := map[wire.EventType]bool{}
	for i, e := range events {
		d := wire.Draft{Type: wire.EventType(e.GetType()), NodeID: req.GetNodeId(), Payload: e.GetPayload()}
		if !d.MayPrecede() || seen[d.Type] {
			return nil, errPreceding("[%d].type: must be %s, %s, or %s of reasoning tokens, each at most once",
				i, wire.EventProviderUsage, wire.EventEnvelopeRecovery, wire.EventLogAppended)
		}
		seen[d.Type] = true
		if err := checkPrecedingPayload(d); err != nil {
			return nil, errPreceding("[%d].payload: must be a payload of %s about node_id: %v", i, d.Type, err)
		}
		switch t := wire.Trust(e.GetContentTrust()); t {
		case "", wire.Trusted:
		case wire.Untrusted:
			d.Trust = t
		default:
			return nil, errPreceding("[%d].content_trust: must be trusted or untrusted", i)
		}
		drafts = append(drafts, d)
	}
	return drafts, nil
}

// errPreceding refuses the preceding events, not the envelope, as the field detail says.
// The caller may submit the envelope without them.
func errPreceding(format string, args ...any) error {
	return fault.New(fault.ValidationError, "preceding"+format, args...).With("field", "preceding")
}

// checkPrecedingPayload checks that a draft has a payload of its type and its node.
func checkPrecedingPayload(d wire.Draft) error {
	var (
		usage    wire.ProviderUsage
		recovery wire.EnvelopeRecovery
		note     wire.UsageNote
		node     *string
		into     any
	)
	depth := 1
	switch d.Type {
	case wire.EventProviderUsage:
		into, node = &usage, &usage.NodeID
	case wire.EventEnvelopeRecovery:
		into, node = &recovery, &recovery.NodeID
	default:
		into, node, depth = &note, &note.NodeID, 2 // its text was compared with the host's own
	}
	if err := strictjson.Decode(d.Payload, strictjson.Limits{MaxBytes: maxPrecedingBytes, MaxDepth: depth}, into); err != nil {
		return err
	}
	if *node != d.NodeID {
		return errors.New("nodeId must equal node_id")
	}
	return nil
}

// errPrecedingExternal refuses preceding events in an external run: its log has only
// the events of its envelopes.
func errPrecedingExternal() error {
	return errPreceding(": only for runs that this host executes")
}
