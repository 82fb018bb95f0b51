package openaicompat

import (
	"net/http"
	"strings"
)

// replyID and created are the same for all replies: nothing here depends on the
// clock.
const (
	replyID = "chatcmpl-double"
	created = 1767225600
)

type usageDoc struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

type toolCallDoc struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type messageDoc struct {
	Role      string        `json:"role,omitempty"`
	Content   *string       `json:"content,omitempty"`
	Refusal   *string       `json:"refusal,omitempty"`
	ToolCalls []toolCallDoc `json:"tool_calls,omitempty"`
}

type choiceDoc struct {
	Index   int         `json:"index"`
	Delta   *messageDoc `json:"delta,omitempty"`
	Message *messageDoc `json:"message,omitempty"`
	Finish  *string     `json:"finish_reason"`
}

type replyDoc struct {
	ID      string      `json:"id"`
	Object  string      `json:"object"`
	Created int         `json:"created"`
	Model   string      `json:"model"`
	Choices []choiceDoc `json:"choices"`
	// Usage is null in every chunk but the last when it was asked for, and absent
	// when it was not.
	Usage any `json:"usage,omitempty"`
}

// null is a usage that is there and null; a nil would be left out.
type null struct{}

// MarshalJSON writes null.
func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// streamer writes chunks.
type streamer struct {
	w     http.ResponseWriter
	call  call
	reply Reply
	gone  bool
}

// stream sends the reply as server-sent events.
func (r Reply) stream(w http.ResponseWriter, c call) {
	w.Header().Set("Content-Type", "text/event-stream")
	s := &streamer{w: w, call: c, reply: r}
	empty := ""
	s.chunk(messageDoc{Role: "assistant", Content: &empty}, nil)
	for _, piece := range r.Pieces {
		s.paced(messageDoc{Content: &piece})
	}
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

// toolCall comes in two chunks, as the vendor cuts arguments.
func (s *streamer) toolCall(t toolCallDoc) {
	all := t.Function.Arguments
	t.Function.Arguments = all[:len(all)/2]
	s.paced(messageDoc{ToolCalls: []toolCallDoc{t}})
	rest := toolCallDoc{Index: t.Index}
	rest.Function.Arguments = all[len(all)/2:]
	s.paced(messageDoc{ToolCalls: []toolCallDoc{rest}})
}

func (s *streamer) end() {
	switch s.reply.End {
	case EndStall:
		s.call.pause(-1)
		panic(http.ErrAbortHandler)
	case EndCut:
		panic(http.ErrAbortHandler) // net/http's way to break a connection off
	case EndSilent:
	case EndError:
		s.event(string(marshal(s.reply.errorBody())))
	default:
		finish := s.reply.finish()
		s.chunk(messageDoc{}, &finish)
		if s.call.request.wantsUsage() {
			d := s.doc()
			d.Choices, d.Usage = []choiceDoc{}, s.reply.usage()
			s.event(string(marshal(d)))
		}
		s.event("[DONE]")
	}
}

func (s *streamer) doc() replyDoc {
	d := replyDoc{ID: replyID, Object: "chat.completion.chunk", Created: created, Model: s.reply.model(s.call)}
	if s.call.request.wantsUsage() {
		d.Usage = null{}
	}
	return d
}

func (s *streamer) paced(m messageDoc) {
	s.gone = s.gone || !s.call.pause(s.reply.Interval)
	s.chunk(m, nil)
}

func (s *streamer) chunk(m messageDoc, finish *string) {
	d := s.doc()
	d.Choices = []choiceDoc{{Delta: &m, Finish: finish}}
	s.event(string(marshal(d)))
}

func (s *streamer) event(data string) {
	if s.gone {
		return
	}
	_, err := s.w.Write([]byte("data: " + data + "\n\n"))
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	s.gone = err != nil
}

// whole sends the reply as one document.
func (r Reply) whole(w http.ResponseWriter, c call) {
	content := strings.Join(r.Pieces, "")
	finish := r.finish()
	m := &messageDoc{Role: "assistant", Content: &content, Refusal: optional(r.Refusal), ToolCalls: r.calls()}
	d := replyDoc{ID: replyID, Object: "chat.completion", Created: created, Model: r.model(c), Usage: r.usage()}
	d.Choices = []choiceDoc{{Message: m, Finish: &finish}}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(marshal(d))
}
