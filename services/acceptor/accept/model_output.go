package accept

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// CompleteModelOutput returns the document of a request with the members that a model may leave out:
// meta, envelopeId and correlationId (OpenWOP envelope contract §2.1). The ids derive from the run, the
// node and the document, so a repeated request has the same. A document that is no JSON object stays
// unchanged; the shape step refuses it.
func CompleteModelOutput(req Request, now time.Time) []byte {
	var (
		w    wire.ObjectWriter
		ids  = map[string]string{}
		meta json.RawMessage
	)
	members := 0
	sound := strictjson.Each(req.Document, func(name, value []byte) {
		absent := string(value) == "null"
		switch string(name) {
		case "meta":
			meta = value
			return
		case "envelopeId", "correlationId":
			if absent {
				return
			}
			ids[string(name)], _ = strictjson.String(value)
		}
		members++
		w.Raw(string(name), value)
	})
	if !sound || members == 0 {
		return req.Document
	}
	envelopeID, ok := ids["envelopeId"]
	if !ok {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%s", req.Run.RunID, req.NodeID, req.Answer.Index, req.Document))
		envelopeID = "env_" + hex.EncodeToString(sum[:12])
		w.String("envelopeId", envelopeID)
	}
	if _, ok := ids["correlationId"]; !ok {
		w.String("correlationId", correlationOf(req, envelopeID))
	}
	w.Raw("meta", completedMeta(meta, now))
	return w.Close()
}

// correlationOf returns run, node and envelope as a correlationId. The end of a longer one is hashed.
func correlationOf(req Request, envelopeID string) string {
	id := req.Run.RunID + ":" + req.NodeID + ":" + envelopeID
	if len(id) <= maxIDLength {
		return id
	}
	tail := sha256.Sum256([]byte(id))
	const hashed = 32
	return id[:maxIDLength-hashed-1] + "-" + hex.EncodeToString(tail[:hashed/2])
}

// completedMeta returns a meta with source and ts. One that is no object stays unchanged.
func completedMeta(meta json.RawMessage, now time.Time) json.RawMessage {
	var w wire.ObjectWriter
	has := map[string]bool{}
	if len(meta) > 0 && string(meta) != "null" {
		if strictjson.Object(meta) == nil {
			return meta
		}
		strictjson.Each(meta, func(name, value []byte) {
			if name := string(name); string(value) != "null" || name != "source" && name != "ts" {
				has[name] = true
				w.Raw(name, value)
			}
		})
	}
	if !has["source"] {
		w.String("source", "ai-generation")
	}
	if !has["ts"] {
		w.String("ts", wire.FormatTime(now))
	}
	return w.Close()
}
