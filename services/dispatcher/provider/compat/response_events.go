package compat

import (
	"encoding/json"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// responseEvent holds the members that are read of an event of the Responses API, or of a whole
// response from a server that does not stream. They are raw because servers deviate in their types.
type responseEvent struct {
	Type         json.RawMessage `json:"type"`
	OutputIndex  json.RawMessage `json:"output_index"`
	ContentIndex json.RawMessage `json:"content_index"`
	SummaryIndex json.RawMessage `json:"summary_index"`
	Delta        json.RawMessage `json:"delta"`
	Text         json.RawMessage `json:"text"`
	Refusal      json.RawMessage `json:"refusal"`
	Arguments    json.RawMessage `json:"arguments"`
	Item         json.RawMessage `json:"item"`
	Response     json.RawMessage `json:"response"`
	Sequence     json.RawMessage `json:"sequence_number"`
	Error        json.RawMessage `json:"error"`
	Object       json.RawMessage `json:"object"`
	Status       json.RawMessage `json:"status"`
	Usage        json.RawMessage `json:"usage"`
}

// response holds the members that are read of a response.
type response struct {
	Model      json.RawMessage `json:"model"`
	Status     json.RawMessage `json:"status"`
	Output     json.RawMessage `json:"output"`
	Usage      json.RawMessage `json:"usage"`
	Error      json.RawMessage `json:"error"`
	Incomplete json.RawMessage `json:"incomplete_details"`
	Text       json.RawMessage `json:"output_text"`
}

// outputItem holds the members that are read of a part of the output.
type outputItem struct {
	Type      json.RawMessage `json:"type"`
	Phase     json.RawMessage `json:"phase"`
	Role      json.RawMessage `json:"role"`
	CallID    json.RawMessage `json:"call_id"`
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
}

// Types of output items.
const (
	itemMessage   = "message"
	itemCall      = "function_call"
	itemReasoning = "reasoning"
)

// clientCalls are calls of other tools that the client runs. Those that the server runs are followed by the answer.
//
//nolint:gochecknoglobals // a constant
var clientCalls = []string{
	"custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call", "mcp_approval_request",
}

// isCall reports whether an item waits for the client.
func (i outputItem) isCall() bool {
	kind := outbound.PlainText(i.Type)
	return kind == itemCall || slices.Contains(clientCalls, kind)
}

// commentary is the phase of a message that is not the answer: the model comments on its work.
const commentary = "commentary"

// pieceKind is what a piece of the output is.
type pieceKind int

const (
	pieceText pieceKind = iota
	pieceRefusal
	pieceCall
	pieceThought
)

// place is where a piece belongs.
type place struct {
	kind        pieceKind
	item, index int64
}

// responseReader reads the events of an answer as chunks. The vendor repeats everything: pieces, then
// the whole part, the whole item and the whole response. Some servers leave out the one or the other. A
// whole that differs from its pieces counts. The zero reader is ready.
type responseReader struct {
	// streamed has the places of which pieces came.
	streamed map[place]bool
	comments map[int64]bool // messages that are commentary
	foreign  map[int64]bool // messages that are not the model's
	repeats  repeats
	items    []json.RawMessage
	// parts are the whole texts of which pieces came.
	parts []wholePart
	// text is the place of the last text, and thought that of the last thought.
	text, thought *place
	// any is set once a piece of the answer came.
	any bool
}

// read reads an event; done means that it is the last one. Some servers have its type only as its name.
func (r *responseReader) read(name string, data []byte, into *chunk) (done bool, err error) {
	var e responseEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, err
	}
	if r.repeats.has(number(e.Sequence, -1), data) {
		return false, nil
	}
	kind := outbound.PlainText(e.Type)
	if kind == "" && strings.HasPrefix(name, "response.") && !present(e.Object) {
		kind = name
	}
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		into.Model, _ = strictjson.String(strictjson.Object(e.Response)["model"])
		return false, nil
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		if !present(e.Response) { // some gateways leave out the object around it
			e.Response = data
		}
		return true, r.end(strings.TrimPrefix(kind, "response."), e.Response, e.Usage, into)
	case "response.output_item.added":
		r.startItem(e, into)
		return false, nil
	case "response.output_item.done":
		r.endItem(e, into)
		return false, nil
	case "":
		if object, _ := strictjson.String(e.Object); object == "response" { // some servers leave out the event around it
			if status := outbound.PlainText(e.Status); status != "in_progress" && status != "queued" {
				return true, r.end("", data, nil, into)
			}
			return false, nil
		}
	}
	if kind == "error" || isError(e.Error) {
		return false, &outbound.ServerError{Body: outbound.ParseError(data)}
	}
	if d, ok := r.piece(kind, e); ok {
		into.Choices = []choice{{Delta: d}}
	}
	return false, nil
}

