package fold

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/view"
)

// parseError is the reason of an answer without a whole JSON document.
const parseError = "parse-error"

// reasons are the reasons of failures in words: alone, one counted, and several.
var reasons = map[string][3]string{
	"schema-violation": {"schema violation", "schema violation", "schema violations"},
	"truncation":       {"truncation", "truncation", "truncations"},
	"type-drift":       {"wrong kind or version", "wrong kind or version", "wrong kinds or versions"},
	"type-mismatch":    {"wrong type", "value of the wrong type", "values of the wrong type"},
	"refusal":          {"refusal", "refusal", "refusals"},
	parseError:         {"no JSON", "answer without JSON", "answers without JSON"},
	"unknown":          {"unknown stop", "unknown stop", "unknown stops"},
}

// unread are the words of answers without a whole JSON document, by the beginning of the host's message.
// Earlier releases wrote other messages.
var unread = []struct {
	begins string
	words  [3]string
}{
	{"its JSON is broken", [3]string{"broken JSON", "answer with broken JSON", "answers with broken JSON"}},
	{"its JSON has a trailing comma", [3]string{"broken JSON", "answer with broken JSON", "answers with broken JSON"}},
	{"its JSON document is not complete", [3]string{"incomplete JSON", "answer with incomplete JSON", "answers with incomplete JSON"}},
	{"its JSON document is not an envelope", [3]string{"not an envelope", "answer without an envelope", "answers without an envelope"}},
	{"it ends after its thinking", [3]string{"thinking only", "answer of thinking only", "answers of thinking only"}},
	{"it is empty", [3]string{"empty", "empty answer", "empty answers"}},
	{"it is text", [3]string{"text, not JSON", "answer in text", "answers in text"}},
	{"it repeats a document of the prompt", [3]string{"repeats the prompt", "answer that repeats the prompt", "answers that repeat the prompt"}},
}

// wordsOf returns the words of a failure: alone, one counted, and several.
func wordsOf(reason, detail string) [3]string {
	if reason == parseError {
		for _, u := range unread {
			if strings.HasPrefix(detail, u.begins) {
				return u.words
			}
		}
	}
	if words, ok := reasons[reason]; ok {
		return words
	}
	return [3]string{reason, reason, reason + "s"}
}

func inWords(reason, detail string) string { return wordsOf(reason, detail)[0] }

var numbers = []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}

func plural(n int, one, more string) string {
	number := strconv.Itoa(n)
	if n < len(numbers) {
		number = numbers[n]
	}
	if n == 1 {
		return number + " " + one
	}
	return number + " " + more
}

// failures counts why calls failed: "two schema violations, one truncation".
func failures(calls []*view.Call) string {
	var order [][3]string
	n := map[[3]string]int{}
	for _, c := range calls {
		if c.Failure == nil {
			continue
		}
		words := wordsOf(c.Failure.Reason, c.Failure.Detail)
		if n[words]++; n[words] == 1 {
			order = append(order, words)
		}
	}
	parts := make([]string, len(order))
	for i, words := range order {
		parts[i] = plural(n[words], words[1], words[2])
	}
	return strings.Join(parts, ", ")
}

// tell sets the stories of an execution, its calls and their documents.
func tell(x *view.Execution) {
	for _, c := range x.Calls {
		c.End, c.Tone = endOf(c, x.Result == view.ResultOpen)
		for _, e := range c.Envelopes {
			e.Story = storyOf(e, c)
		}
	}
	x.Story = storyOfExecution(x)
	if form, ok := answerForms[x.Turn]; ok {
		x.Detail = strings.TrimSpace(x.Detail + " Asked for " + form + ", because turn is auto.")
	}
}

// answerForms are the forms of an answer in words.
var answerForms = map[string]string{"envelopes": "a list of envelopes", "payload": "the payload alone"}

func storyOf(e *view.Envelope, within *view.Call) view.Story {
	stop := e.Stop()
	switch {
	case e.Form == view.FormValue && stop != nil:
		return view.Story{Tone: view.Bad, Headline: "The value violates the node's schema", Code: stop.Code}
	case e.Form == view.FormValue:
		return view.Story{Tone: view.Good, Headline: "The value satisfies the node's schema"}
	case e.Outcome == view.OutcomeCached:
		return view.Story{Tone: view.Note, Headline: "Duplicate: cached outcome, no new events"}
	case stop == nil:
		return view.Story{Tone: view.Good, Headline: fmt.Sprintf("Accepted on attempt %d: all eight gates passed", within.Attempt)}
	}
	s := view.Story{
		Tone: view.Bad, Code: stop.Code,
		Headline: fmt.Sprintf("Stopped at gate %d of %d, %s", slices.Index(view.Gates, stop.Name)+1, len(view.Gates), stop.Name),
	}
	if e.Kind != "" {
		s.Headline += ": " + e.Kind
	}
	if e.Outcome == view.OutcomeDiscarded {
		s.Tone, s.Detail = view.Note, "Discarded with a warning; the node continued."
	}
	return s
}

