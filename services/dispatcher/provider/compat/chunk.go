package compat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// chunk holds the members that are read of a chunk. Compatible servers deviate from the vendor's API,
// so chunks are read for what they mean: numbers as strings, content as parts, a whole message in
// the place of a delta, usage within the choice.
type chunk struct {
	Model   string
	Usage   *usage // null in all chunks but one
	Choices []choice
	// Error is set if the server fails in the stream. Some servers send it as null in each chunk.
	Error json.RawMessage
}

// usage is the token usage. Nil members are unknown.
type usage struct {
	prompt, completion, total, cacheRead, cacheWrite, reasoning *int64
}

type choice struct {
	Index        int64
	FinishReason string
	Delta        delta
	// Whole means that Delta is a message and not a piece of one.
	Whole bool
}

type delta struct {
	Content textPiece
	Refusal string
	// Thought is the model's reasoning, in one of the members that servers use for it.
	Thought   string
	ToolCalls []toolPiece
	Audio     audioPiece
}

// textPiece is a piece of text, or raw if it is a JSON string that begins or ends within a
// character.
type textPiece struct {
	text string
	raw  json.RawMessage
}

// after returns the piece after a text.
func (p textPiece) after(text string) textPiece {
	if p.raw == nil {
		return textPiece{text: text + p.text}
	}
	quoted := strictjson.Render(text)
	return textPiece{raw: append(quoted[:len(quoted)-1], p.raw[1:]...)}
}

type toolPiece struct {
	Index     int64
	ID, Name  string
	Arguments textPiece
}

type audioPiece struct{ Data, Transcript string }

// failed reports whether the chunk is an error.
func (c chunk) failed() bool { return len(c.Error) > 0 && string(c.Error) != "null" }

// read parses a chunk.
func (c *chunk) read(data []byte) error {
	if c.readFast(data) {
		return nil
	}
	*c = chunk{}
	return c.readLoosely(data)
}

// readFast parses the usual form of a chunk in one pass; false if it deviates, or has escapes of which
// one alone may be half a character.
func (c *chunk) readFast(data []byte) bool {
	if bytes.Contains(data, []byte(`\ud`)) || bytes.Contains(data, []byte(`\uD`)) {
		return false
	}
	r := strictjson.Reading(data)
	usual := true
	r.Object(func(name []byte) {
		switch string(name) {
		case "model":
			readText(&r, &c.Model)
		case "choices":
			usual = c.choices(&r) && usual
		case "usage":
			if !r.Null() {
				usual = false
			}
		case "id", "object", "created", "system_fingerprint", "service_tier", "obfuscation":
		default:
			usual = false
		}
	})
	return usual && r.Sound()
}

// readText reads a string; null leaves it unchanged.
func readText(r *strictjson.Cursor, into *string) {
	if !r.Null() {
		*into = r.Text()
	}
}

func (c *chunk) choices(r *strictjson.Cursor) (usual bool) {
	usual = true
	c.Choices = []choice{}
	r.Array(func() {
		c.Choices = append(c.Choices, choice{})
		one := &c.Choices[len(c.Choices)-1]
		r.Object(func(name []byte) {
			switch string(name) {
			case "index":
				r.Set(&one.Index)
			case "finish_reason":
				readText(r, &one.FinishReason)
			case "delta":
				usual = one.Delta.read(r) && usual
			case "logprobs":
			default:
				usual = false
			}
		})
	})
	return usual
}

func (d *delta) read(r *strictjson.Cursor) (usual bool) {
	usual = true
	r.Object(func(name []byte) {
		switch string(name) {
		case "content":
			readText(r, &d.Content.text)
		case "refusal":
			readText(r, &d.Refusal)
		case "reasoning_content":
			readText(r, &d.Thought)
		case "role":
		default:
			usual = false
		}
	})
	return usual
}

// looseChunk has the members of chunks, error documents and whole answers as servers send them.
type looseChunk struct {
	Model   json.RawMessage `json:"model"`
	Usage   json.RawMessage `json:"usage"`
	Choices []looseChoice   `json:"choices"`
	Error   json.RawMessage `json:"error"`
	XGroq   struct {
		Usage json.RawMessage `json:"usage"`
		Error json.RawMessage `json:"error"`
	} `json:"x_groq"`
	// Object is "error" in vLLM's errors, whose other members are at the top.
	Object json.RawMessage `json:"object"`
}

type looseChoice struct {
	Index        json.RawMessage `json:"index"`
	FinishReason json.RawMessage `json:"finish_reason"`
	Delta        *looseDelta     `json:"delta"`
	Message      *looseDelta     `json:"message"`
	Usage        json.RawMessage `json:"usage"`
	Text         json.RawMessage `json:"text"` // of the older interface
	Error        json.RawMessage `json:"error"`
}

