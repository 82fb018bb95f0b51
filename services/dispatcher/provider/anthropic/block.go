package anthropic

import (
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/markup"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// blockKind is how a content block is used.
type blockKind int

const (
	blockOther  blockKind = iota // skipped, like unknown types
	blockText                    // the answer's text
	blockAnswer                  // the forced tool's input, which is the answer's text
	blockCall                    // a call of any other tool
)

// block is the content block that is being received.
type block struct {
	index int64
	kind  blockKind
	// input is a tool's whole input, if the block's start contains it.
	input string
	any   bool // part of the input was received
}

// maxToolCalls limits the calls of an answer.
const maxToolCalls = 128

// startBlock starts a block, and ends the one before it. The vendor has one open at a time. Its numbers may
// have gaps: gateways leave out blocks, such as thoughts.
func (a *answer) startBlock(e anthropic.MessageStreamEventUnion) error {
	if a.ended || a.block != nil && a.block.index == e.Index {
		return newOrderError()
	}
	if err := a.endBlock(); err != nil {
		return err
	}
	a.pieced = true
	a.block = &block{index: e.Index}
	switch b := e.ContentBlock; b.Type {
	case "text":
		a.block.kind = blockText
		return a.addText(b.Text)
	case "thinking":
		return a.addThought(b.Thinking)
	case "tool_use":
		a.block.input = wholeInput(b.JSON.Input.Raw())
		if a.viaTool && !a.answered && (b.Name == "" || markup.IsCallOf(b.Name, a.tool)) {
			a.called, a.block.kind = true, blockAnswer
			return nil
		}
		if len(a.calls) == maxToolCalls {
			return newOrderError()
		}
		a.block.kind = blockCall
		a.calls = append(a.calls, provider.ToolCall{ID: b.ID, Name: b.Name})
		return a.addExtra(len(b.ID) + len(b.Name))
	}
	return nil
}

// startImplied starts the block of a delta whose start is missing. The start of a tool's call has its name,
// and cannot be missing unless the tool is the forced one.
func (a *answer) startImplied(e anthropic.MessageStreamEventUnion) error {
	start := anthropic.MessageStreamEventUnion{Index: e.Index}
	switch e.Delta.Type {
	case "text_delta":
		start.ContentBlock.Type = "text"
	case "thinking_delta", "signature_delta":
		start.ContentBlock.Type = "thinking"
	case "input_json_delta":
		if !a.viaTool || a.answered {
			return newOrderError()
		}
		start.ContentBlock.Type = "tool_use"
	}
	return a.startBlock(start)
}

// wholeInput returns the input in a block's start; empty for {}, which means that it follows in pieces, or that
// there is none.
func wholeInput(raw string) string {
	if raw == "null" || strictjson.KindOf(json.RawMessage(raw)) == "an object" && len(strictjson.Object(json.RawMessage(raw))) == 0 {
		return ""
	}
	return outbound.AsSent(raw)
}

func (a *answer) addDelta(d anthropic.MessageStreamEventUnionDelta) error {
	switch d.Type {
	case "text_delta":
		switch a.block.kind {
		case blockText:
			return a.addText(d.Text)
		case blockOther:
			return nil
		default:
			return newOrderError()
		}
	case "thinking_delta":
		return a.addThought(d.Thinking)
	case "input_json_delta":
		return a.addInput(d.PartialJSON)
	default: // signatures, citations, and what is not known yet
		return nil
	}
}

// addText adds a piece of the answer, or of text outside the forced tool call.
func (a *answer) addText(s string) error {
	switch {
	case s == "":
		return nil
	case a.viaTool:
		if err := a.prose.Add(s); err != nil {
			return err
		}
		return a.checkSize()
	default:
		return a.collector.Add(provider.Delta{Text: s})
	}
}

func (a *answer) addThought(s string) error {
	a.thought = a.thought || s != ""
	if s == "" || !a.thoughts {
		return nil
	}
	return a.collector.Add(provider.Delta{Thought: s})
}

// addInput adds a piece of a tool's input.
func (a *answer) addInput(s string) error {
	if s == "" {
		return nil
	}
	a.block.any = true
	switch a.block.kind {
	case blockAnswer:
		a.answered = true
		return a.collector.Add(provider.Delta{Text: s})
	case blockCall:
		a.calls[len(a.calls)-1].Arguments += s
		return a.addExtra(len(s))
	default: // a tool run by the vendor
		return nil
	}
}

// endBlock ends the open block, if there is one.
func (a *answer) endBlock() error {
	b := a.block
	if b == nil {
		return nil
	}
	if (b.kind == blockAnswer || b.kind == blockCall) && !b.any {
		if b.kind == blockCall && b.input == "" {
			b.input = "{}"
		}
		if err := a.addInput(b.input); err != nil {
			return err
		}
	}
	a.block = nil
	return nil
}

// addExtra counts bytes not emitted yet and checks their limit.
func (a *answer) addExtra(n int) error {
	a.extraBytes += n
	return a.checkSize()
}

func (a *answer) checkSize() error { return a.collector.CheckSize(a.extraBytes + a.prose.Size()) }