func storyOfExecution(x *view.Execution) view.Story {
	if s := x.Insufficient; s != nil {
		detail := "No fallback model was available."
		if s.FallbackAttempted {
			detail = "The fallback model was unavailable as well."
		}
		return view.Story{
			Tone: view.Bad, Code: string(fault.CapabilityNotProvided), Detail: detail,
			Headline: fmt.Sprintf("Not called: %s/%s lacks %s", s.Provider, s.Model, strings.Join(s.Missing, ", ")),
		}
	}
	if x.Result == view.ResultBranched {
		return view.Story{Tone: view.Note, Headline: "The branch starts within this attempt, and the node ran again"}
	}
	if !slices.ContainsFunc(x.Calls, isAnswered) {
		if x.Error != nil {
			return view.Story{Tone: view.Bad, Headline: "No answer received", Code: x.Error.Code, Detail: x.Error.Message}
		}
		return view.Story{Tone: view.Open, Headline: "Waiting for the model"}
	}
	last, before := x.Calls[len(x.Calls)-1], failures(x.Calls)
	after := ""
	if before != "" {
		after = " after " + before
	}
	switch {
	case last.Refusal != nil:
		return view.Story{
			Tone: view.Bad, Headline: "The model declined; this is final", Code: string(fault.EnvelopeRefusal),
			Detail: "One attempt. Refusals are not retried.",
		}
	case x.Exhausted > 0:
		return view.Story{
			Tone: view.Bad, Code: codeOf(x.Error),
			Headline: fmt.Sprintf("Given up after %s: %s", plural(x.Exhausted, "attempt", "attempts"), before),
		}
	case x.Result == view.ResultOpen:
		return view.Story{Tone: view.Open, Headline: fmt.Sprintf("Attempt %d is in progress%s", last.Attempt, after)}
	case x.Result == view.ResultWaiting:
		return view.Story{Tone: view.Open, Headline: "Waiting for an answer to the model's question"}
	case x.Result != view.ResultCompleted:
		return stopped(x)
	case last.Cause == view.CauseProse:
		return view.Story{Tone: view.Good, Headline: "Converted to the schema by one further call" + after}
	case len(x.Calls) == 1:
		return view.Story{Tone: view.Good, Headline: "Accepted on the first attempt" + after}
	default:
		return view.Story{Tone: view.Good, Headline: fmt.Sprintf("Accepted on attempt %d%s", last.Attempt, after)}
	}
}

// isAnswered reports whether anything of an answer arrived.
func isAnswered(c *view.Call) bool {
	return c.Usage != nil || c.FirstMs != nil || c.Failure != nil || c.Truncated != nil || c.Refusal != nil ||
		len(c.Envelopes) > 0 || c.Cause == view.CauseHandedIn
}

// stopped describes an execution that ended without an answer.
func stopped(x *view.Execution) view.Story {
	s := view.Story{Tone: view.Note, Headline: fmt.Sprintf("The node was %s", x.Result), Code: codeOf(x.Error)}
	if x.Result == view.ResultFailed {
		s.Tone = view.Bad
	}
	if x.Error == nil {
		return s
	}
	s.Headline = x.Error.Message
	for _, c := range slices.Backward(x.Calls) {
		for _, e := range slices.Backward(c.Envelopes) {
			if e.Outcome == view.OutcomeRefused {
				s = storyOf(e, c)
				s.Code = x.Error.Code
				return s
			}
		}
	}
	return s
}

func codeOf(e *view.Error) string {
	if e == nil {
		return ""
	}
	return e.Code
}

// endOf describes how a call ended.
func endOf(c *view.Call, open bool) (string, view.Tone) {
	has := func(o view.Outcome) bool {
		return slices.ContainsFunc(c.Envelopes, func(e *view.Envelope) bool { return e.Outcome == o })
	}
	switch {
	case c.Refusal != nil:
		return "declined", view.Bad
	case c.Truncated != nil:
		return "truncated", view.Bad
	case c.Failure != nil:
		return c.Failure.Words, view.Bad
	case has(view.OutcomeRefused):
		return "refused", view.Bad
	case has(view.OutcomeAccepted):
		return "accepted", view.Good
	case c.Usage != nil:
		return "plain text", view.Note
	case open:
		return "asking", view.Open
	default:
		return "no answer", view.Bad
	}
}