type looseDelta struct {
	Content          json.RawMessage `json:"content"`
	Refusal          json.RawMessage `json:"refusal"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
	Thinking         json.RawMessage `json:"thinking"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
	ToolCalls        []looseTool     `json:"tool_calls"`
	FunctionCall     *looseFunction  `json:"function_call"`
	Audio            json.RawMessage `json:"audio"`
}

type looseTool struct {
	Index    json.RawMessage `json:"index"`
	ID       json.RawMessage `json:"id"`
	Function looseFunction   `json:"function"`
}

type looseFunction struct {
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func (c *chunk) readLoosely(data []byte) error {
	var loose looseChunk
	if err := json.Unmarshal(data, &loose); err != nil {
		return err
	}
	c.Model, _ = strictjson.String(loose.Model)
	c.Error = loose.Error
	if !c.failed() {
		c.Error = loose.XGroq.Error
	}
	if object, _ := strictjson.String(loose.Object); object == "error" && !c.failed() {
		c.Error = data
	}
	if loose.Choices == nil && len(loose.Usage) == 0 && !c.failed() && isBareError(data) {
		c.Error = data
	}
	c.Usage = firstUsage(loose.Usage, loose.XGroq.Usage)
	for i, o := range loose.Choices {
		one := choice{Index: number(o.Index, 0), FinishReason: outbound.PlainText(o.FinishReason)}
		if o.Delta == nil && o.Message != nil {
			o.Delta, one.Whole = o.Message, true
		}
		if len(o.Error) > 0 && !c.failed() {
			c.Error = o.Error
		}
		if o.Delta != nil {
			one.Delta = o.Delta.plain()
		} else {
			one.Delta.Content = pieceOf(o.Text)
		}
		if i == 0 && c.Usage == nil {
			c.Usage = firstUsage(o.Usage)
		}
		c.Choices = append(c.Choices, one)
	}
	return nil
}

// isBareError reports whether a document without an answer has the members of an error at its top: a
// code and a message. Some gateways report errors so, with status 200.
func isBareError(doc []byte) bool {
	m := strictjson.Object(doc)
	said := false
	for _, name := range []string{"message", "msg", "detail"} {
		text, _ := strictjson.String(m[name])
		said = said || text != ""
	}
	for _, name := range []string{"code", "status", "statusCode"} {
		if code := outbound.PlainText(m[name]); said && code != "" && code != "0" && code != "200" {
			return true
		}
	}
	return false
}

func (l *looseDelta) plain() delta {
	d := contentOf(l.Content)
	d.Refusal += outbound.PlainText(l.Refusal)
	for _, raw := range []json.RawMessage{l.ReasoningContent, l.Reasoning, l.Thinking} {
		if d.Thought == "" {
			d.Thought = outbound.PlainText(raw)
		}
	}
	if d.Thought == "" {
		d.Thought = detailsText(l.ReasoningDetails)
	}
	for i, t := range l.ToolCalls {
		d.ToolCalls = append(d.ToolCalls, toolPiece{
			Index:     number(t.Index, int64(i)),
			ID:        outbound.PlainText(t.ID),
			Name:      outbound.PlainText(t.Function.Name),
			Arguments: pieceOf(t.Function.Arguments),
		})
	}
	if f := l.FunctionCall; f != nil { // the older form of the only tool call
		d.ToolCalls = append(d.ToolCalls, toolPiece{Name: outbound.PlainText(f.Name), Arguments: pieceOf(f.Arguments)})
	}
	audio := strictjson.Object(l.Audio)
	d.Audio = audioPiece{Data: outbound.PlainText(audio["data"]), Transcript: outbound.PlainText(audio["transcript"])}
	return d
}

// detailsText joins the texts of a list of reasoning.
func detailsText(raw json.RawMessage) (text string) {
	var details []struct {
		Text    json.RawMessage `json:"text"`
		Summary json.RawMessage `json:"summary"`
	}
	_ = json.Unmarshal(raw, &details) // another form has no text
	for _, d := range details {
		text += outbound.PlainText(d.Text) + outbound.PlainText(d.Summary)
	}
	return text
}

// part is a part of content.
type part struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"`
	Content  json.RawMessage `json:"content"`
	Thinking json.RawMessage `json:"thinking"`
	Refusal  json.RawMessage `json:"refusal"`
}