// piece reads an event of a piece, or of a whole part.
func (r *responseReader) piece(kind string, e responseEvent) (d delta, ok bool) {
	at := place{item: number(e.OutputIndex, 0), index: number(e.ContentIndex, 0)}
	whole := false
	text := e.Delta
	switch kind {
	case "response.output_text.delta":
	case "response.output_text.done":
		whole, text = true, e.Text
	case "response.refusal.delta":
		at.kind = pieceRefusal
	case "response.refusal.done":
		at.kind, whole, text = pieceRefusal, true, e.Refusal
	case "response.function_call_arguments.delta":
		at.kind = pieceCall
	case "response.function_call_arguments.done":
		at.kind, whole, text = pieceCall, true, e.Arguments
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		at.kind, at.index = pieceThought, number(e.SummaryIndex, at.index)
	case "response.reasoning_summary_text.done", "response.reasoning_text.done":
		at.kind, at.index, whole, text = pieceThought, number(e.SummaryIndex, at.index), true, e.Text
	default:
		return d, false
	}
	if r.foreign[at.item] {
		return d, false
	}
	if !whole {
		return r.add(at, text), true
	}
	came := r.streamed[at]
	if came && !present(text) { // the server leaves it out
		return d, false
	}
	if at.kind == pieceText && !r.comments[at.item] {
		r.parts = append(r.parts, wholePart{at.item, contentOf(text).Content.alone()})
	}
	switch {
	case !came:
		d = r.add(at, text)
	case at.kind == pieceCall && present(text):
		d.ToolCalls, came = []toolPiece{{Index: at.item, Arguments: pieceOf(text), Whole: true}}, false
	}
	if at.kind != pieceCall { // a call's item follows, and repeats it
		delete(r.streamed, at) // servers may number all parts alike
	}
	return d, !came
}

// add returns a piece of the output.
func (r *responseReader) add(at place, text json.RawMessage) (d delta) {
	if r.streamed == nil {
		r.streamed = map[place]bool{}
	}
	r.streamed[at] = true
	switch {
	case at.kind == pieceCall:
		d.ToolCalls = []toolPiece{{Index: at.item, Arguments: pieceOf(text)}}
	case at.kind == pieceRefusal:
		d.Refusal = outbound.PlainText(text)
	case at.kind == pieceThought || r.comments[at.item]:
		d.Thought = separated(&r.thought, place{item: at.item, index: at.index}) + outbound.PlainText(text)
		return d
	default:
		if inner := membersOf(text); inner["type"] == nil && inner["text"] != nil {
			text = inner["text"]
		}
		d.Content = contentOf(text).Content
		if separated(&r.text, place{item: at.item}) != "" {
			d.Content = d.Content.after(itemBreak)
		}
	}
	r.any = true
	return d
}

// itemBreak separates messages, and parts of thoughts.
const itemBreak = "\n\n"

// separated returns what separates a piece from the last one, which was at another place.
func separated(last **place, at place) string {
	before := *last
	*last = &at
	if before == nil || *before == at {
		return ""
	}
	return itemBreak
}

// startItem reads the name of a call, and whether a message is commentary.
func (r *responseReader) startItem(e responseEvent, into *chunk) {
	var item outputItem
	if strictjson.Read(e.Item, &item) != nil {
		return
	}
	at := number(e.OutputIndex, 0)
	switch {
	case item.isCall():
		into.Choices = []choice{{Delta: delta{ToolCalls: []toolPiece{callPiece(at, item)}}}}
		r.any = true
	case outbound.PlainText(item.Type) == itemMessage:
		if r.comments == nil {
			r.comments, r.foreign = map[int64]bool{}, map[int64]bool{}
		}
		r.comments[at] = outbound.PlainText(item.Phase) == commentary
		r.foreign[at] = outbound.IsForeignRole(outbound.PlainText(item.Role))
	}
}

// callPiece returns a call without its arguments.
func callPiece(at int64, item outputItem) toolPiece {
	name := outbound.PlainText(item.Name)
	if kind := outbound.PlainText(item.Type); name == "" && kind != itemCall {
		name = kind
	}
	return toolPiece{Index: at, ID: outbound.PlainText(item.CallID), Name: name}
}

