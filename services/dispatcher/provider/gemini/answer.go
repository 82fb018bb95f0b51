package gemini

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"google.golang.org/genai"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/markup"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// answer assembles an answer from the stream's responses.
type answer struct {
	collector  *provider.Collector
	exchange   *exchange
	tool       string // the forced function, whose arguments are the answer; empty for none
	thoughts   bool
	thought    bool              // a thought came, requested or not
	extraBytes int               // bytes not passed to the collector
	prose      provider.HeldText // text outside the forced call
	schema     json.RawMessage   // of the forced function
	called     bool              // the tool was called
	answered   bool              // the tool was called with arguments
	written    bool              // the text has a call of the tool
	calls      []provider.ToolCall
	served     int // calls whose results the server sent itself
	media      media
	ending     ending
	any        bool // a candidate or a block was received
}

// ending is the known end of the answer.
type ending struct {
	finish  genai.FinishReason
	blocked genai.BlockedReason
	message string // reason of the block
	ratings []*genai.SafetyRating
}

func newAnswer(req provider.Request, x *exchange, emit func(provider.Delta) error) *answer {
	a := &answer{collector: provider.NewCollector(req.Model, emit), exchange: x, thoughts: req.Thoughts}
	if isTool(req) {
		a.tool, a.schema = toolName(req), req.Schema
	}
	return a
}

// addResponse adds a response. An error ends the call.
func (a *answer) addResponse(r *genai.GenerateContentResponse) error {
	a.collector.AnsweredBy(r.ModelVersion)
	if f := r.PromptFeedback; f != nil && f.BlockReason != "" {
		a.any = true
		a.ending.blocked, a.ending.message = f.BlockReason, f.BlockReasonMessage
	}
	for _, c := range r.Candidates {
		if c == nil || c.Index != 0 { // only one candidate was requested
			continue
		}
		if err := a.addCandidate(c); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) addCandidate(c *genai.Candidate) error {
	a.any = true
	if c.FinishReason != "" && (a.ending.finish == "" || c.FinishReason != genai.FinishReasonUnspecified) {
		a.ending.finish = c.FinishReason
	}
	if len(c.SafetyRatings) > 0 {
		a.ending.ratings = c.SafetyRatings
	}
	if c.Content == nil {
		return nil
	}
	if outbound.IsForeignRole(c.Content.Role) { // a function's result, or an echo
		a.served = len(a.calls)
		return nil
	}
	for _, p := range c.Content.Parts {
		if p == nil {
			continue
		}
		if err := a.addPart(p); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) addPart(p *genai.Part) error {
	switch {
	case p.FunctionCall != nil:
		return a.addFunctionCall(p.FunctionCall)
	case p.Thought: // images in thoughts are not part of the answer
		a.thought = true
		if !a.thoughts || p.Text == "" {
			return nil
		}
		return a.emit(provider.Delta{Thought: p.Text})
	case p.InlineData != nil && len(p.InlineData.Data) > 0:
		a.media.add(p.InlineData)
		return a.addExtra(base64.StdEncoding.EncodedLen(len(p.InlineData.Data)))
	case p.Text == "": // the last part often has only a signature
		return nil
	case a.tool != "":
		if err := a.prose.Add(p.Text); err != nil {
			return err
		}
		return a.checkSize()
	default:
		return a.emit(provider.Delta{Text: p.Text})
	}
}

// addFunctionCall adds a function call, which arrives complete. Arguments of the forced function
// are the answer's text. Repeated calls add further lines.
func (a *answer) addFunctionCall(f *genai.FunctionCall) error {
	arguments := a.exchange.argumentsOf(f)
	if a.tool == "" || f.Name != "" && !markup.IsCallOf(f.Name, a.tool) {
		if arguments == "" {
			arguments = "{}"
		}
		a.calls = append(a.calls, provider.ToolCall{ID: f.ID, Name: f.Name, Arguments: arguments})
		return a.addExtra(len(f.ID) + len(f.Name) + len(arguments))
	}
	a.called = true
	if arguments == "" {
		return nil
	}
	if a.answered {
		arguments = "\n" + arguments
	}
	a.answered = true
	return a.emit(provider.Delta{Text: arguments})
}

// emit passes a piece on if the size limit allows it.
func (a *answer) emit(d provider.Delta) error {
	if err := a.collector.CheckSize(a.extraBytes + len(d.Text) + len(d.Thought)); err != nil {
		return err
	}
	return a.collector.Add(d)
}

// addExtra counts bytes that are not text and checks their limit.
func (a *answer) addExtra(n int) error {
	a.extraBytes += n
	return a.checkSize()
}

func (a *answer) checkSize() error { return a.collector.CheckSize(a.extraBytes + a.prose.Size()) }

// finish completes the answer.
func (a *answer) finish() (provider.Result, error) {
	if a.ending.finish == "" && a.ending.blocked == "" {
		return provider.Result{}, outbound.NewTransportError(nil) // the stream ended without a finish reason
	}
	if err := outbound.BrokenOff(string(a.ending.finish)); err != nil && a.ending.blocked == "" {
		return provider.Result{}, err
	}
	if err := a.flushHeld(); err != nil {
		return provider.Result{}, err
	}
	r := a.result()
	waits := len(a.calls) > a.served || outbound.IsUnfinishedTurn(outbound.Word(string(a.ending.finish)))
	r.Interim = waits && !a.answered && !a.written
	reason := provider.FinishReason(r.Stop)
	if len(a.calls) > 0 && r.Stop == provider.StopUnknown {
		reason = "tool_calls"
	}
	return a.collector.Finish(r, reason)
}

// flushHeld emits the parts held until the end.
func (a *answer) flushHeld() error {
	if a.tool != "" && !a.answered {
		if err := a.addHeldAnswer(); err != nil {
			return err
		}
	}
	if len(a.calls) == 0 {
		return nil
	}
	return a.collector.Add(provider.Delta{ToolCalls: a.calls})
}

// addHeldAnswer emits the answer of a forced function without arguments: the text, or an empty object if the
// function was called.
func (a *answer) addHeldAnswer() error {
	said, whole := a.prose.Text(), stopOf(a.ending.finish) != provider.StopTruncated
	a.prose = provider.HeldText{} // the collector counts it from now on
	if arguments, ok := markup.Arguments(said, a.tool, a.schema); ok && whole {
		said, a.written = arguments, true
	}
	if a.called && whole {
		said = markup.OrEmptyCall(said)
	}
	if said == "" {
		return nil
	}
	return a.emit(provider.Delta{Text: said})
}

// result returns the answer without the collector's parts. A blocked prompt has no finish reason of
// its own.
func (a *answer) result() provider.Result {
	e := a.ending
	r := provider.Result{Thought: a.thought, RawStop: string(e.finish), Stop: stopOf(e.finish), Usage: usageOf(a.exchange.counts), Media: a.media.list}
	unspecified := strings.HasSuffix(string(e.blocked), "UNSPECIFIED")
	switch {
	case e.blocked != "" && (!unspecified || e.finish == ""): // a prompt that was answered was not blocked
		r.Stop, r.RawStop, r.SafetyCategory, r.RefusalText = provider.StopRefused, string(e.blocked), string(e.blocked), e.message
	case r.Stop == provider.StopRefused:
		r.SafetyCategory = categoryOf(e.finish, e.ratings)
	case r.Stop == provider.StopClean && len(a.calls) > 0: // calls of tools that were not offered
		r.Stop = provider.StopUnknown
	}
	return r
}
