// Package ladder renders the model answers of a run as text: the gates of the accept pipeline that
// each passed, and the one that refused it (OpenWOP envelope contract §6).
package ladder

import (
	"fmt"
	"io"
	"strings"

	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/view"
)

// Write draws executions as text.
func Write(w io.Writer, all []*view.Execution, color bool) error {
	d := drawing{w: w, color: color}
	for i, x := range all {
		if i > 0 {
			d.line("")
		}
		d.execution(x)
	}
	return d.err
}

type drawing struct {
	w     io.Writer
	color bool
	err   error
}

func (d *drawing) line(format string, args ...any) {
	if d.err == nil {
		_, d.err = fmt.Fprintln(d.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

func (d *drawing) paint(text, word string) string {
	if d.color {
		return term.Paint(text, word)
	}
	return text
}

func (d *drawing) execution(x *view.Execution) {
	d.line("%s  %s", d.paint(term.Clean(x.NodeID), "bold"), term.Clean(x.TypeID))
	d.line("%s", term.Clean(x.Headline))
	if x.Detail != "" {
		d.line("%s", term.Clean(x.Detail))
	}
	if sub := x.Substitution; sub != nil {
		to := "another model"
		if !sub.Hidden {
			to = named(sub.To)
		}
		d.line("model: %s lacks %s, so %s was called", named(sub.From), term.Clean(strings.Join(sub.Missing, ", ")), to)
	}
	for _, c := range x.Calls {
		d.call(c)
	}
	if x.Code != "" {
		d.code(fault.Code(x.Code))
	}
}

func named(m view.Model) string { return term.Clean(m.Provider + "/" + m.Model) }

// code explains an error code.
func (d *drawing) code(code fault.Code) {
	d.line("")
	d.line("%s", d.paint(term.Clean(string(code)), "failed"))
	if !fault.Known(code) {
		return
	}
	r := fault.Lookup(code)
	d.line("  %s", r.Meaning)
	d.line("  next (%s): %s", r.Owner, r.Next)
}

func (d *drawing) call(c *view.Call) {
	d.line("")
	head := fmt.Sprintf("attempt %d, %s", c.Attempt, term.Clean(c.End))
	if u := c.Usage; u != nil {
		head += "  " + named(view.Model{Provider: u.Provider, Model: u.Model})
	}
	d.line("%s", head)
	if t := c.Truncated; t != nil {
		after := ""
		if t.OutputTokens != nil {
			after = fmt.Sprintf(" after %d tokens", *t.OutputTokens)
		}
		d.line("  truncated%s (%s); the next attempt has a higher limit and no correction", after, term.Clean(t.StopReason))
	}
	if r := c.Refusal; r != nil {
		text := term.Clean(r.Text)
		if text == "" {
			text = "text withheld by policy"
		}
		d.line("  not retried  %s %s", term.Clean(r.Category), text)
	}
	if r := c.Recovery; r != nil {
		d.line("  %s (%s)", term.Clean(r.Words), term.Clean(r.Path))
	}
	if c.Failure != nil && len(c.Envelopes) == 0 && c.Failure.Detail != "" {
		d.line("  %s", term.Clean(c.Failure.Detail))
	}
	for _, e := range c.Envelopes {
		d.envelope(e)
	}
}

func (d *drawing) envelope(e *view.Envelope) {
	d.line("  %s  %s", term.Clean(e.Key), term.Clean(e.Kind))
	d.line("  %s", term.Clean(e.Headline))
	for i, g := range e.Gates {
		if g.State != view.NotApplicable {
			d.gate(i+1, g)
		}
	}
	for _, ev := range e.Events {
		d.line("    event %d  %s  %s", ev.Sequence, term.Clean(ev.Type), term.Clean(ev.EventID))
	}
	if e.CorrelationID != "" {
		d.line("    correlation %s", term.Clean(e.CorrelationID))
	}
}

// signs and words are the states as they are shown.
var (
	signs = map[view.State]string{view.Passed: "✓", view.Refused: "✕", view.NotReached: "·"}
	words = map[view.State]string{view.Passed: "passed", view.Refused: "refused", view.NotReached: "not reached"}
)

func (d *drawing) gate(n int, g view.Gate) {
	said := g.Note
	if g.State == view.Refused {
		said = g.Code + ": " + strings.TrimPrefix(g.Reason, g.Code+": ")
	}
	state := d.paint(fmt.Sprintf("%s %-11s", signs[g.State], words[g.State]), words[g.State])
	d.line("    %d %-9s  %s  %s", n, term.Clean(string(g.Name)), state, term.Clean(said))
	const under = "                               "
	if g.RefusedKind != "" {
		d.line("%s refused   %s", under, term.Clean(g.RefusedKind))
	}
	if len(g.AcceptedKinds) > 0 {
		d.line("%s accepted  %s", under, term.Clean(strings.Join(g.AcceptedKinds, ", ")))
	}
	for _, p := range g.Problems {
		where := "(root)"
		if p.InstancePointer != nil && *p.InstancePointer != "" {
			where = *p.InstancePointer
		}
		d.line("%s %s: %s", under, term.Clean(where), term.Clean(p.Message))
		if p.SchemaPointer != "" {
			d.line("%s   rule %s", under, term.Clean(p.SchemaPointer))
		}
	}
}
