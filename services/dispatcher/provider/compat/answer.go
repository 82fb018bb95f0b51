package compat

import (
	"cmp"
	"strings"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// answer puts an answer together out of chunks.
type answer struct {
	collector *provider.Collector
	thoughts  bool
	// tool is the one that the model is forced to call, empty for none. The
	// arguments of the first call are the text then.
	tool string
	// beside is what was said without the forced tool.
	beside  strings.Builder
	refusal strings.Builder
	calls   []*toolCall
	sound   sound
	aside   int // bytes of all that is neither text nor thought
	finish  string
	usage   provider.Usage
}

func newAnswer(req provider.Request, emit func(provider.Delta) error) *answer {
	a := &answer{collector: provider.NewCollector(req.Model, emit), thoughts: req.Thoughts}
	if len(req.Schema) > 0 && req.Via == provider.ViaTool {
		a.tool = schemaName(req)
	}
	return a
}

// take adds a chunk. Its error ends the call.
func (a *answer) take(c chunk) error {
	a.collector.AnsweredBy(c.Model)
	if c.Usage != nil {
		a.usage = usageOf(*c.Usage)
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 { // one was asked for
			continue
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		if err := a.piece(choice.Delta); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) piece(d delta) error {
	if err := a.thought(d); err != nil {
		return err
	}
	if d.Refusal != "" {
		a.refusal.WriteString(d.Refusal)
		if err := a.fits(len(d.Refusal)); err != nil {
			return err
		}
	}
	for _, t := range d.ToolCalls {
		if err := a.call(t); err != nil {
			return err
		}
	}
	if err := a.hear(d.Audio); err != nil {
		return err
	}
	return a.say(d.Content)
}

// thought hands thinking on. OpenAI shows none here; compatible servers do.
func (a *answer) thought(d delta) error {
	thought := cmp.Or(d.ReasoningContent, d.Reasoning)
	if !a.thoughts || thought == "" {
		return nil
	}
	return a.collector.Add(provider.Delta{Thought: thought})
}

// say takes text. Beside a forced tool it is kept until it is known whether the
// tool was called: if so, it is no part of the answer.
func (a *answer) say(text string) error {
	switch {
	case text == "": // the first chunk names the role and says nothing
		return nil
	case a.tool != "":
		a.beside.WriteString(text)
		return a.fits(len(text))
	default:
		return a.collector.Add(provider.Delta{Text: text})
	}
}

// fits counts bytes that are not text and checks that they are not too many.
func (a *answer) fits(n int) error {
	a.aside += n
	return a.collector.Fits(a.aside)
}

// end completes the answer.
func (a *answer) end() (provider.Result, error) {
	if a.finish == "" {
		return provider.Result{}, outbound.Broken(nil) // the stream ended and the server did not say why
	}
	r := provider.Result{RawStop: a.finish, Stop: a.stop(), RefusalText: a.refusal.String(), Media: a.sound.media(), Usage: a.usage}
	if r.RefusalText != "" { // the reason is "stop" then
		r.Stop = provider.StopRefused
	}
	if blocked(a.finish) {
		r.SafetyCategory = a.finish
	}
	if err := a.settle(); err != nil {
		return provider.Result{}, err
	}
	return a.collector.Finish(r, reasonOf(a.finish, r.Stop))
}
