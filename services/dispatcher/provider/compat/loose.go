package compat

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// members are those of an object. Servers and gateways deviate in types and places: a member of another
// type than expected reads as absent, and costs none of the others.
type members map[string]json.RawMessage

// membersOf reads an object. Unlike strictjson it accepts text that was cut within a character.
func membersOf(raw json.RawMessage) (m members) {
	_ = json.Unmarshal(raw, &m) // another value has no members
	return m
}

func (m members) text(name string) string { return outbound.PlainText(m[name]) }

// objects reads a list of objects, or one object without its list, or a map of objects by their index.
func objects(raw json.RawMessage) (out []members) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		one := membersOf(raw)
		if first := membersOf(one["0"]); first != nil {
			return []members{first}
		}
		items = []json.RawMessage{raw}
	}
	for _, item := range items {
		if m := membersOf(item); m != nil {
			out = append(out, m)
		}
	}
	return out
}

// present reports whether a member has a value that means something.
func present(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", "0", `""`, "{}", "[]":
		return false
	}
	return true
}

// readLoosely parses a chunk, an error document or a whole answer as servers send them.
func (c *chunk) readLoosely(data []byte) error {
	var top members
	if err := json.Unmarshal(data, &top); err != nil {
		return err
	}
	top = top.unwrapped()
	c.Model, _ = strictjson.String(top["model"])
	groq := membersOf(top["x_groq"])
	choices := objects(top["choices"])
	c.Error = top.failure(data, len(choices) > 0)
	if c.Error == nil && present(groq["error"]) {
		c.Error = groq["error"]
	}
	c.Usage = usageIn(top["usage"], groq["usage"], top["usageMetadata"], top["usage_metadata"], top["amazon-bedrock-invocationMetrics"])
	if c.Usage == nil {
		c.Usage = timingsOf(top["timings"])
	}
	if c.Usage == nil && len(top["eval_count"])+len(top["prompt_eval_count"]) > 0 { // of Ollama's own interface
		c.Usage = usageIn(data)
	}
	for i, o := range choices {
		if c.Error == nil && isError(o["error"]) {
			c.Error = o["error"]
		}
		if i == 0 && c.Usage == nil {
			c.Usage = usageIn(o["usage"], membersOf(o["delta"])["usage"], membersOf(o["message"])["usage"])
		}
		c.Choices = append(c.Choices, o.choice())
	}
	if finish := top.finish(); finish != "" && len(choices) == 0 {
		c.FinishReason = finish
	}
	return nil
}

// unwrapped returns the answer that a gateway has put into a document of its own.
func (m members) unwrapped() members {
	for _, name := range []string{"data", "result"} {
		if inner := membersOf(m[name]); inner["choices"] != nil && m["choices"] == nil {
			return inner
		}
	}
	return m
}

// failure returns the error of a document; nil if it is none. answered means that it has choices.
func (m members) failure(doc []byte, answered bool) json.RawMessage {
	object := m.text("object")
	base := membersOf(m["base_resp"]) // MiniMax
	switch {
	case isError(m["error"]):
		return m["error"]
	case object == "error", number(base["status_code"], 0) != 0,
		!answered && !present(m["usage"]) && (isError(m["errors"]) || isBareError(m)):
		return doc
	}
	return nil
}

// isError reports whether a member named error is one. Some servers send it in each chunk, without a value.
func isError(raw json.RawMessage) bool {
	if !present(raw) {
		return false
	}
	for _, value := range membersOf(raw) {
		if present(value) {
			return true
		}
	}
	return strictjson.KindOf(raw) != "an object"
}

// isBareError reports whether a document without an answer has the members of an error at its top: a
// message with an error's code or without success, or a detail alone. Some gateways report errors so, with status 200.
func isBareError(m members) bool {
	said := false
	for _, name := range []string{"message", "msg", "detail", "error_msg"} {
		text, _ := strictjson.String(m[name])
		said = said || text != ""
	}
	for _, name := range []string{"code", "status", "statusCode", "status_code"} {
		if said && isErrorCode(m.text(name)) {
			return true
		}
	}
	if code := m.text("error_code"); said && code != "" && code != "0" {
		return true
	}
	return len(m) == 1 && present(m["detail"]) || said && string(m["success"]) == "false"
}

// isErrorCode reports whether a code or status means a failure, and not the progress of a call.
func isErrorCode(code string) bool {
	const firstStatus, firstError = 100, 400
	if n, err := strconv.Atoi(code); err == nil {
		return n != 0 && (n < firstStatus || n >= firstError)
	}
	return code != "" && !outbound.IsProgress(outbound.Word(code))
}

// finish returns the reason why the answer ended.
func (m members) finish() string {
	for _, name := range []string{"finish_reason", "finishReason"} {
		raw := m[name]
		if inner := membersOf(raw)["type"]; inner != nil {
			raw = inner
		}
		var several []json.RawMessage
		if json.Unmarshal(raw, &several) == nil && len(several) > 0 {
			raw = several[0]
		}
		if text := outbound.PlainText(raw); text != "" {
			return text
		}
	}
	return ""
}

// choice reads a choice. Its content is in a delta, in a whole message, or in the text of the older
// interface.
func (m members) choice() choice {
	one := choice{Index: number(m["index"], 0), FinishReason: m.finish()}
	one.Delta = deltaOf(m["delta"])
	if text := one.Delta.Content.text; text == "{}" || text == "false" || text == "[]" {
		if content := membersOf(m["delta"])["content"]; strictjson.KindOf(content) != "a string" { // an empty piece
			one.Delta.Content = textPiece{}
		}
	}
	if one.FinishReason == "" {
		one.FinishReason = membersOf(m["delta"]).finish()
	}
	if !one.Delta.hasContent() && present(m["message"]) {
		thought := one.Delta.Thought
		one.Delta, one.Whole = deltaOf(m["message"]), true
		one.Delta.Thought += thought
	}
	if !one.Delta.hasContent() && present(m["text"]) {
		one.Delta.Content = pieceOf(m["text"])
	}
	return one
}

