package bundle

import (
	"encoding/json"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/protocol/cost"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// kept are the payload members that describe a run's course: ids, types, codes, counts, times. All
// other members are content and are dropped.
var kept = map[string]bool{
	"workflowId":              true,
	"engineVersion":           true,
	"transport":               true,
	"owner":                   true,
	"durationMs":              true,
	"nodeId":                  true,
	"typeId":                  true,
	"attempt":                 true,
	"delayMs":                 true,
	"reason":                  true,
	"name":                    true,
	"artifactId":              true,
	"artifactType":            true,
	"version":                 true,
	"level":                   true,
	"kind":                    true,
	"limit":                   true,
	"observed":                true,
	"provider":                true,
	"model":                   true,
	"inputTokens":             true,
	"outputTokens":            true,
	"totalTokens":             true,
	"cacheReadTokens":         true,
	"cacheWriteTokens":        true,
	"costEstimateUsd":         true,
	"currency":                true,
	"cacheHit":                true,
	"totalAttempts":           true,
	"finalReason":             true,
	"safetyCategory":          true,
	"stopReason":              true,
	"partialPayloadAvailable": true,
	"outputTokenCount":        true,
	"originalEnvelopeType":    true,
	"fallbackCalls":           true,
	"path":                    true,
	"byteOffset":              true,
	"interruptId":             true,
	"key":                     true,
	"runId":                   true,
	"isLast":                  true,
	"originalProvider":        true,
	"originalModel":           true,
	"fallbackProvider":        true,
	"fallbackModel":           true,
	"missingCapabilities":     true,
	"fallbackAttempted":       true,
	"cancelledBy":             true,
	"failedNodeId":            true,
	"parentRunId":             true,
	"schemaVersionDrift":      true,
}

// ofEnvelope are the kept members of an envelope's stamp.
var ofEnvelope = map[string]bool{
	"envelopeType": true, "envelopeId": true, "outcome": true, "refusalMode": true, "schemaVersionDrift": true,
}

// schemaForm matches the forms of a schema.
var schemaForm = regexp.MustCompile(`^"(json_schema|tool|json_object|words)"$`)

// ofCall returns the fields of a log entry about a model call: one that this host wrote has no other
// values.
func ofCall(fields map[string]json.RawMessage) map[string]json.RawMessage {
	var reason string
	_ = json.Unmarshal(fields["reason"], &reason) // another entry
	switch {
	case reason == wire.ReasonSchemaForm && schemaForm.Match(fields["schemaForm"]):
		return map[string]json.RawMessage{"reason": fields["reason"], "schemaForm": fields["schemaForm"]}
	case reason == wire.ReasonModelUsage:
		n, err := strconv.ParseInt(string(fields["reasoningTokens"]), 10, 64)
		if err == nil {
			return map[string]json.RawMessage{"reason": fields["reason"], "reasoningTokens": strconv.AppendInt(nil, n, 10)}
		}
	}
	return nil
}

// ofPrompt are the kept members of a prompt: its templates and digest, never its text or the digests
// of single values, which could be guessed.
var ofPrompt = map[string]bool{"refs": true, "hash": true, "contentTrust": true}

// ofMedia are the kept members of an asset: the reference, never the bytes (OpenWOP envelope
// contract §17).
var ofMedia = map[string]bool{"url": true, "bytes": true, "mimeType": true, "durationSeconds": true}

// Trimmer removes the content from events, so that a run with much content can be read page by page
// and held in memory.
type Trimmer struct{ filter inputFilter }

// NewTrimmer returns a Trimmer for the events of a run.
func NewTrimmer(s *runstate.State) *Trimmer { return &Trimmer{filter: newInputFilter(s)} }

// Trim returns the events without their content. Building a bundle from them gives the same result
// as from the original events.
func (t *Trimmer) Trim(events []wire.Event) []wire.Event {
	for i, e := range events {
		events[i] = t.filter.event(e)
	}
	return events
}

// event returns the event without its content.
func (t *inputFilter) event(e wire.Event) wire.Event {
	payload := members(e.Payload)
	out := keep(payload, kept)
	if e.Type == wire.EventPromptComposed {
		maps.Copy(out, keep(payload, ofPrompt))
	}
	if e.Type == wire.EventRunCancelled {
		delete(out, "reason") // text written by a person
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
	if a := ofCall(members(payload["fields"])); a != nil && e.CausationID == "" {
		out["fields"] = strictjson.Render(a)
	}
	var kind string
	if json.Unmarshal(payload["artifactType"], &kind) == nil && strings.HasPrefix(kind, "media.") {
		out["payload"] = strictjson.Render(t.media(members(payload["payload"])))
	}
	e.Payload = strictjson.Render(out)
	return e
}

// media returns the kept members of an asset. If this host did not store the asset, a model chose
// its address and type, which may repeat the run's inputs.
func (t *inputFilter) media(payload map[string]json.RawMessage) map[string]json.RawMessage {
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

func (t *inputFilter) nodeError(raw json.RawMessage) json.RawMessage {
	var e struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(raw, &e) // unreadable members are dropped
	return strictjson.Render(map[string]string{"code": e.Code, "message": t.message(e.Message)})
}

func members(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(raw, &m) // not an object: no members
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

// short returns a value only if it is small.
func short(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxText {
		return raw
	}
	var s string
	_ = json.Unmarshal(raw, &s) // not a string: dropped
	return strictjson.Render(clip(s))
}

// span is a span in the format of bundles.
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

func (t *inputFilter) span(s *runspan.Span) span {
	out := span{
		Name:       clip(s.Name),
		SpanID:     s.ID.String(),
		TraceID:    s.Trace.String(),
		Kind:       s.Kind,
		Status:     status{s.Code, t.message(s.Message)},
		StartedAt:  stamp(s.Start),
		Attributes: t.attributes(s.Attributes),
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

// attributes returns a span's attributes: ids, numbers and protocol words unchanged, and lists of
// the caller's own words (tags) after filtering.
func (t *inputFilter) attributes(from map[string]any) map[string]any {
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
