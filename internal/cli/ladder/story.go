package ladder

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/fault"
)

// Story is what became of something, in one sentence.
type Story struct {
	Headline string     `json:"headline"`
	Code     fault.Code `json:"code,omitempty"`
	Detail   string     `json:"detail,omitempty"`
}

// counts are the reasons for which a model is asked again, in words: one, and several.
var counts = map[string][2]string{
	"schema-violation": {"schema violation", "schema violations"},
	"truncation":       {"truncation", "truncations"},
	"type-drift":       {"wrong kind or version", "wrong kinds or versions"},
	"type-mismatch":    {"value of the wrong type", "values of the wrong type"},
	"refusal":          {"refusal", "refusals"},
	"parse-error":      {"answer without JSON", "answers without JSON"},
	"unknown":          {"unknown stop", "unknown stops"},
}

var numbers = []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}

func spelled(n int) string {
	if n < len(numbers) {
		return numbers[n]
	}
	return strconv.Itoa(n)
}

func plural(n int, one, more string) string {
	if n == 1 {
		return spelled(n) + " " + one
	}
	return spelled(n) + " " + more
}

// failures counts why calls failed: "two schema violations, one truncation".
func failures(calls []*Call) string {
	var order []string
	n := map[string]int{}
	for _, c := range calls {
		if c.Failure == nil {
			continue
		}
		if n[c.Failure.Reason]++; n[c.Failure.Reason] == 1 {
			order = append(order, c.Failure.Reason)
		}
	}
	for i, reason := range order {
		words, ok := counts[reason]
		if !ok {
			words = [2]string{reason, reason + "s"}
		}
		order[i] = plural(n[reason], words[0], words[1])
	}
	return strings.Join(order, ", ")
}

// Story is what became of a document that a call gave.
func (e *Envelope) Story(within *Call) Story {
	stop := e.Stop()
	switch {
	case e.Value && stop != nil:
		return Story{Headline: "The value breaks the schema that the node asks for", Code: stop.Code}
	case e.Value:
		return Story{Headline: "The value satisfies the schema that the node asks for"}
	case e.Outcome == OutcomeCached:
		return Story{Headline: "Repeated: the cached outcome, and no new events"}
	case stop == nil:
		return Story{Headline: fmt.Sprintf("Accepted on attempt %d: all eight gates passed", within.Attempt)}
	}
	s := Story{
		Headline: fmt.Sprintf("Stopped at gate %d of %d, %s", slices.Index(Gates, stop.Gate)+1, len(Gates), stop.Gate),
		Code:     stop.Code,
	}
	if e.Kind != "" {
		s.Headline += ": " + e.Kind
	}
	if e.Outcome == OutcomeDiscarded {
		s.Detail = "Discarded with a warning; the node went on."
	}
	return s
}

// Story is what became of all that a node's model was asked.
func (x *Execution) Story() Story {
	if x.Insufficient != "" {
		return Story{Headline: "Not asked: " + x.Insufficient, Code: fault.CapabilityNotProvided}
	}
	if len(x.Calls) == 0 {
		if x.Error != nil {
			return Story{Headline: "No answer came", Code: x.Error.Code, Detail: x.Error.Message}
		}
		return Story{Headline: "The model is being asked"}
	}
	last, before := x.Calls[len(x.Calls)-1], failures(x.Calls)
	after := ""
	if before != "" {
		after = " after " + before
	}
	switch {
	case last.Refusal != nil:
		return Story{
			Headline: "The model declined, which is final",
			Code:     fault.EnvelopeRefusal,
			Detail:   "One attempt. A refusal is not retried, by any layer.",
		}
	case x.Exhausted > 0:
		s := Story{Headline: fmt.Sprintf("Given up after %s: %s", plural(x.Exhausted, "attempt", "attempts"), before)}
		if x.Error != nil {
			s.Code = x.Error.Code
		}
		return s
	case x.Result == "open":
		return Story{Headline: fmt.Sprintf("Attempt %d is under way%s", last.Attempt, after)}
	case x.Result == "waiting":
		return Story{Headline: "Waiting for an answer to the model's question"}
	case x.Result == "completed" && last.Cause == causeProse:
		return Story{Headline: "Put into the schema by one further call" + after}
	case x.Result == "completed" && len(x.Calls) == 1:
		return Story{Headline: "Taken at once" + after}
	case x.Result == "completed":
		return Story{Headline: fmt.Sprintf("Taken on attempt %d%s", last.Attempt, after)}
	}
	return x.stopped()
}

// stopped is what ended an execution that gave nothing.
func (x *Execution) stopped() Story {
	if x.Error == nil {
		return Story{Headline: "The node was " + x.Result}
	}
	for _, c := range slices.Backward(x.Calls) {
		for _, e := range slices.Backward(c.Envelopes) {
			if e.Outcome == OutcomeRefused {
				s := e.Story(c)
				s.Code = x.Error.Code
				return s
			}
		}
	}
	return Story{Headline: x.Error.Message, Code: x.Error.Code}
}

// End is how a call ended, in a word or two.
func (c *Call) End(open bool) string {
	has := func(o Outcome) bool {
		return slices.ContainsFunc(c.Envelopes, func(e *Envelope) bool { return e.Outcome == o })
	}
	switch {
	case c.Refusal != nil:
		return "declined"
	case c.Truncated != nil:
		return "truncated"
	case c.Failure != nil:
		if c.Failure.Reason == "parse-error" {
			return "no JSON"
		}
		if words, ok := counts[c.Failure.Reason]; ok {
			return words[0]
		}
		return c.Failure.Reason
	case has(OutcomeRefused):
		return "refused"
	case has(OutcomeAccepted):
		return "accepted"
	case c.used:
		return "plain text"
	case open:
		return "asking"
	default:
		return "no answer"
	}
}

// Find gives what a name stands for, as a ladder of its own: the id of an envelope, a
// correlation id, a key, a node, or the id of an event.
func Find(all []*Execution, name string) []*Execution {
	var out []*Execution
	for _, x := range all {
		if x.NodeID == name || fmt.Sprintf("%s.%d", x.NodeID, x.Number) == name {
			out = append(out, x)
			continue
		}
		only := *x
		only.Calls = nil
		for _, c := range x.Calls {
			if key := fmt.Sprintf("%s.%d.%d", x.NodeID, x.Number, c.Ordinal); key == name {
				only.Calls = append(only.Calls, c)
				continue
			}
			call := *c
			call.Envelopes = nil
			for _, e := range c.Envelopes {
				byEvent := slices.ContainsFunc(e.Events, func(ev Event) bool { return ev.EventID == name || strconv.Itoa(ev.Sequence) == name })
				if e.EnvelopeID == name || e.CorrelationID == name || e.Key == name || byEvent {
					call.Envelopes = append(call.Envelopes, e)
				}
			}
			if len(call.Envelopes) > 0 {
				only.Calls = append(only.Calls, &call)
			}
		}
		if len(only.Calls) > 0 {
			out = append(out, &only)
		}
	}
	return out
}

// Names are what Find knows of.
func Names(all []*Execution) []string {
	var out []string
	for _, x := range all {
		out = append(out, x.NodeID)
		for _, c := range x.Calls {
			for _, e := range c.Envelopes {
				out = append(out, e.Key)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
