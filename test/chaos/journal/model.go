package journal

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Operations of clients on a waiting run.
const (
	opAnswer = "answer"
	opCancel = "cancel"
	opRead   = "read"
)

// input is a client's request; value is its answer to the run's question.
type input struct{ op, value string }

// Outcomes of a request.
const (
	taken   = "taken"
	refused = "refused" // another client was first
	unknown = "unknown" // no answer: the request may have taken effect
)

// output is the answer to a client. For a read, seen is the state that the log shows.
type output struct {
	outcome string
	seen    state
}

// state is a run as its clients see it: one log that only grows. The run also continues by itself,
// so its length and its end are known only from reads.
type state struct {
	answer    string // the accepted answer; empty if none yet
	cancelled bool
	ended     bool
	events    int
}

func (s state) open() bool { return s.answer == "" && !s.cancelled && !s.ended }

// model is the sequential specification of the operations on one waiting run. A history that is no
// interleaving of it breaks a promise.
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

// step returns the possible next states, none if the operation is impossible.
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
	// An answer needs a waiting run. A cancel needs a run that has not ended; after an answer, only
	// reads show the end.
	possible := s.open() || in.op == opCancel && !s.ended && !s.cancelled
	switch {
	case out.outcome == unknown && possible:
		return []any{s, after}
	case out.outcome == unknown:
		return []any{s}
	case out.outcome == taken && possible:
		return []any{after}
	case out.outcome == taken && in.op == opCancel && s.cancelled:
		return []any{s} // repeated cancel
	case out.outcome == refused && !s.open():
		return []any{s}
	}
	return nil
}

// read checks a read against the known state: everything acknowledged, and everything any client
// has seen before.
func read(s, seen state) []any {
	grown := seen.events >= s.events && (!s.ended || seen.ended && seen.events == s.events)
	if !grown || seen.answer != s.answer || seen.cancelled != s.cancelled {
		return nil
	}
	return []any{seen}
}
