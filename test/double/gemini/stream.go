package gemini

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"waybill.dev/waybill/test/double/vendor"
)

// responseID is constant, so that answers are reproducible.
const responseID = "double-response"

type callDoc struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type inlineDoc struct {
	MIME string `json:"mimeType"`
	Data []byte `json:"data"`
}

type partDoc struct {
	Text      *string    `json:"text,omitempty"`
	Thought   bool       `json:"thought,omitempty"`
	Call      *callDoc   `json:"functionCall,omitempty"`
	Inline    *inlineDoc `json:"inlineData,omitempty"`
	Signature string     `json:"thoughtSignature,omitempty"`
}

type contentDoc struct {
	Parts []partDoc `json:"parts"`
	Role  string    `json:"role"`
}

type ratingDoc struct {
	Category    string `json:"category"`
	Probability string `json:"probability"`
	Blocked     bool   `json:"blocked,omitempty"`
}

type candidateDoc struct {
	Content       *contentDoc `json:"content,omitempty"`
	Finish        string      `json:"finishReason,omitempty"`
	FinishMessage string      `json:"finishMessage,omitempty"`
	Index         int         `json:"index"`
	Ratings       []ratingDoc `json:"safetyRatings,omitempty"`
}

type feedbackDoc struct {
	Reason  string      `json:"blockReason"`
	Ratings []ratingDoc `json:"safetyRatings,omitempty"`
}

type usageDoc struct {
	Prompt     int `json:"promptTokenCount"`
	Candidates int `json:"candidatesTokenCount,omitempty"`
	Total      int `json:"totalTokenCount"`
	Cached     int `json:"cachedContentTokenCount,omitempty"`
	ToolUse    int `json:"toolUsePromptTokenCount,omitempty"`
	Thoughts   int `json:"thoughtsTokenCount,omitempty"`
}

type responseDoc struct {
	Candidates []candidateDoc `json:"candidates,omitempty"`
	Feedback   *feedbackDoc   `json:"promptFeedback,omitempty"`
	Usage      *usageDoc      `json:"usageMetadata,omitempty"`
	Model      string         `json:"modelVersion"`
	ID         string         `json:"responseId"`
}

// tokenRunes is the number of runes that the server counts as a token.
const tokenRunes = 4

// tokens counts a text.
func tokens(s string) int { return (utf8.RuneCountInString(s) + tokenRunes - 1) / tokenRunes }

// script is a reply prepared for a request: its parts and its token counts.
type script struct {
	parts  []partDoc
	finish string
	usage  usageDoc
}

// scripted applies the request's token limit to the reply. A longer text is cut, even within a
// word.
func (r Reply) scripted(req request) script {
	s := script{usage: usageDoc{Prompt: req.prompt}}
	room := req.maxTokens
	say := func(text string, thought bool, count *int) bool {
		cut := false
		if room > 0 {
			left := room - s.usage.Candidates - s.usage.Thoughts
			if cut = tokens(text) > left; cut {
				text = string([]rune(text)[:max(left, 0)*tokenRunes])
			}
		}
		*count += tokens(text)
		if text != "" || !cut {
			s.parts = append(s.parts, partDoc{Text: &text, Thought: thought})
		}
		return !cut
	}
	whole := true
	for _, t := range r.Thoughts {
		whole = whole && (!req.thoughts || say(t, true, &s.usage.Thoughts))
	}
	for _, p := range r.Pieces {
		whole = whole && say(p, false, &s.usage.Candidates)
	}
	s.finish = "MAX_TOKENS"
	if whole {
		s.rest(r)
		s.finish = "STOP"
	}
	if r.FinishReason != "" {
		s.finish = r.FinishReason
	}
	s.usage.Total = s.usage.Prompt + s.usage.Candidates + s.usage.Thoughts
	if u := r.Usage; u != nil {
		s.usage = usageDoc{Prompt: u.Prompt, Candidates: u.Candidates, Total: u.Total, Cached: u.Cached, ToolUse: u.ToolUse, Thoughts: u.Thoughts}
	}
	return s
}

