package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strconv"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// candidate is an envelope as written by the model, before the host completes it.
type candidate struct {
	doc  document
	body map[string]json.RawMessage // top-level members
	kind string
	// malformed means that the document breaks a rule that its parsed members do not show, such as
	// a duplicate member name.
	malformed bool
}

// fragment reports whether the envelope is a partial one and not the last.
func (c candidate) fragment() bool {
	var partial struct {
		IsPartial bool `json:"isPartial"`
	}
	return strictjson.Read(c.body["partial"], &partial) == nil && partial.IsPartial
}

// envelopePosition identifies an envelope within its run. Its ids are derived from it, so that a
// recovered run assigns the same ones.
type envelopePosition struct {
	runID, nodeID string
	attempt       int // the node's attempt; repeated calls for a wrong answer share it
	answered      int // clarifications answered before; each answer starts a new emission
	round         int // earlier turns of this emission
	index         int // ordinal within the turn
}

// correlationID returns the envelope's dedup key within the run (OpenWOP envelope contract §2.1).
func (p envelopePosition) correlationID(kind string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + strconv.Itoa(p.index)))
	turn := strconv.Itoa(p.attempt)
	if p.answered > 0 {
		turn += "q" + strconv.Itoa(p.answered)
	}
	if p.round > 0 {
		turn += "." + strconv.Itoa(p.round)
	}
	id := p.runID + ":" + p.nodeID + ":" + turn + ":" + hex.EncodeToString(sum[:6])
	if len(id) <= maxID {
		return id
	}
	tail := sha256.Sum256([]byte(id))
	return id[:maxID-33] + "-" + hex.EncodeToString(tail[:16])
}

const maxID = 128

func (p envelopePosition) envelopeID(kind string) string {
	sum := sha256.Sum256([]byte(p.correlationID(kind)))
	return "env_" + hex.EncodeToString(sum[:12])
}

// causationID returns the correlationId of the envelope at p; empty for a malformed envelope.
func (c candidate) causationID(p envelopePosition) string {
	if c.malformed {
		return ""
	}
	return p.correlationID(c.kind)
}

// complete adds the members that the model may omit and sets those that it must not decide: the ids
// that replay depends on, the node, and the trust. A model cannot declare itself trusted (OpenWOP
// envelope contract §12). A malformed document stays unchanged and is rejected by the shape step
// (§26 case 5).
func (c candidate) complete(
	p envelopePosition, version int, hints map[string]json.RawMessage, trust wire.Trust, now time.Time,
) []byte {
	if c.malformed {
		return c.doc.raw
	}
	body := map[string]json.RawMessage{}
	for k, v := range c.body {
		if k == "payload" || string(v) != "null" { // null is absence
			body[k] = v
		}
	}
	if _, ok := body["schemaVersion"]; !ok {
		body["schemaVersion"] = json.RawMessage(strconv.Itoa(version))
	}
	body["correlationId"] = wire.AppendString(nil, p.correlationID(c.kind))
	body["envelopeId"] = wire.AppendString(nil, p.envelopeID(c.kind))
	body["nodeId"] = wire.AppendString(nil, p.nodeID)
	body["meta"] = completeMeta(hints, trust, now)
	b, err := json.Marshal(body)
	if err != nil {
		return c.doc.raw // not JSON; the shape step rejects it
	}
	return b
}

// completeMeta returns a meta with the hints and with what the host decides.
func completeMeta(hints map[string]json.RawMessage, trust wire.Trust, now time.Time) json.RawMessage {
	meta := maps.Clone(hints)
	meta["source"] = json.RawMessage(`"ai-generation"`)
	meta["ts"] = wire.AppendString(nil, wire.FormatTime(now))
	meta["contentTrust"] = wire.AppendString(nil, string(wire.Trusted.Meet(trust)))
	return strictjson.RenderPlain(meta)
}
