package bundle

import (
	"encoding/json"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/cost"
	"waybill.dev/waybill/protocol/runspan"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// kept are the members of payloads that tell a run's course: ids, types, codes,
// counts, times. Whatever else a payload has is content, and is left out.
var kept = map[string]bool{
	"workflowId": true, "engineVersion": true, "transport": true, "owner": true, "durationMs": true, "nodeId": true, "typeId": true,
	"attempt": true, "delayMs": true, "reason": true, "name": true, "artifactId": true, "artifactType": true, "version": true,
	"level": true, "kind": true, "limit": true, "observed": true, "provider": true, "model": true, "inputTokens": true, "outputTokens": true,
	"totalTokens": true, "cacheReadTokens": true, "cacheWriteTokens": true, "costEstimateUsd": true, "currency": true, "cacheHit": true,
	"totalAttempts": true, "finalReason": true, "safetyCategory": true, "stopReason": true, "partialPayloadAvailable": true,
	"outputTokenCount": true, "originalEnvelopeType": true, "fallbackCalls": true, "path": true, "byteOffset": true,
	"interruptId": true, "key": true, "runId": true, "isLast": true, "originalProvider": true, "originalModel": true,
	"fallbackProvider": true, "fallbackModel": true, "missingCapabilities": true, "fallbackAttempted": true, "cancelledBy": true,
	"failedNodeId": true, "parentRunId": true,
}

// ofEnvelope are what is kept of the stamp of an envelope.
var ofEnvelope = map[string]bool{"envelopeType": true, "envelopeId": true, "outcome": true, "refusalMode": true}

// ofMedia are what is kept of an asset: the reference, never the bytes (OpenWOP
// envelope contract §17).
var ofMedia = map[string]bool{"url": true, "bytes": true, "mimeType": true, "durationSeconds": true}

// Trimmer takes the content out of events, so that a run which carried much of it
// can be read page by page and be kept in memory.
type Trimmer struct{ told told }

// NewTrimmer makes one for the events of a run.
func NewTrimmer(s *runstate.State) *Trimmer { return &Trimmer{told: newTold(s)} }

// Trim gives the events without their content. A bundle of them is that of the
// events as they were.
func (t *Trimmer) Trim(events []wire.Event) []wire.Event {
	for i, e := range events {
		events[i] = t.told.event(e)
	}
	return events
}

// event is the event without its content.
func (t *told) event(e wire.Event) wire.Event {
	payload := members(e.Payload)
	out := keep(payload, kept)
	if e.Type == wire.EventRunCancelled {
		delete(out, "reason") // somebody's words
	}
	for _, name := range []string{"error", "lastError"} {
		if raw, ok := payload[name]; ok {
			out[name] = t.nodeError(raw)
		}
	}
	for _, name := range []string{"fields", "envelope"} {
		if raw, ok := payload[name]; ok {
			out[name] = strictjson.Render(keep(members(raw), ofEnvelope))
		}
	}
	if a := cost.Sanitize(payload["fields"]); a != nil && e.CausationID == "" {
		out["fields"] = strictjson.Render(a)
	}
	var kind string
	if json.Unmarshal(payload["artifactType"], &kind) == nil && strings.HasPrefix(kind, "media.") {
		out["payload"] = strictjson.Render(t.media(members(payload["payload"])))
	}
	e.Payload = strictjson.Render(out)
	return e
}

// media is what is told of an asset. Its address and type are the model's words, if
// this host did not make them, and may say what the run was told.
func (t *told) media(payload map[string]json.RawMessage) map[string]json.RawMessage {
	asset := keep(payload, ofMedia)
	delete(asset, "url")
	if ref, ok := reference(payload["url"]); ok {
		asset["url"] = strictjson.Render(t.message(ref))
	}
	var typ string
	if json.Unmarshal(payload["mimeType"], &typ) != nil || !mediaType.MatchString(typ) {
		delete(asset, "mimeType")
	} else {
		asset["mimeType"] = strictjson.Render(t.message(typ))
	}
	return asset
}

func (t *told) nodeError(raw json.RawMessage) json.RawMessage {
	var e struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(raw, &e) // what cannot be read is left out
	return strictjson.Render(map[string]string{"code": e.Code, "message": t.message(e.Message)})
}

func members(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(raw, &m) // no object: no members
	return m
}

func keep(from map[string]json.RawMessage, names map[string]bool) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, raw := range from {
		if names[name] {
			out[name] = short(raw)
		}
	}
	return out
}

// short is a value that takes no room from the rest.
func short(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxText {
		return raw
	}
	var s string
	_ = json.Unmarshal(raw, &s) // no text: nothing of it is kept
	return strictjson.Render(clip(s))
}

// span is a span as bundles have it.
type span struct {
	Name         string         `json:"name"`
	SpanID       string         `json:"spanId"`
	TraceID      string         `json:"traceId"`
	ParentSpanID *string        `json:"parentSpanId"`
	Kind         runspan.Kind   `json:"kind"`
	Status       status         `json:"status"`
	StartedAt    string         `json:"startedAt"`
	EndedAt      *string        `json:"endedAt"`
	Attributes   map[string]any `json:"attributes"`
	Events       []moment       `json:"events,omitempty"`
}

type status struct {
	Code    runspan.Code `json:"code"`
	Message string       `json:"message,omitempty"`
}

type moment struct {
	Name       string         `json:"name"`
	Timestamp  string         `json:"timestamp"`
	Attributes map[string]any `json:"attributes"`
}

func (t *told) span(s *runspan.Span) span {
	out := span{
		Name: clip(s.Name), SpanID: s.ID.String(), TraceID: s.Trace.String(), Kind: s.Kind, Status: status{s.Code, t.message(s.Message)},
		StartedAt: stamp(s.Start), Attributes: t.attributes(s.Attributes),
	}
	if s.Parent != (runspan.SpanID{}) {
		p := s.Parent.String()
		out.ParentSpanID = &p
	}
	if s.Ended() {
		end := stamp(s.End)
		out.EndedAt = &end
	}
	for _, m := range s.Events {
		out.Events = append(out.Events, moment{m.Name, stamp(m.At), t.attributes(m.Attributes)})
	}
	return out
}

// attributes are those of a span: ids, numbers and words of the protocol, which
// stay, and lists of the caller's own words, its tags.
func (t *told) attributes(from map[string]any) map[string]any {
	out := make(map[string]any, len(from))
	for name, v := range from {
		switch v := v.(type) {
		case string:
			out[name] = clip(v)
		case []string:
			out[name] = t.messages(v)
		default:
			out[name] = v
		}
	}
	return out
}

func stamp(t time.Time) string { return wire.FormatTime(t) }
