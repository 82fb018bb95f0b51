package fold

import (
	"cmp"
	"fmt"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
)

// readLane applies an event of a node to its lane.
func readLane(l *view.Lane, e wire.Event, p *payload, at int64) {
	b := lastBar(l)
	askedBy(l, e)
	switch e.Type {
	case "node.started":
		l.TypeID = cmp.Or(p.TypeID, l.TypeID)
		// A node is idle while it waits for a retry.
		if b != nil && (b.Status == retried || b.Status == branched) && b.To != nil && at > *b.To {
			b.Parts = append(b.Parts, &view.Part{Kind: view.PartWait, From: *b.To, To: &at})
		}
		startBar(l, e.Sequence, whole(p.Attempt), at, running)
		if whole(p.DelayMs) > 0 { // a timer
			lastBar(l).Parts[0].Kind = view.PartWait
		}
	case "node.retried":
		status := retried
		if p.branched() {
			status = branched
		}
		if b != nil {
			endBar(l, b, at, status)
			b.Ended = &e.Sequence
		}
	case "node.dispatched":
		if p.ChildRunID != "" {
			l.Children = append(l.Children, p.ChildRunID)
		}
	case "node.suspended":
		turnBar(l, b, at, e.Sequence, suspended)
	case "node.resumed":
		turnBar(l, b, at, e.Sequence, running)
	case "output.chunk", "provider.usage":
		if b != nil {
			called(b, at, e.Type == "provider.usage")
		}
	default:
		status, ok := ends[e.Type]
		switch {
		case !ok:
			return
		case b != nil && b.To == nil:
			endBar(l, b, at, status)
		default:
			b = &view.Bar{Sequence: e.Sequence, From: at, To: &at, Status: status, Parts: []*view.Part{}}
			l.Bars = append(l.Bars, b)
		}
		b.Ended = &e.Sequence
		l.Status = status
	}
}

// askedBy notes the events of the questions of a node.
func askedBy(l *view.Lane, e wire.Event) {
	if e.Type == wire.EventInterruptRequested {
		l.Questions = append(l.Questions, &view.Question{Requested: e.Sequence})
		return
	}
	if len(l.Questions) == 0 {
		return
	}
	q := l.Questions[len(l.Questions)-1]
	switch e.Type {
	case wire.EventInterruptResolved:
		q.Resolved = &e.Sequence
	case "approval.received", "approval.overridden":
		q.Votes = append(q.Votes, e.Sequence)
	}
}

func lastBar(l *view.Lane) *view.Bar {
	if len(l.Bars) == 0 {
		return nil
	}
	return l.Bars[len(l.Bars)-1]
}

func startBar(l *view.Lane, seq, attempt int, at int64, status string) {
	l.Bars = append(l.Bars, &view.Bar{
		Attempt: attempt, Sequence: seq, From: at, Status: status,
		Parts: []*view.Part{{Kind: kindOf(status), From: at}},
	})
	l.Status = status
}

// turnBar ends the open bar, and starts one for the wait or for the work after it.
func turnBar(l *view.Lane, b *view.Bar, at int64, seq int, status string) {
	attempt := 0
	if b != nil {
		attempt = b.Attempt
		if b.To == nil {
			b.To = &at
			closePart(b, at)
			if b.Status == running {
				b.Status = completed
			}
		}
	}
	startBar(l, seq, attempt, at, status)
}

func endBar(l *view.Lane, b *view.Bar, at int64, status string) {
	b.To, b.Status, l.Status = &at, status, status
	closePart(b, at)
}

func closePart(b *view.Bar, at int64) {
	if n := len(b.Parts); n > 0 && b.Parts[n-1].To == nil {
		b.Parts[n-1].To = &at
	}
}

// called splits a bar: the time until the provider's last event belongs to the provider, the rest
// is processing of the answer.
func called(b *view.Bar, at int64, done bool) {
	n := len(b.Parts)
	if n == 0 || b.Parts[n-1].To != nil {
		return
	}
	part := b.Parts[n-1]
	if part.Kind == view.PartWork {
		part.Kind = view.PartCall
	}
	if done {
		part.To = &at
		b.Parts = append(b.Parts, &view.Part{Kind: view.PartWork, From: at})
	}
}

// kindOf returns what a bar of a status does.
func kindOf(status string) view.PartKind {
	if status == running {
		return view.PartWork
	}
	return view.PartWait
}

// markOf returns the mark of a notable event; nil for others.
func markOf(e wire.Event, p *payload) *view.Mark {
	mark := func(tone, sign, format string, args ...any) *view.Mark {
		return &view.Mark{Sign: clip(sign), Words: clip(fmt.Sprintf(format, args...)), Tone: tone}
	}
	switch e.Type {
	case "node.retried":
		if p.branched() {
			return mark("run", "⑂", "the branch starts here, and the node runs again")
		}
		n := whole(p.Attempt) + 1
		return mark("ask", fmt.Sprintf("↻%d", n), "retry, attempt %d", n)
	case "envelope.retry.attempted":
		return mark("ask", "↻"+figure(p.Attempt), "model retry, attempt %s: %s",
			figure(p.Attempt), inWords(p.Reason, p.PreviousError))
	case "envelope.retry.exhausted":
		return mark("bad", "↻✕", "gave up after %s attempts: %s",
			figure(p.TotalAttempts), inWords(p.FinalReason, p.FinalError))
	case "envelope.truncated":
		return mark("ask", "…|", "answer truncated")
	case "envelope.refusal":
		return mark("bad", "✋", "the model refused")
	case "envelope.recovery.applied":
		return mark("swap", "⌁", "%s", view.Recovered(p.Path))
	case "envelope.nlToFormat.engaged":
		return mark("swap", "NL", "plain text converted to the schema")
	case "model.capability.substituted":
		return mark("swap", "A→B", "%s was substituted by %s", p.OriginalModel, p.FallbackModel)
	case "model.capability.insufficient":
		return mark("bad", "∅", "%s lacks what the node needs", p.Model)
	case "cap.breached":
		return mark("bad", "cap "+p.Kind, "limit of %s breached: %s of at most %s", p.Kind, figure(p.Observed), figure(p.Limit))
	case "interrupt.requested":
		return mark("ask", "?", "waiting for %s", p.Kind)
	case "replay.diverged":
		return mark("bad", "≠", "diverged from the source run")
	case "node.dispatched":
		return mark("run", "⑂", "started the run %s", p.ChildRunID)
	default:
		return nil
	}
}

// figure returns a number as written; empty if the value is not one.
func figure(raw []byte) string {
	if amount(raw) == nil {
		return ""
	}
	return string(raw)
}

// maxMark limits the texts of a mark, in bytes. The event has the whole text.
const maxMark = 200

// clip shortens a text at a character boundary.
func clip(s string) string {
	if len(s) <= maxMark {
		return s
	}
	n := maxMark
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