// rest adds the parts sent in one piece: calls and media.
func (s *script) rest(r Reply) {
	for _, c := range r.Calls {
		args := c.Args
		if args == "" {
			args = "{}"
		}
		s.usage.Candidates += tokens(args)
		s.parts = append(s.parts, partDoc{Call: &callDoc{ID: c.ID, Name: c.Name, Args: json.RawMessage(args)}, Signature: "c2lnbmVk"})
	}
	for _, m := range r.Media {
		s.parts = append(s.parts, partDoc{Inline: &inlineDoc{MIME: m.MIME, Data: m.Data}, Thought: m.Thought})
	}
}

// streamer writes events.
type streamer struct {
	*vendor.Body
	call  call
	reply Reply
	usage *usageDoc
}

// stream sends the reply as server-sent events.
func (r Reply) stream(body *vendor.Body, c call) {
	body.Header().Set("Content-Type", "text/event-stream")
	body.Send("") // send the headers before any pause
	said := r.scripted(c.request)
	s := &streamer{Body: body, call: c, reply: r}
	if !r.NoUsage {
		s.usage = &said.usage
	}
	if r.Blocked != "" {
		d := s.doc()
		d.Feedback = &feedbackDoc{Reason: r.Blocked, Ratings: []ratingDoc{{Category: "HARM_CATEGORY_DANGEROUS_CONTENT", Probability: "HIGH", Blocked: true}}}
		s.paced(d)
		return
	}
	// The vendor sends the last part together with the finish reason.
	last := len(said.parts) - 1
	if r.End != EndWhole {
		last = len(said.parts)
	}
	for _, p := range said.parts[:max(last, 0)] {
		s.paced(s.doc(candidateDoc{Content: &contentDoc{Parts: []partDoc{p}, Role: "model"}}))
	}
	s.end(said, max(last, 0))
}

func (s *streamer) end(said script, last int) {
	switch end := s.reply.End; {
	case s.Ends(end):
	case end == EndError:
		s.Send("data: " + string(compact(s.reply.errorBody())) + "\r\n\r\n")
	case end == EndBareError:
		s.Send(string(s.reply.errorBody()))
	default:
		c := candidateDoc{Finish: said.finish, FinishMessage: s.reply.FinishMessage}
		if last < len(said.parts) {
			c.Content = &contentDoc{Parts: said.parts[last:], Role: "model"}
		}
		if s.reply.Harm != "" {
			c.Ratings = []ratingDoc{{Category: "HARM_CATEGORY_HARASSMENT", Probability: "NEGLIGIBLE"}, {Category: s.reply.Harm, Probability: "HIGH", Blocked: true}}
		}
		s.paced(s.doc(c))
	}
}

func (s *streamer) doc(candidates ...candidateDoc) responseDoc {
	d := responseDoc{Candidates: candidates, Usage: s.usage, Model: s.reply.Model, ID: responseID}
	if d.Model == "" {
		d.Model = s.call.request.model
	}
	return d
}

func (s *streamer) paced(d responseDoc) {
	s.Pace(s.reply.Interval, s.reply.Step)
	if s.reply.Noise != "" {
		s.Send(s.reply.Noise)
	}
	s.Send("data: " + string(vendor.JSON(d)) + "\r\n\r\n")
}

// whole sends the reply as one document. A client that streams without alt=sse gets a list of one.
func (r Reply) whole(body *vendor.Body, c call) {
	said := r.scripted(c.request)
	s := &streamer{call: c, reply: r, usage: &said.usage}
	d := s.doc(candidateDoc{Content: &contentDoc{Parts: said.parts, Role: "model"}, Finish: said.finish})
	if r.Blocked != "" {
		d.Candidates, d.Feedback = nil, &feedbackDoc{Reason: r.Blocked}
	}
	body.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if c.request.listed {
		_, _ = body.Write(indented([]responseDoc{d})) // the client may have disconnected
		return
	}
	_, _ = body.Write(indented(d))
}

// compact renders a document on one line.
func compact(doc []byte) []byte {
	var out strings.Builder
	for line := range strings.Lines(string(doc)) {
		out.WriteString(strings.TrimSpace(line))
	}
	return []byte(out.String())
}
