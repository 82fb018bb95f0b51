package ladder

import (
	"fmt"
	"io"
	"strings"

	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/fault"
)

// Write draws executions as text.
func Write(w io.Writer, all []*Execution, color bool) error {
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

func (d *drawing) execution(x *Execution) {
	s := x.Story()
	d.line("%s  %s", d.paint(term.Clean(x.NodeID), "bold"), term.Clean(x.TypeID))
	d.line("%s", term.Clean(s.Headline))
	if s.Detail != "" {
		d.line("%s", term.Clean(s.Detail))
	}
	if x.Substituted != "" {
		d.line("model: %s", term.Clean(x.Substituted))
	}
	for _, c := range x.Calls {
		d.call(c, x.Result == "open")
	}
	if s.Code != "" {
		d.code(s.Code)
	}
}

// code says what an error means, and who goes on.
func (d *drawing) code(code fault.Code) {
	d.line("")
	d.line("%s", d.paint(string(code), "failed"))
	if !fault.Known(code) {
		return
	}
	r := fault.Lookup(code)
	d.line("  %s", r.Meaning)
	d.line("  next (%s): %s", r.Owner, r.Next)
}

func (d *drawing) call(c *Call, open bool) {
	d.line("")
	head := fmt.Sprintf("attempt %d, %s", c.Attempt, c.End(open))
	if c.Model != "" {
		head += "  " + term.Clean(c.Model)
	}
	d.line("%s", head)
	if t := c.Truncated; t != nil {
		d.line("  cut off after %d tokens (%s); the next attempt has more room and the same words", t.OutputTokens, term.Clean(t.StopReason))
	}
	if r := c.Refusal; r != nil {
		text := term.Clean(r.Text)
		if text == "" {
			text = "text withheld by policy"
		}
		d.line("  not retried  %s %s", term.Clean(r.Category), text)
	}
	if c.Recovery != "" {
		d.line("  its JSON was made readable first: %s", term.Clean(c.Recovery))
	}
	if c.Failure != nil && len(c.Envelopes) == 0 && c.Failure.Detail != "" {
		d.line("  %s", term.Clean(c.Failure.Detail))
	}
	for _, e := range c.Envelopes {
		d.envelope(e, c)
	}
}

func (d *drawing) envelope(e *Envelope, c *Call) {
	d.line("  %s  %s", term.Clean(e.Key), term.Clean(e.Kind))
	d.line("  %s", term.Clean(e.Story(c).Headline))
	for i, r := range e.Rungs {
		if r.State == NotApplicable {
			continue
		}
		d.rung(i+1, r)
	}
	for _, ev := range e.Events {
		d.line("    event %d  %s  %s", ev.Sequence, term.Clean(ev.Type), term.Clean(ev.EventID))
	}
	if e.CorrelationID != "" {
		d.line("    correlation %s", term.Clean(e.CorrelationID))
	}
}

// signs stand before the words of the states.
var signs = map[State]string{Passed: "✓", Refused: "✕", NotReached: "·"}

func (d *drawing) rung(n int, r Rung) {
	said := r.Note
	if r.State == Refused {
		said = string(r.Code) + ": " + strings.TrimPrefix(r.Reason, string(r.Code)+": ")
	}
	state := d.paint(fmt.Sprintf("%s %-11s", signs[r.State], r.State), string(r.State))
	d.line("    %d %-9s  %s  %s", n, r.Gate, state, term.Clean(said))
	const under = "                               "
	if r.RefusedKind != "" {
		d.line("%s refused   %s", under, term.Clean(r.RefusedKind))
	}
	if len(r.AcceptedKinds) > 0 {
		d.line("%s accepted  %s", under, term.Clean(strings.Join(r.AcceptedKinds, ", ")))
	}
	for _, p := range r.Problems {
		where := p.InstancePointer
		if where == "" {
			where = "(root)"
		}
		d.line("%s %s: %s", under, term.Clean(where), term.Clean(p.Message))
		if p.SchemaPointer != "" {
			d.line("%s   rule %s", under, term.Clean(p.SchemaPointer))
		}
	}
}
