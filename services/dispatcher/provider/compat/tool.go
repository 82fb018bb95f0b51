package compat

import (
	"slices"
	"strings"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/markup"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// toolCall assembles a tool call.
type toolCall struct {
	index               int64 // by which the server names it
	id, name, arguments strings.Builder
	joiner              joiner
}

func (c *toolCall) build() provider.ToolCall {
	return provider.ToolCall{ID: c.id.String(), Name: c.name.String(), Arguments: c.arguments.String() + c.joiner.flush()}
}

// isOf reports whether the tool is called. A call without a name is one: no other tool is offered.
func (c *toolCall) isOf(tool string) bool {
	return c.name.Len() == 0 || markup.IsCallOf(c.name.String(), tool)
}

// maxToolCalls limits the tool calls of an answer.
const maxToolCalls = 128

// callOf returns the tool call of a fragment. Id and name are in the first fragment. Another id under
// the same index is another call if it has a name: some servers give all calls the index 0, others
// each fragment an id, or an index, of its own.
func (a *answer) callOf(t toolPiece) (*toolCall, error) {
	for _, c := range slices.Backward(a.calls) {
		if t.ID != "" && t.Name == "" && c.id.String() == t.ID {
			return c, nil
		}
		if c.index == t.Index && (t.ID == "" || t.Name == "" || c.id.Len() == 0 || c.id.String() == t.ID) {
			return c, nil
		}
	}
	if len(a.calls) == maxToolCalls {
		return nil, &provider.Error{
			Code:    provider.CodeUnavailable,
			Message: "the model's server sent more than 128 tool calls",
		}
	}
	c := &toolCall{index: t.Index}
	a.calls = append(a.calls, c)
	return c, nil
}

// addToolCall adds a fragment of a tool call.
func (a *answer) addToolCall(t toolPiece) error {
	call, err := a.callOf(t)
	if err != nil {
		return err
	}
	n := 0
	if call.id.Len() == 0 {
		call.id.WriteString(t.ID)
		n += len(t.ID)
	}
	if call.name.String() != t.Name { // some servers repeat it
		call.name.WriteString(t.Name)
		n += len(t.Name)
	}
	arguments := call.joiner.add(t.Arguments)
	if t.Whole {
		if call == a.answering {
			a.collector.Correct(arguments, true)
			return a.addExtra(n)
		}
		call.arguments.Reset()
	}
	switch {
	case a.answering == nil && a.tool != "" && call.name.Len() > 0 && call.isOf(a.tool) && strings.TrimSpace(arguments) != "":
		a.answering, a.called = call, true
		arguments = call.arguments.String() + arguments // the name came after them
		call.arguments.Reset()
	case a.answering == nil || call != a.answering:
		call.arguments.WriteString(arguments)
		return a.addExtra(n + len(arguments))
	}
	if err := a.addExtra(n); err != nil || arguments == "" {
		return err
	}
	return a.collector.Add(provider.Delta{Text: arguments})
}

// flushHeld emits the held parts: the requested tool calls, and the text of a model that did not
// call its forced tool.
func (a *answer) flushHeld(stop provider.StopClass) error {
	if a.tool != "" && a.answering == nil {
		if err := a.addHeldAnswer(stop); err != nil {
			return err
		}
	}
	var calls []provider.ToolCall
	for _, c := range a.calls {
		if c != a.answering {
			calls = append(calls, c.build())
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return a.collector.Add(provider.Delta{ToolCalls: calls})
}

// addHeldAnswer emits the answer of a forced tool that was not passed on: the arguments of a call without a
// name, the text, or an empty object if the tool was called without arguments.
func (a *answer) addHeldAnswer(stop provider.StopClass) error {
	var empty *toolCall
	for _, c := range a.calls {
		switch {
		case !c.isOf(a.tool):
		case strings.TrimSpace(c.arguments.String()) != "":
			a.answering, a.called = c, true
			return a.collector.Add(provider.Delta{Text: c.build().Arguments})
		case empty == nil:
			empty = c
		}
	}
	text := a.prose.Text()
	if arguments, ok := markup.Arguments(text, a.tool, a.schema); ok && stop != provider.StopTruncated {
		text, a.called = arguments, true
	}
	if empty != nil {
		a.answering = empty
		if stop != provider.StopTruncated {
			text = markup.OrEmptyCall(text)
		}
	}
	if text == "" {
		return nil
	}
	return a.collector.Add(provider.Delta{Text: text})
}

// isInterim reports whether the model called another tool than the forced one, whose result the server did not
// send, instead of answering.
func (a *answer) isInterim() bool {
	if a.called {
		return false
	}
	return outbound.IsUnfinishedTurn(outbound.Word(a.finishReason)) || slices.ContainsFunc(a.calls[a.served:], func(c *toolCall) bool { return a.tool == "" || !c.isOf(a.tool) })
}

// stopClass returns how the answer ended. It is unknown if other tools than the forced one were
// called.
func (a *answer) stopClass() provider.StopClass {
	forced := a.tool != "" && len(a.calls) == 1 && a.calls[0].isOf(a.tool)
	stop := stopOf(a.finishReason, forced)
	offered := a.tool != "" || a.finishReason == completedResponse
	if stop == provider.StopClean && offered && len(a.calls) > 0 && !forced {
		return provider.StopUnknown
	}
	return stop
}
