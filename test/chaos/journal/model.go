package journal

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// What clients do to a run that waits for an answer.
const (
	opAnswer = "answer"
	opCancel = "cancel"
	opRead   = "read"
)

// input is what a client asked; value is the answer it gave.
type input struct{ op, value string }

// Outcomes of what a client asked.
const (
	taken   = "taken"
	refused = "refused" // somebody was there before
	unknown = "unknown" // nobody said whether it was done
)

// output is what the client was told. Of a read, seen is what the log of the run said.
type output struct {
	outcome string
	seen    state
}

// state is a run as its clients know it: it has one log, which only grows. Between two that
// ask, the run goes on by itself, so how long the log is and whether it has ended is learnt
// from reads.
type state struct {
	answer    string // the one that counts; empty: none yet
	cancelled bool
	ended     bool
	events    int
}

func (s state) open() bool { return s.answer == "" && !s.cancelled && !s.ended }

// model is the sequential meaning of the operations on one run that waits for an answer:
// histories of clients that are not an interleaving of it break a promise.
func model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(s, in, out any) []any {
			return step(s.(state), in.(input), out.(output)) //nolint:forcetypeassert // nothing else is recorded
		},
		Equal:             func(a, b any) bool { return a == b },
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
	}
	return m.ToModel()
}

// step gives the states that may follow; none: it cannot have happened so.
func step(s state, in input, out output) []any {
	if in.op == opRead {
		return read(s, out.seen)
	}
	after := s
	if in.op == opAnswer {
		after.answer = in.value
	} else {
		after.cancelled = true
	}
	// An answer needs a run that waits; a cancel one that has not ended, and whose end, once
	// it was answered, only reads tell.
	possible := s.open() || in.op == opCancel && !s.ended && !s.cancelled
	switch {
	case out.outcome == unknown && possible:
		return []any{s, after}
	case out.outcome == unknown:
		return []any{s}
	case out.outcome == taken && possible:
		return []any{after}
	case out.outcome == taken && in.op == opCancel && s.cancelled:
		return []any{s} // and again
	case out.outcome == refused && !s.open():
		return []any{s}
	}
	return nil
}

// read holds what a read saw against what was there: all that was acknowledged, and all
// that anybody has seen before.
func read(s, seen state) []any {
	grown := seen.events >= s.events && (!s.ended || seen.ended && seen.events == s.events)
	if !grown || seen.answer != s.answer || seen.cancelled != s.cancelled {
		return nil
	}
	return []any{seen}
}