// endItem keeps a whole item, and reads a call whose arguments did not come in pieces.
func (r *responseReader) endItem(e responseEvent, into *chunk) {
	r.items = append(r.items, e.Item)
	var item outputItem
	if strictjson.Read(e.Item, &item) != nil || !item.isCall() {
		return
	}
	at := place{kind: pieceCall, item: number(e.OutputIndex, 0)}
	call := callPiece(at.item, item)
	call.Arguments = pieceOf(item.Arguments)
	call.Whole = r.streamed[at] && present(item.Arguments)
	delete(r.streamed, at)
	into.Choices, r.any = []choice{{Delta: delta{ToolCalls: []toolPiece{call}}}}, true
}

// end reads a whole response, which is the last event. kind is the event's name for its status.
func (r *responseReader) end(kind string, doc, usage json.RawMessage, into *chunk) error {
	var whole response
	if err := json.Unmarshal(orNull(doc), &whole); err != nil {
		return err
	}
	status := outbound.PlainText(whole.Status)
	if outbound.IsNoReason(outbound.Word(status)) {
		status = kind
	}
	if status == "failed" || status == "cancelled" || isError(whole.Error) {
		return &outbound.ServerError{Body: outbound.ParseError(strictjson.Render(map[string]json.RawMessage{"error": orNull(whole.Error)}))}
	}
	into.Model, _ = strictjson.String(whole.Model)
	into.Usage = usageIn(whole.Usage, usage)
	var items []json.RawMessage
	if json.Unmarshal(whole.Output, &items) != nil && present(whole.Output) {
		items = []json.RawMessage{whole.Output}
	}
	if r.any {
		into.Choices = append(into.Choices, choice{Whole: true, Final: true, Delta: delta{Content: textPiece{text: r.wholeText(items)}}})
	} else {
		if len(items) == 0 {
			items = r.items
		}
		for i, item := range items {
			into.Choices = append(into.Choices, r.wholeItem(int64(i), item)...)
		}
		if text := outbound.PlainText(whole.Text); len(into.Choices) == 0 && text != "" {
			into.Choices = []choice{{Delta: r.add(place{}, whole.Text)}}
		}
	}
	finish := status
	switch status {
	case "", "done":
		finish = completedResponse
	case "incomplete":
		details := whole.Incomplete
		if m := membersOf(details); m != nil {
			details = m["reason"]
		}
		if reason := outbound.PlainText(details); reason != "" {
			finish = reason
		}
	}
	into.Choices = append(into.Choices, choice{FinishReason: finish})
	return nil
}

func orNull(doc json.RawMessage) json.RawMessage {
	if len(doc) == 0 {
		return json.RawMessage("null")
	}
	return doc
}

// wholeItem reads an item of which no piece came.
func (r *responseReader) wholeItem(at int64, doc json.RawMessage) (out []choice) {
	var item outputItem
	if strictjson.Read(doc, &item) != nil {
		return nil
	}
	kind, parts := pieceText, item.Content
	if item.isCall() {
		call := callPiece(at, item)
		call.Arguments = pieceOf(item.Arguments)
		return []choice{{Delta: delta{ToolCalls: []toolPiece{call}}}}
	}
	switch outbound.PlainText(item.Type) {
	case itemReasoning:
		kind = pieceThought
		if list := strictjson.KindOf(item.Summary); list == "an array" && string(item.Summary) != "[]" {
			parts = item.Summary
		}
	case itemMessage, "":
		if outbound.IsForeignRole(outbound.PlainText(item.Role)) {
			return nil
		}
		if outbound.PlainText(item.Phase) == commentary {
			kind = pieceThought
		}
	default:
		return nil
	}
	if kind == pieceThought && r.thought != nil { // it came in pieces
		return nil
	}
	var list []struct {
		Text    json.RawMessage `json:"text"`
		Refusal json.RawMessage `json:"refusal"`
	}
	if json.Unmarshal(parts, &list) != nil { // one text
		return []choice{{Delta: r.add(place{kind: kind, item: at}, parts)}}
	}
	for i, p := range list {
		if refusal := outbound.PlainText(p.Refusal); refusal != "" {
			out = append(out, choice{Delta: r.add(place{kind: pieceRefusal, item: at, index: int64(i)}, p.Refusal)})
			continue
		}
		out = append(out, choice{Delta: r.add(place{kind: kind, item: at, index: int64(i)}, p.Text)})
	}
	return out
}