// Types of parts. Those without text, such as references to sources, are passed over.
var (
	textParts    = []string{"text", "output_text", "input_text"}                                      //nolint:gochecknoglobals // a constant
	thoughtParts = []string{"thinking", "reasoning", "reasoning_text", "summary_text"}                //nolint:gochecknoglobals // a constant
	silentParts  = []string{"reference", "citation", "image_url", "redacted_thinking", "tool_result"} //nolint:gochecknoglobals // a constant
)

const refusalPart = "refusal"

// isPart reports whether an object is a part of content, and not an answer that the server parsed.
func (p part) isPart() bool {
	switch {
	case p.Type == refusalPart, slices.Contains(thoughtParts, p.Type), slices.Contains(silentParts, p.Type):
		return true
	case slices.Contains(textParts, p.Type):
		return len(p.Text)+len(p.Content) > 0
	default:
		return p.Type == "" && len(p.Text) > 0
	}
}

// words returns the text of a part, as it is written.
func (p part) words() json.RawMessage {
	raw := p.Text
	if len(raw) == 0 {
		raw = p.Content
	}
	if inner := strictjson.Object(raw)["value"]; len(inner) > 0 {
		return inner
	}
	return raw
}

// contentOf reads content: a string, a part, or a list of parts. Any other value is an answer that the
// server parsed.
func contentOf(raw json.RawMessage) (d delta) {
	parts, ok := partsOf(raw)
	switch {
	case !ok:
		return delta{Content: pieceOf(raw)}
	case len(parts) == 1 && (parts[0].Type == "" || slices.Contains(textParts, parts[0].Type)):
		return delta{Content: pieceOf(parts[0].words())}
	}
	for _, p := range parts {
		switch {
		case slices.Contains(thoughtParts, p.Type):
			d.Thought += contentOf(p.Thinking).Content.text + outbound.PlainText(p.words())
		case p.Type == refusalPart:
			d.Refusal += outbound.PlainText(p.Refusal)
		default:
			d.Content.text += outbound.PlainText(p.words())
		}
	}
	return d
}

// partsOf reads parts; ok is false if the value is something else.
func partsOf(raw json.RawMessage) (parts []part, ok bool) {
	switch strictjson.KindOf(raw) {
	case "an object":
		var one part
		if json.Unmarshal(raw, &one) != nil || one.Type == "" || !one.isPart() {
			return nil, false
		}
		return []part{one}, true
	case "an array":
		if json.Unmarshal(raw, &parts) != nil || slices.ContainsFunc(parts, func(p part) bool { return !p.isPart() }) {
			return nil, false
		}
		return parts, true
	default:
		return nil, false
	}
}

// pieceOf reads a piece of text.
func pieceOf(raw json.RawMessage) textPiece {
	if strictjson.KindOf(raw) == "a string" && (!utf8.Valid(raw) || strings.Contains(strings.ToLower(string(raw)), `\ud`)) {
		return textPiece{raw: raw}
	}
	return textPiece{text: outbound.PlainText(raw)}
}

// number reads an integer in any notation, also as a string.
func number(raw json.RawMessage, otherwise int64) int64 {
	f, err := json.Number(strings.TrimSpace(outbound.PlainText(raw))).Float64()
	if err != nil || f < -maxNumber || f > maxNumber {
		return otherwise
	}
	return int64(f)
}

// maxNumber limits counts: no answer has as many tokens.
const maxNumber = 1 << 40

// firstUsage reads the first usage that there is.
func firstUsage(among ...json.RawMessage) *usage {
	for _, raw := range among {
		members := strictjson.Object(raw)
		count := func(names ...string) *int64 {
			at := members
			for _, name := range names[:len(names)-1] {
				at = strictjson.Object(at[name])
			}
			n := number(at[names[len(names)-1]], -1)
			if n < 0 {
				return nil
			}
			return &n
		}
		either := func(one, other *int64) *int64 {
			if one != nil {
				return one
			}
			return other
		}
		u := usage{
			prompt:     either(count("prompt_tokens"), count("input_tokens")),
			completion: either(count("completion_tokens"), count("output_tokens")),
			total:      count("total_tokens"),
			cacheRead: either(count("prompt_tokens_details", "cached_tokens"),
				count("input_tokens_details", "cached_tokens")),
			cacheWrite: either(count("prompt_tokens_details", "cache_write_tokens"),
				count("input_tokens_details", "cache_write_tokens")),
		}
		u.cacheRead = either(u.cacheRead, count("prompt_cache_hit_tokens"))
		u.reasoning = either(either(count("completion_tokens_details", "reasoning_tokens"),
			count("output_tokens_details", "reasoning_tokens")), count("reasoning_tokens"))
		if u.prompt != nil || u.completion != nil || u.total != nil {
			return &u
		}
	}
	return nil
}
