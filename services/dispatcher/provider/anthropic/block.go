package anthropic

import (
	"github.com/anthropics/anthropic-sdk-go"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// blockKind is what becomes of a content block.
type blockKind int

const (
	blockOther  blockKind = iota // skipped, as are kinds that are not known
	blockText                    // the answer's text
	blockAnswer                  // the forced tool's input, which is the answer's text
	blockCall                    // a call of any other tool
)

// block is a content block that is arriving.
type block struct {
	index int64
	kind  blockKind
	// input is a tool's whole input, where it came with the block's start.
	input string
	any   bool // a piece of the input has come
}

// maxToolCalls bounds how many calls an answer may hold.
const maxToolCalls = 128

// open begins a block. The vendor numbers them from 0 and has one open at a time.
func (a *answer) open(e anthropic.MessageStreamEventUnion) error {
	if !a.started || a.block != nil || a.stop != "" || e.Index != a.blocks {
		return disordered()
	}
	a.blocks++
	a.block = &block{index: e.Index}
	switch b := e.ContentBlock; b.Type {
	case "text":
		a.block.kind = blockText
		return a.text(b.Text)
	case "thinking":
		return a.thought(b.Thinking)
	case "tool_use":
		a.block.input = wholeInput(b.JSON.Input.Raw())
		if a.viaTool && !a.answered {
			a.answered, a.block.kind = true, blockAnswer
			a.aside -= a.prose.Len() // it is not the answer after all
			a.prose.Reset()
			return nil
		}
		if len(a.calls) == maxToolCalls {
			return disordered()
		}
		a.block.kind = blockCall
		a.calls = append(a.calls, provider.ToolCall{ID: b.ID, Name: b.Name})
		return a.fits(len(b.ID) + len(b.Name))
	}
	return nil
}

// wholeInput is an input that its block's start holds already; {} is the vendor's
// way to say that it will come in pieces, or that the tool has none.
func wholeInput(raw string) string {
	if raw == "" || raw == "null" {
		return "{}"
	}
	return raw
}

func (a *answer) delta(d anthropic.MessageStreamEventUnionDelta) error {
	switch d.Type {
	case "text_delta":
		switch a.block.kind {
		case blockText:
			return a.text(d.Text)
		case blockOther:
			return nil
		default:
			return disordered()
		}
	case "thinking_delta":
		return a.thought(d.Thinking)
	case "input_json_delta":
		return a.input(d.PartialJSON)
	default: // signatures, citations, and what is not known yet
		return nil
	}
}

// text is a piece of the answer, or of what is said beside the forced tool.
func (a *answer) text(s string) error {
	switch {
	case s == "", a.answered:
		return nil
	case a.viaTool:
		a.prose.WriteString(s)
		return a.fits(len(s))
	default:
		return a.collector.Add(provider.Delta{Text: s})
	}
}

func (a *answer) thought(s string) error {
	if s == "" || !a.thoughts {
		return nil
	}
	return a.collector.Add(provider.Delta{Thought: s})
}

// input is a piece of a tool's input.
func (a *answer) input(s string) error {
	if s == "" {
		return nil
	}
	a.block.any = true
	switch a.block.kind {
	case blockAnswer:
		return a.collector.Add(provider.Delta{Text: s})
	case blockCall:
		a.calls[len(a.calls)-1].Arguments += s
		return a.fits(len(s))
	default: // of a tool the vendor runs itself
		return nil
	}
}

// shut ends the open block.
func (a *answer) shut() error {
	b := a.block
	if (b.kind == blockAnswer || b.kind == blockCall) && !b.any {
		if err := a.input(b.input); err != nil {
			return err
		}
	}
	a.block = nil
	return nil
}

// fits counts bytes that are not emitted yet and checks that they are not too many.
func (a *answer) fits(n int) error {
	a.aside += n
	return a.collector.Fits(a.aside)
}
