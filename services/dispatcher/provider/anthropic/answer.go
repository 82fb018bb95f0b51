package anthropic

import (
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/markup"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// answer assembles an answer from the stream's events. Gateways leave out events that say nothing of the
// answer, or repeat them: starts, and ends of blocks. An answer whose end is missing, or whose blocks
// are interleaved, is refused.
type answer struct {
	collector *provider.Collector
	viaTool   bool // the forced tool's input is the text
	thoughts  bool
	thought   bool // a thought came, requested or not

	// ended is set by the stop reason, which other servers leave out, stopped by the last event, and
	// pieced by the first block.
	started, ended, stopped, pieced bool
	block                           *block // the open block

	called     bool // the forced tool was called
	written    bool // the text has a call of the forced tool
	answered   bool // the forced tool was called with input
	calls      []provider.ToolCall
	prose      provider.HeldText // text outside the forced tool call
	tool       string            // the forced tool
	schema     json.RawMessage   // of the tool
	extraBytes int               // bytes of calls

	stop    string
	details anthropic.RefusalStopDetails
	usage   provider.Usage
}

func newAnswer(req provider.Request, emit func(provider.Delta) error) *answer {
	return &answer{
		collector: provider.NewCollector(req.Model, emit),
		viaTool:   viaTool(req),
		tool:      schemaName(req),
		schema:    req.Schema,
		thoughts:  req.Thoughts,
	}
}

// addEvent adds an event. An error ends the call. Unknown event types are skipped, as the vendor
// requires.
func (a *answer) addEvent(e anthropic.MessageStreamEventUnion) error {
	switch e.Type {
	case "message": // the whole, from a server that does not stream
		return a.addMessage(e.RawJSON())
	case "message_start":
		if a.pieced {
			return newOrderError()
		}
		a.started = true
		a.collector.AnsweredBy(e.Message.Model)
		a.startUsage(e.Message)
	case "content_block_start":
		return a.startBlock(e)
	case "content_block_delta":
		if a.block == nil {
			if err := a.startImplied(e); err != nil {
				return err
			}
		}
		if e.Index != a.block.index {
			return newOrderError()
		}
		return a.addDelta(e.Delta)
	case "content_block_stop":
		if a.block == nil || e.Index != a.block.index { // of a block that has ended
			return nil
		}
		return a.endBlock()
	case "message_delta":
		if err := a.endBlock(); err != nil {
			return err
		}
		a.ended = a.ended || !outbound.IsNoReason(outbound.Word(string(e.Delta.StopReason)))
		a.setStop(e)
	case "message_stop":
		if err := a.endBlock(); err != nil {
			return err
		}
		if !a.started && !a.pieced {
			return newOrderError()
		}
		a.stopped = true
		a.platformUsage(e.RawJSON())
	}
	return nil
}

func newOrderError() *provider.Error {
	return &provider.Error{
		Code:    provider.CodeUnavailable,
		Message: "the model's server sent the parts of its answer out of any order",
	}
}

// setStop records the stop reason and the usage.
func (a *answer) setStop(e anthropic.MessageStreamEventUnion) {
	if !outbound.IsNoReason(outbound.Word(string(e.Delta.StopReason))) {
		a.stop, a.details = string(e.Delta.StopReason), e.Delta.StopDetails
	}
	a.endUsage(e.Usage)
}

// finish completes the answer.
func (a *answer) finish() (provider.Result, error) {
	if !a.stopped && a.stop == "" { // some servers leave out the last event
		return provider.Result{}, outbound.NewTransportError(nil) // the stream ended before the answer did
	}
	if err := outbound.BrokenOff(a.stop); err != nil {
		return provider.Result{}, err
	}
	if err := a.addHeldAnswer(); err != nil {
		return provider.Result{}, err
	}
	if len(a.calls) > 0 {
		if err := a.collector.Add(provider.Delta{ToolCalls: a.calls}); err != nil {
			return provider.Result{}, err
		}
	}
	r := provider.Result{Thought: a.thought, RawStop: a.stop, Stop: a.stopClass(), Usage: a.usage}
	r.Interim = (len(a.calls) > 0 || outbound.IsUnfinishedTurn(outbound.Word(a.stop))) && !a.answered && !a.written
	if r.RawStop == "" {
		r.RawStop = "message_stop" // the event that ended an answer without a reason
	}
	if r.Stop == provider.StopRefused {
		r.RefusalText, r.SafetyCategory = a.details.Explanation, string(a.details.Category)
	}
	return a.collector.Finish(r, a.finishReason(r.Stop))
}

// addHeldAnswer emits the answer of a forced tool that has no input: the text, or an empty object if the tool
// was called.
func (a *answer) addHeldAnswer() error {
	if !a.viaTool || a.answered {
		return nil
	}
	text, whole := a.prose.Text(), a.stopClass() != provider.StopTruncated
	if arguments, ok := markup.Arguments(text, a.tool, a.schema); ok && whole {
		text, a.written = arguments, true
	}
	if a.called && whole {
		text = markup.OrEmptyCall(text)
	}
	if text == "" {
		return nil
	}
	return a.collector.Add(provider.Delta{Text: text})
}

// finishBlocked completes an answer stopped by a filter outside the model.
func (a *answer) finishBlocked() (provider.Result, error) {
	a.stop, a.stopped = contentFilter, true
	a.details = anthropic.RefusalStopDetails{Category: contentFilter}
	return a.finish()
}

// contentFilter is the stop reason of a filter that the vendor reports as an error.
const contentFilter = "content_filter"

// stopClass classifies the vendor's stop reason (OpenWOP envelope contract §14.1). A full context
// window truncates an answer like an exhausted budget. Gateways pass on the words of other vendors.
func (a *answer) stopClass() provider.StopClass {
	word := outbound.Word(a.stop)
	switch {
	case word == "stopsequence":
		return provider.StopSequence
	case outbound.IsComplete(word):
		return provider.StopClean
	case outbound.IsTruncated(word):
		return provider.StopTruncated
	case outbound.IsFilter(word):
		return provider.StopRefused
	case a.isToolUse():
		if a.called && len(a.calls) == 0 {
			return provider.StopClean // the forced call is the answer
		}
		return provider.StopUnknown // no other tool was offered
	default: // includes pause_turn, which is not requested
		return provider.StopUnknown
	}
}

// isToolUse reports whether the answer ended with a call of a tool.
func (a *answer) isToolUse() bool {
	switch outbound.Word(a.stop) {
	case "tooluse", "toolcalls", "toolcall", "functioncall":
		return true
	}
	return false
}

func (a *answer) finishReason(stop provider.StopClass) string {
	if stop == provider.StopUnknown && a.isToolUse() {
		return "tool_calls"
	}
	return provider.FinishReason(stop)
}
