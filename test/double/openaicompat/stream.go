package openaicompat

import (
	"encoding/base64"
	"strings"

	"waybill.dev/waybill/test/double/vendor"
)

// replyID and created are constant, so that answers are reproducible.
const (
	replyID = "chatcmpl-double"
	created = 1767225600
)

type usageDoc struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens,omitempty"`
	} `json:"prompt_tokens_details"`
	Spent *spentDoc `json:"completion_tokens_details,omitempty"`
}

type spentDoc struct {
	Reasoning int `json:"reasoning_tokens"`
}

type toolCallDoc struct {
	Index    int    `json:"index"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type messageDoc struct {
	Role      string        `json:"role,omitempty"`
	Content   *string       `json:"content,omitempty"`
	Refusal   *string       `json:"refusal,omitempty"`
	ToolCalls []toolCallDoc `json:"tool_calls,omitempty"`
	Audio     *audioDoc     `json:"audio,omitempty"`
	Thought   string        `json:"reasoning_content,omitempty"`
}

// audioDoc is a piece of audio, of its transcript, or its end.
type audioDoc struct {
	ID         string `json:"id,omitempty"`
	Data       string `json:"data,omitempty"`
	Transcript string `json:"transcript,omitempty"`
	Expires    int    `json:"expires_at,omitempty"`
}

type choiceDoc struct {
	Index   int         `json:"index"`
	Delta   *messageDoc `json:"delta,omitempty"`
	Message *messageDoc `json:"message,omitempty"`
	// Logprobs is null with OpenAI and absent with other servers.
	Logprobs any     `json:"logprobs,omitempty"`
	Finish   *string `json:"finish_reason"`
}

type replyDoc struct {
	ID      string      `json:"id"`
	Object  string      `json:"object"`
	Created int         `json:"created"`
	Model   string      `json:"model"`
	Tier    string      `json:"service_tier,omitempty"`
	System  string      `json:"system_fingerprint,omitempty"`
	Choices []choiceDoc `json:"choices"`
	// Usage is absent unless requested. If requested, it is null in every chunk but the last.
	Usage any `json:"usage,omitempty"`
	// Padding hides the length of the piece from a network observer.
	Padding string `json:"obfuscation,omitempty"`
}

// null renders as null; a nil value would be omitted.
type null struct{}

// MarshalJSON writes null.
func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// streamer writes chunks.
type streamer struct {
	*vendor.Body
	call  call
	reply Reply
}

// stream sends the reply as server-sent events.
func (r Reply) stream(body *vendor.Body, c call) {
	body.Header().Set("Content-Type", "text/event-stream")
	s := &streamer{Body: body, call: c, reply: r}
	empty := ""
	s.chunk(messageDoc{Role: "assistant", Content: &empty}, nil)
	for _, thought := range r.Thoughts {
		s.paced(messageDoc{Thought: thought})
	}
	s.pieces()
	for piece := range strings.SplitAfterSeq(r.Refusal, " ") {
		if piece != "" {
			s.paced(messageDoc{Refusal: &piece})
		}
	}
	for _, t := range r.calls() {
		s.toolCall(t)
	}
	s.end()
}

// pieces sends the reply's text in the requested member.
func (s *streamer) pieces() {
	if name := s.reply.forced(s.call); name != "" {
		first := toolCallDoc{ID: "call_double", Type: "function"}
		first.Function.Name = name
		s.chunk(messageDoc{ToolCalls: []toolCallDoc{first}}, nil)
		for _, piece := range s.reply.Pieces {
			var t toolCallDoc
			t.Function.Arguments = piece
			s.paced(messageDoc{ToolCalls: []toolCallDoc{t}})
		}
		return
	}
	for _, piece := range s.reply.Pieces {
		if s.call.request.wantsSound() {
			s.paced(messageDoc{Audio: &audioDoc{ID: "audio_double", Transcript: piece}})
			continue
		}
		s.paced(messageDoc{Content: &piece})
	}
	s.sound()
}

// sound sends the audio in two pieces of whole samples.
func (s *streamer) sound() {
	all := s.reply.Sound
	if len(all) == 0 {
		return
	}
	half := len(all) / 4 * 2
	for _, piece := range [][]byte{all[:half], all[half:]} {
		if len(piece) > 0 {
			s.paced(messageDoc{Audio: &audioDoc{ID: "audio_double", Data: base64.StdEncoding.EncodeToString(piece)}})
		}
	}
}

// toolCall sends a call in two chunks, as the vendor splits arguments.
func (s *streamer) toolCall(t toolCallDoc) {
	all := t.Function.Arguments
	t.Function.Arguments = all[:len(all)/2]
	s.paced(messageDoc{ToolCalls: []toolCallDoc{t}})
	rest := toolCallDoc{Index: t.Index}
	rest.Function.Arguments = all[len(all)/2:]
	s.paced(messageDoc{ToolCalls: []toolCallDoc{rest}})
}

func (s *streamer) end() {
	switch end := s.reply.End; {
	case s.Ends(end):
	case end == EndError:
		s.event(string(vendor.JSON(s.reply.errorBody())))
	default:
		finish := s.reply.finish()
		s.chunk(messageDoc{}, &finish)
		if len(s.reply.Sound) > 0 {
			s.chunk(messageDoc{Audio: &audioDoc{Expires: created + 3600}}, nil)
		}
		if s.call.request.wantsUsage() {
			d := s.doc()
			d.Choices, d.Usage = []choiceDoc{}, s.reply.usage()
			s.event(string(vendor.JSON(d)))
		}
		s.event("[DONE]")
	}
}

func (s *streamer) doc() replyDoc {
	d := replyDoc{ID: replyID, Object: "chat.completion.chunk", Created: created, Model: s.reply.model(s.call)}
	if s.call.request.wantsUsage() {
		d.Usage = null{}
	}
	if s.call.openai {
		d.Tier, d.System = "default", "fp_double"
	}
	return d
}

func (s *streamer) paced(m messageDoc) {
	s.Pace(s.reply.Interval, s.reply.Step)
	if s.reply.Noise != "" {
		s.Send(s.reply.Noise)
	}
	s.chunk(m, nil)
}

func (s *streamer) chunk(m messageDoc, finish *string) {
	d := s.doc()
	one := choiceDoc{Delta: &m, Finish: finish}
	if s.call.openai {
		one.Logprobs, d.Padding = null{}, "k3Q"
	}
	d.Choices = []choiceDoc{one}
	s.event(string(vendor.JSON(d)))
}

func (s *streamer) event(data string) { s.Send("data: " + data + "\n\n") }

// whole sends the reply as one document.
func (r Reply) whole(body *vendor.Body, c call) {
	content := strings.Join(r.Pieces, "")
	finish := r.finish()
	m := &messageDoc{Role: "assistant", Content: &content, Refusal: optional(r.Refusal), ToolCalls: r.calls()}
	if name := r.forced(c); name != "" {
		t := toolCallDoc{ID: "call_double", Type: "function"}
		t.Function.Name, t.Function.Arguments = name, content
		m.Content, m.ToolCalls = nil, []toolCallDoc{t}
	}
	d := replyDoc{ID: replyID, Object: "chat.completion", Created: created, Model: r.model(c), Usage: r.usage()}
	d.Choices = []choiceDoc{{Message: m, Finish: &finish}}
	body.Header().Set("Content-Type", "application/json")
	_, _ = body.Write(vendor.JSON(d)) // the client may have disconnected
}
