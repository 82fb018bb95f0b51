package compat

import (
	"encoding/json"
	"strings"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// answer assembles an answer from chunks.
type answer struct {
	collector *provider.Collector
	thoughts  bool
	thought   bool // a thought came, requested or not
	// tool is the forced tool; empty for none. The arguments of its first call that has any are the text.
	tool string
	// chosen is the index of the only choice, once known: servers number it as they like.
	chosen *int64
	joiner joiner
	// answering is the call of the forced tool whose arguments are the text; nil for none.
	answering *toolCall
	// called means that the text is the input of a call, also of one in the text.
	called bool
	// prose is text outside the forced tool call, schema that of the tool.
	prose        provider.HeldText
	schema       json.RawMessage
	refusal      strings.Builder
	calls        []*toolCall
	sound        sound
	extraBytes   int // bytes other than text and thoughts
	finishReason string
	usage        usage
	// ended is set once the server said that the answer is complete, pieced once a piece of it came, and
	// early once a piece came after a finish reason, which then does not say that the answer is complete.
	ended, pieced, early bool
	// foreign means that the current message is not the model's.
	foreign bool
	// served counts the calls whose results the server sent itself.
	served int
}

func newAnswer(req provider.Request, emit func(provider.Delta) error) *answer {
	a := &answer{collector: provider.NewCollector(req.Model, emit), thoughts: req.Thoughts}
	if len(req.Schema) > 0 && req.Via == provider.ViaTool {
		a.tool, a.schema = schemaName(req), req.Schema
	}
	return a
}

// addChunk adds a chunk. An error ends the call.
func (a *answer) addChunk(c chunk) error {
	a.collector.AnsweredBy(c.Model)
	if c.Usage != nil {
		a.usage.update(*c.Usage)
	}
	a.end(c.FinishReason)
	for _, choice := range c.Choices {
		if a.chosen == nil && choice.says() {
			a.chosen = &choice.Index
		}
		if a.chosen == nil || choice.Index != *a.chosen { // only one choice was requested
			continue
		}
		if role := choice.Delta.Role; role != "" {
			a.foreign = outbound.IsForeignRole(role)
		}
		if a.foreign {
			a.served = len(a.calls)
			a.end(choice.FinishReason)
			continue
		}
		if choice.Whole && a.pieced { // some servers repeat the answer at its end
			a.end(choice.FinishReason)
			a.addWhole(choice)
			continue
		}
		a.early = a.early || a.finishReason != "" && choice.Delta.hasContent()
		a.end(choice.FinishReason)
		a.pieced = a.pieced || !choice.Whole && choice.Delta.hasContent()
		if err := a.addDelta(choice.Delta); err != nil {
			return err
		}
	}
	return nil
}

// addWhole keeps a text that the server sent after its pieces, which counts if it differs from them.
func (a *answer) addWhole(c choice) {
	whole := c.Delta.Content.alone()
	switch {
	case whole == "":
	case a.tool == "":
		a.collector.Correct(whole, c.Final)
	default:
		a.prose.Correct(whole, c.Final)
	}
}

// end keeps the reason why the answer ended.
func (a *answer) end(reason string) {
	if !outbound.IsNoReason(outbound.Word(reason)) {
		a.finishReason = reason
	}
}

// isOver reports whether the end of the answer is known, so that what follows does not matter.
func (a *answer) isOver() bool { return a.finishReason != "" && !a.early }

// says reports whether a choice has more than a role.
func (c choice) says() bool {
	return c.Delta.hasContent() || c.Delta.Thought != "" || c.FinishReason != ""
}

// hasContent reports whether a piece has a part of the answer.
func (d delta) hasContent() bool {
	return d.Content.text != "" || d.Content.raw != nil || d.Refusal != "" || len(d.ToolCalls) > 0 || d.Audio != (audioPiece{})
}

func (a *answer) addDelta(d delta) error {
	if err := a.addThought(d); err != nil {
		return err
	}
	if d.Refusal != "" {
		a.refusal.WriteString(d.Refusal)
		if err := a.addExtra(len(d.Refusal)); err != nil {
			return err
		}
	}
	for _, t := range d.ToolCalls {
		if err := a.addToolCall(t); err != nil {
			return err
		}
	}
	if err := a.addAudio(d.Audio); err != nil {
		return err
	}
	return a.addText(a.joiner.add(d.Content))
}

// addThought passes thinking on. Compatible servers send it; OpenAI does not.
func (a *answer) addThought(d delta) error {
	a.thought = a.thought || d.Thought != ""
	if !a.thoughts || d.Thought == "" {
		return nil
	}
	return a.collector.Add(provider.Delta{Thought: d.Thought})
}

// addText adds text. With a forced tool it is kept until the end: if the tool was called, it is not
// part of the answer.
func (a *answer) addText(text string) error {
	switch {
	case text == "": // the first chunk has only the role
		return nil
	case a.tool != "":
		if err := a.prose.Add(text); err != nil {
			return err
		}
		return a.checkSize()
	default:
		return a.collector.Add(provider.Delta{Text: text})
	}
}

// addExtra counts bytes that are not text and checks their limit.
func (a *answer) addExtra(n int) error {
	a.extraBytes += n
	return a.checkSize()
}

func (a *answer) checkSize() error { return a.collector.CheckSize(a.extraBytes + a.prose.Size()) }

// hasContent reports whether the server sent any part of an answer.
func (a *answer) hasContent() bool {
	return a.collector.Size() > 0 || a.prose.Text() != "" || a.refusal.Len() > 0 || len(a.calls) > 0 || len(a.sound) > 0
}

// finish completes the answer.
func (a *answer) finish() (provider.Result, error) {
	if a.finishReason == "" && (!a.ended || !a.hasContent()) {
		return provider.Result{}, outbound.NewTransportError(nil)
	}
	if err := outbound.BrokenOff(a.finishReason); err != nil {
		return provider.Result{}, err
	}
	if err := a.addText(a.joiner.flush()); err != nil {
		return provider.Result{}, err
	}
	r := provider.Result{
		Thought:     a.thought,
		RawStop:     a.finishReason,
		Stop:        a.stopClass(),
		RefusalText: a.refusal.String(),
		Media:       a.sound.media(),
		Usage:       usageOf(a.usage),
	}
	if r.RefusalText != "" { // the finish reason is "stop" in this case
		r.Stop = provider.StopRefused
	}
	if blocked(a.finishReason) {
		r.SafetyCategory = a.finishReason
	}
	if err := a.flushHeld(r.Stop); err != nil {
		return provider.Result{}, err
	}
	r.Interim = a.isInterim()
	return a.collector.Finish(r, reasonOf(a.finishReason, r.Stop))
}
