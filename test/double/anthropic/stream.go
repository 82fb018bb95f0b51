package anthropic

import (
	"encoding/json"
	"strings"

	"waybill.dev/waybill/test/double/vendor"
)

// messageID is constant, so that answers are reproducible.
const messageID = "msg_double"

// streamer writes events.
type streamer struct {
	*vendor.Body
	reply Reply
	call  call
	made  made
}

type doc = map[string]any

// stream sends the reply as server-sent events.
func (r Reply) stream(body *vendor.Body, c call) {
	body.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	body.Header().Set("Cache-Control", "no-cache")
	s := &streamer{Body: body, reply: r, call: c, made: r.compose(c.request)}
	m := s.message()
	m["content"], m["stop_reason"], m["stop_sequence"] = []any{}, nil, nil
	if !r.NoUsage {
		u := s.usage()
		u["output_tokens"] = 1 // at message_start the vendor reports one output token
		m["usage"] = u
	}
	s.event("message_start", doc{"message": m})
	s.event("ping", doc{})
	s.noise()
	for i, p := range s.made.parts {
		s.part(i, p)
	}
	s.end()
}

func (s *streamer) message() doc {
	model := s.reply.Model
	if model == "" {
		model = s.call.request.Model
	}
	return doc{"id": messageID, "type": "message", "role": "assistant", "model": model}
}

// usage is the usage that the vendor sends in message_start.
func (s *streamer) usage() doc {
	u := s.counts()
	return doc{
		"input_tokens": u.Input, "cache_creation_input_tokens": u.CacheWrite, "cache_read_input_tokens": u.CacheRead,
		"cache_creation": doc{"ephemeral_5m_input_tokens": u.CacheWrite, "ephemeral_1h_input_tokens": 0},
		"output_tokens":  u.Output, "service_tier": "standard",
	}
}

func (s *streamer) counts() Usage {
	if s.reply.Usage != nil {
		return *s.reply.Usage
	}
	return Usage{Input: s.call.request.prompt, Output: s.made.answered, Thinking: s.made.thoughts}
}

// part sends a content block.
func (s *streamer) part(i int, p part) {
	at := func(d doc) doc {
		d["index"] = i
		return d
	}
	delta := func(d doc) {
		s.Pace(s.reply.Interval, s.reply.Step)
		s.event("content_block_delta", at(doc{"delta": d}))
	}
	switch p.kind {
	case "thinking":
		s.event("content_block_start", at(doc{"content_block": doc{"type": p.kind, "thinking": "", "signature": ""}}))
		for _, piece := range p.pieces {
			delta(doc{"type": "thinking_delta", "thinking": piece})
		}
		delta(doc{"type": "signature_delta", "signature": "c2lnbmVk"})
	case "text":
		s.event("content_block_start", at(doc{"content_block": doc{"type": p.kind, "text": ""}}))
		for _, piece := range p.pieces {
			delta(doc{"type": "text_delta", "text": piece})
		}
	case "tool_use":
		s.event("content_block_start", at(doc{"content_block": doc{"type": p.kind, "id": p.id, "name": p.name, "input": doc{}}}))
		s.event("content_block_delta", at(doc{"delta": doc{"type": "input_json_delta", "partial_json": ""}}))
		for _, piece := range p.pieces {
			delta(doc{"type": "input_json_delta", "partial_json": piece})
		}
	default:
		s.event("content_block_start", at(doc{"content_block": p.raw}))
	}
	if s.reply.Noise {
		s.event("ping", doc{})
		s.event("content_block_delta", at(doc{"delta": doc{"type": "mood_delta", "mood": "cheerful"}}))
	}
	if i == len(s.made.parts)-1 && s.reply.End != EndWhole && s.reply.End != EndOpen {
		return // a cut stream ends within a block
	}
	s.event("content_block_stop", at(doc{}))
}

// noise sends events that clients must skip.
func (s *streamer) noise() {
	if s.reply.Noise {
		s.Send(": keep-alive\n\n")
		s.event("weather_report", doc{"sky": "blue"})
	}
}

func (s *streamer) end() {
	switch end := s.reply.End; {
	case s.Ends(end):
	case end == EndError:
		s.send("error", vendor.JSON(s.reply.errorDoc()))
	default:
		s.noise()
		d := doc{"delta": s.stop()}
		if !s.reply.NoUsage {
			u := s.counts()
			d["usage"] = doc{
				"input_tokens": u.Input, "cache_creation_input_tokens": u.CacheWrite, "cache_read_input_tokens": u.CacheRead,
				"output_tokens": u.Output, "output_tokens_details": doc{"thinking_tokens": u.Thinking},
			}
		}
		s.event("message_delta", d)
		s.event("message_stop", doc{})
		if end == EndOpen {
			s.Pace(-1, nil)
		}
	}
}

// stop returns the stop reason and its details.
func (s *streamer) stop() doc {
	d := doc{"stop_reason": s.made.reason, "stop_sequence": optional(s.made.sequence), "stop_details": nil}
	if f := s.reply.Refusal; f != nil {
		d["stop_details"] = doc{"type": "refusal", "category": optional(f.Category), "explanation": optional(f.Explanation)}
	}
	return d
}

// event sends a document as an event of this type.
func (s *streamer) event(kind string, d doc) {
	d["type"] = kind
	s.send(kind, vendor.JSON(d))
}

func (s *streamer) send(kind string, data []byte) {
	s.Send("event: " + kind + "\ndata: " + string(data) + "\n\n")
}

// whole sends the reply as one document.
func (r Reply) whole(body *vendor.Body, c call) {
	s := &streamer{Body: body, reply: r, call: c, made: r.compose(c.request)}
	content := []any{}
	for _, p := range s.made.parts {
		all := strings.Join(p.pieces, "")
		switch p.kind {
		case "thinking":
			content = append(content, doc{"type": p.kind, "thinking": all, "signature": "c2lnbmVk"})
		case "text":
			content = append(content, doc{"type": p.kind, "text": all})
		case "tool_use":
			input := json.RawMessage(all)
			if !json.Valid(input) { // cut in the middle
				input = json.RawMessage("{}")
			}
			content = append(content, doc{"type": p.kind, "id": p.id, "name": p.name, "input": input})
		default:
			content = append(content, p.raw)
		}
	}
	m := s.message()
	m["content"], m["usage"] = content, s.usage()
	for name, v := range s.stop() {
		m[name] = v
	}
	body.Header().Set("Content-Type", "application/json")
	_, _ = body.Write(vendor.JSON(m)) // the client may have disconnected
}
