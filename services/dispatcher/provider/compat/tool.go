package compat

import (
	"strings"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// toolCall assembles a tool call.
type toolCall struct{ id, name, arguments strings.Builder }

func (c *toolCall) build() provider.ToolCall {
	return provider.ToolCall{ID: c.id.String(), Name: c.name.String(), Arguments: c.arguments.String()}
}

// maxToolCalls limits the index of a tool call.
const maxToolCalls = 128

// addToolCall adds a fragment of a tool call. Id and name are in the first fragment.
func (a *answer) addToolCall(t toolPiece) error {
	if t.Index < 0 || t.Index >= maxToolCalls {
		return &provider.Error{
			Code:    provider.CodeUnavailable,
			Message: "the model's server sent a tool call out of any order",
		}
	}
	for len(a.calls) <= int(t.Index) {
		a.calls = append(a.calls, &toolCall{})
	}
	call := a.calls[t.Index]
	call.id.WriteString(t.ID)
	call.name.WriteString(t.Function.Name)
	n := len(t.ID) + len(t.Function.Name)
	if a.tool == "" || t.Index != 0 {
		call.arguments.WriteString(t.Function.Arguments)
		return a.addExtra(n + len(t.Function.Arguments))
	}
	if err := a.addExtra(n); err != nil || t.Function.Arguments == "" {
		return err
	}
	return a.collector.Add(provider.Delta{Text: t.Function.Arguments})
}

// flushHeld emits the held parts: the requested tool calls, and the text of a model that did not
// call its forced tool.
func (a *answer) flushHeld() error {
	open := a.calls
	switch {
	case a.tool != "" && len(open) > 0:
		open = open[1:] // the first call's arguments are the text
	case a.proseText.Len() > 0:
		if err := a.collector.Add(provider.Delta{Text: a.proseText.String()}); err != nil {
			return err
		}
	}
	if len(open) == 0 {
		return nil
	}
	calls := make([]provider.ToolCall, len(open))
	for i, c := range open {
		calls[i] = c.build()
	}
	return a.collector.Add(provider.Delta{ToolCalls: calls})
}

// stopClass returns how the answer ended. It is unknown if other tools than the forced one were
// called.
func (a *answer) stopClass() provider.StopClass {
	forced := a.tool != "" && len(a.calls) == 1 && a.calls[0].name.String() == a.tool
	stop := stopOf(a.finishReason, forced)
	if stop == provider.StopClean && a.tool != "" && len(a.calls) > 0 && !forced {
		return provider.StopUnknown
	}
	return stop
}