// deltaOf reads a delta or a message: an object, or its text alone.
func deltaOf(raw json.RawMessage) delta {
	m := membersOf(raw)
	if m == nil {
		if strictjson.KindOf(raw) == "a string" {
			return delta{Content: pieceOf(raw)}
		}
		return delta{}
	}
	d := contentOf(m["content"])
	if !present(m["content"]) && present(m["parsed"]) { // by the server, which leaves out the text
		d = delta{Content: textPiece{text: string(m["parsed"])}}
	}
	if present(m["refusal"]) {
		d.Refusal += m.text("refusal")
	}
	for _, name := range []string{"reasoning_content", "reasoning", "thinking"} {
		if d.Thought == "" {
			d.Thought = m.text(name)
		}
	}
	if d.Thought == "" {
		d.Thought = detailsText(m["reasoning_details"])
	}
	for i, t := range objects(m["tool_calls"]) {
		if len(t) > 0 {
			d.ToolCalls = append(d.ToolCalls, t.call(int64(i)))
		}
	}
	if f := membersOf(m["function_call"]); len(f) > 0 && len(d.ToolCalls) == 0 { // the older form of the only call
		d.ToolCalls = append(d.ToolCalls, toolPiece{Name: f.text("name"), Arguments: pieceOf(f["arguments"])})
	}
	d.Role, _ = strictjson.String(m["role"])
	audio := membersOf(m["audio"])
	d.Audio = audioPiece{Data: audio.text("data"), Transcript: audio.text("transcript")}
	return d
}

// call reads a piece of a tool call. Some servers leave out the object around name and arguments.
func (m members) call(at int64) toolPiece {
	f, arguments := membersOf(m["function"]), "arguments"
	if custom := membersOf(m["custom"]); f == nil && custom != nil {
		f, arguments = custom, "input"
	}
	if f == nil {
		f = m
	}
	return toolPiece{Index: number(m["index"], at), ID: m.text("id"), Name: f.text("name"), Arguments: pieceOf(f[arguments])}
}

// detailsText joins the texts of a list of reasoning.
func detailsText(raw json.RawMessage) (text string) {
	for _, d := range objects(raw) {
		text += d.text("text") + d.text("summary")
	}
	return text
}

// part is a part of content.
type part struct {
	members

	kind string
	// loose is a string in the place of a part.
	loose json.RawMessage
}

// Types of parts. Those without text, such as references to sources, are passed over.
var (
	textParts    = []string{"text", "output_text", "input_text"}                       //nolint:gochecknoglobals // a constant
	thoughtParts = []string{"thinking", "reasoning", "reasoning_text", "summary_text"} //nolint:gochecknoglobals // a constant
	silentParts  = []string{                                                           //nolint:gochecknoglobals // a constant
		"reference", "citation", "image_url", "image", "redacted_thinking", "tool_result", "tool_use", "search_result", "file",
	}
)

const refusalPart = "refusal"

// isPart reports whether an object is a part of content, and not an answer that the server parsed.
func (p part) isPart() bool {
	switch {
	case p.kind == refusalPart, slices.Contains(thoughtParts, p.kind), slices.Contains(silentParts, p.kind):
		return true
	case slices.Contains(textParts, p.kind):
		return len(p.members["text"])+len(p.members["content"]) > 0
	default:
		return p.kind == "" && len(p.members["text"]) > 0
	}
}

// words returns the text of a part, as it is written.
func (p part) words() json.RawMessage {
	raw := p.members["text"]
	if len(raw) == 0 {
		raw = p.members["content"]
	}
	if inner := membersOf(raw)["value"]; len(inner) > 0 {
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
	case len(parts) == 1 && (parts[0].kind == "" || slices.Contains(textParts, parts[0].kind)):
		return delta{Content: pieceOf(parts[0].words())}
	}
	for _, p := range parts {
		switch {
		case p.loose != nil:
			d.Content.text += outbound.PlainText(p.loose)
		case slices.Contains(thoughtParts, p.kind):
			d.Thought += contentOf(p.members["thinking"]).Content.text + outbound.PlainText(p.words())
			for _, s := range objects(p.members["summary"]) {
				d.Thought += s.text("text")
			}
		case slices.Contains(silentParts, p.kind):
		case p.kind == refusalPart:
			d.Refusal += p.text("refusal")
		default:
			d.Content.text += outbound.PlainText(p.words())
		}
	}
	return d
}

// partsOf reads parts; ok is false if the value is something else. A list of strings alone is not a list
// of parts.
func partsOf(raw json.RawMessage) (parts []part, ok bool) {
	switch strictjson.KindOf(raw) {
	case "an object":
		one := newPart(raw)
		return []part{one}, one.kind != "" && one.isPart()
	case "an array":
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return nil, false
		}
		typed := len(items) == 0
		for _, item := range items {
			p := newPart(item)
			switch {
			case string(item) == "null":
				continue
			case strictjson.KindOf(item) == "a string":
				p.loose = item
			case p.isPart():
				typed = true
			case !typed || p.kind == "": // an unknown part after a known one is passed over
				return nil, false
			}
			parts = append(parts, p)
		}
		return parts, typed
	default:
		return nil, false
	}
}

func newPart(raw json.RawMessage) part {
	m := membersOf(raw)
	kind, _ := strictjson.String(m["type"])
	return part{members: m, kind: kind}
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
