package models

import (
	"net/http"
	"slices"
	"strings"
)

// Answers of models. The doubles cut a text of more than four bytes per token of the budget.
const (
	good  = `{"answer":42,"note":null}`
	wrong = `{"answer":"` + secretWords + `","note":null}`
	prose = "It is forty-two, " + secretWords + "."
)

// long returns a valid answer of this many tokens.
func long(tokens int) string {
	frame := `{"answer":42,"note":""}`
	return strings.Replace(frame, `""`, `"`+strings.Repeat("n", tokens*4-len(frame))+`"`, 1)
}

// Short names of event types, for the rows.
const (
	usage     = "provider.usage"
	truncated = "envelope.truncated"
	retry     = "envelope.retry.attempted"
	exhausted = "envelope.retry.exhausted"
	refusal   = "envelope.refusal"
	recovered = "envelope.recovery.applied"
	engaged   = "envelope.nlToFormat.engaged"
	breached  = "cap.breached"
	artifact  = "artifact.created"
	completed = "node.completed"
	failed    = "node.failed"
	again     = "node.retried"
	logged    = "log.appended"
	started   = "node.started"
	chunk     = "output.chunk"
)

// row is a class of outcomes: the model's answers, and the events that the run's log must have
// (OpenWOP envelope contract §14.2 and §14.5).
type row struct {
	name    string
	answers []answer
	// events are the expected types between node.started and the run's end. artifact.created is
	// expected only if the node requests an envelope.
	events []string
	// code is the error code of node and run; empty if both complete.
	code string
	// payloads lists the required members of each event of a type, in order.
	payloads map[string][]string
	// budgets are the calls' budgets as multiples of the first; nil if they do not change.
	budgets []int
	// silent means that no call adds to the prompt.
	silent bool
}

// withUsage gives each answer different token counts.
func withUsage(list ...answer) []answer {
	for i := range list {
		if list[i].in == 0 {
			list[i].in, list[i].out = 100+i, 10+i
		}
	}
	return list
}

// cutOff is an answer truncated by the budget, at the model's n-th call.
func cutOff(text string, call int) answer {
	return answer{text: text, in: 100 + call, out: budget << call}
}

func rows(v *vendor) []row {
	list := []row{
		{name: "success at once", answers: withUsage(answer{text: good}), events: []string{usage, artifact, completed}},
		{
			name: "invalid, then valid", answers: withUsage(answer{text: wrong}, answer{text: good}), events: []string{usage, retry, usage, artifact, completed},
			payloads: map[string][]string{retry: {`{"nodeId":"ask","attempt":2,"reason":"schema-violation"}`}},
		},
		{
			name: "no JSON, then valid", answers: withUsage(answer{text: `{"answer":4`}, answer{text: good}), events: []string{usage, retry, usage, artifact, completed},
			payloads: map[string][]string{retry: {`{"nodeId":"ask","attempt":2,"reason":"parse-error"}`}},
		},
		{
			name: "truncated, then valid", answers: []answer{cutOff(long(100), 0), {text: long(100), in: 107, out: 100}},
			events: []string{usage, truncated, retry, usage, artifact, completed}, budgets: []int{1, 2}, silent: true,
			payloads: map[string][]string{
				truncated: {`{"nodeId":"ask","stopReason":"max_tokens","partialPayloadAvailable":false,"outputTokenCount":64}`},
				retry:     {`{"nodeId":"ask","attempt":2,"reason":"truncation"}`},
			},
		},
		{
			name: "truncated although valid", answers: []answer{cutOff(good+strings.Repeat(" ", budget*4), 0), {text: good, in: 108, out: 9}},
			events: []string{usage, truncated, retry, usage, artifact, completed}, budgets: []int{1, 2}, silent: true,
			payloads: map[string][]string{truncated: {`{"nodeId":"ask","stopReason":"max_tokens","partialPayloadAvailable":true,"outputTokenCount":64}`}},
		},
		{
			name: "truncated, then wrong, then valid", answers: []answer{cutOff(long(100), 0), {text: wrong, in: 109, out: 8}, {text: good, in: 110, out: 9}},
			events: []string{usage, truncated, retry, usage, retry, usage, artifact, completed}, budgets: []int{1, 2, 2},
			payloads: map[string][]string{retry: {`{"nodeId":"ask","attempt":2,"reason":"truncation"}`, `{"nodeId":"ask","attempt":3,"reason":"schema-violation"}`}},
		},
		{
			name: "fenced", answers: withUsage(answer{text: "```json\n" + good + "\n```"}), events: []string{usage, recovered, artifact, completed},
			payloads: map[string][]string{recovered: {`{"nodeId":"ask","path":"markdown-fence","byteOffset":8}`}},
		},
		{
			name: "within prose", answers: withUsage(answer{text: "So } it is: " + good + " there."}), events: []string{usage, recovered, artifact, completed},
			payloads: map[string][]string{recovered: {`{"nodeId":"ask","path":"brace-walker","byteOffset":12}`}},
		},
		{
			name: "refused", answers: withUsage(answer{stop: refused}), events: []string{usage, refusal, failed}, code: "envelope_refusal",
			payloads: map[string][]string{refusal: {`{"nodeId":"ask"}`}},
		},
		{
			name: "exhausted, schema", answers: withUsage(answer{text: wrong}, answer{text: wrong}, answer{text: wrong}),
			events: []string{usage, retry, usage, retry, usage, exhausted, breached, failed}, code: "envelope_invalid",
			payloads: map[string][]string{
				exhausted: {`{"nodeId":"ask","totalAttempts":3,"finalReason":"schema-violation"}`}, breached: {`{"nodeId":"ask","kind":"schema","limit":2,"observed":3}`},
			},
		},
		{
			name: "exhausted, truncation", answers: []answer{cutOff(long(400), 0), cutOff(long(400), 1), cutOff(long(400), 2)},
			events: []string{usage, truncated, retry, usage, truncated, retry, usage, truncated, exhausted, breached, failed}, code: "envelope_truncation_unrecoverable",
			budgets: []int{1, 2, 4}, silent: true,
			payloads: map[string][]string{exhausted: {`{"nodeId":"ask","totalAttempts":3,"finalReason":"truncation"}`}},
		},
		{
			name: "prose fallback", answers: withUsage(answer{text: prose}, answer{text: prose}, answer{text: prose}, answer{text: good}),
			events: []string{usage, retry, usage, retry, usage, engaged, usage, artifact, completed},
		},
		{
			name: "prose fallback fails", answers: withUsage(answer{text: prose}, answer{text: prose}, answer{text: prose}, answer{text: prose}),
			events: []string{usage, retry, usage, retry, usage, engaged, usage, exhausted, breached, failed}, code: "envelope_invalid",
			payloads: map[string][]string{exhausted: {`{"nodeId":"ask","totalAttempts":3,"finalReason":"parse-error"}`}},
		},
		{name: "stop sequence after a whole answer", answers: withUsage(answer{text: good, stop: sequence}), events: []string{usage, artifact, completed}},
		{name: "unknown stop, valid", answers: withUsage(answer{text: good, stop: unknown}), events: []string{usage, artifact, completed}},
		{
			name: "unknown stop, invalid", answers: withUsage(answer{text: wrong, stop: unknown}, answer{text: good}), events: []string{usage, retry, usage, artifact, completed},
			payloads: map[string][]string{retry: {`{"nodeId":"ask","attempt":2,"reason":"unknown"}`}},
		},
	}
	return append(append(list, stopRow(v)), transportRows()...)
}

// stopRow is the case in which vendors differ. Some report both ends with the same reason, so a
// half answer looks complete.
func stopRow(v *vendor) row {
	half := answer{text: `{"answer":4`, stop: sequence}
	if !v.sequences {
		return row{
			name: "stop sequence within", answers: withUsage(half, answer{text: good}), events: []string{usage, retry, usage, artifact, completed},
			payloads: map[string][]string{retry: {`{"nodeId":"ask","attempt":2,"reason":"parse-error"}`}},
		}
	}
	return row{
		name: "stop sequence within", answers: withUsage(half, answer{text: good}), events: []string{usage, truncated, retry, usage, artifact, completed},
		budgets: []int{1, 2}, silent: true, payloads: map[string][]string{
			truncated: {`{"nodeId":"ask","stopReason":"stop_sequence","partialPayloadAvailable":false,"outputTokenCount":10}`},
			retry:     {`{"nodeId":"ask","attempt":2,"reason":"truncation"}`},
		},
	}
}

// limited reports whether the vendor refuses a call of the row for lack of capacity.
func (r row) limited() bool {
	return slices.ContainsFunc(r.answers, func(a answer) bool { return a.status == http.StatusTooManyRequests })
}

// transportRows are calls without an answer. The node's retry policy handles them, and no envelope
// event is recorded (OpenWOP envelope contract §14.1).
func transportRows() []row {
	good := answer{text: good, in: 120, out: 12}
	events := []string{again, started, usage, artifact, completed}
	said := func(code string) map[string][]string {
		return map[string][]string{again: {`{"nodeId":"ask","attempt":1,"lastError":{"code":"` + code + `"}}`}}
	}
	return []row{
		{name: "500, then success", answers: []answer{{status: http.StatusInternalServerError}, good}, events: events, silent: true, payloads: said("provider_unavailable")},
		{
			name: "429 with Retry-After, then success", answers: []answer{{status: http.StatusTooManyRequests, retryAfter: "1"}, good}, events: events, silent: true,
			payloads: map[string][]string{again: {`{"nodeId":"ask","attempt":1,"lastError":{"code":"provider_quota_exhausted","details":{"reason":"no_capacity"}}}`}},
		},
		{ // more waits than the retries of the workflow
			name:    "429 three times, then success",
			answers: []answer{{status: http.StatusTooManyRequests}, {status: http.StatusTooManyRequests, retryAfter: "1"}, {status: http.StatusTooManyRequests}, good},
			events:  []string{again, started, again, started, again, started, usage, artifact, completed}, silent: true,
			payloads: map[string][]string{again: {
				`{"nodeId":"ask","attempt":1,"lastError":{"code":"provider_quota_exhausted","details":{"reason":"no_capacity"}}}`,
				`{"nodeId":"ask","attempt":2,"lastError":{"code":"provider_quota_exhausted","details":{"reason":"no_capacity"}}}`,
				`{"nodeId":"ask","attempt":3,"lastError":{"code":"provider_quota_exhausted","details":{"reason":"no_capacity"}}}`,
			}},
		},
		{name: "error within the stream, then success", answers: []answer{{text: `{"answer":`, end: failing}, good}, events: events, silent: true, payloads: said("provider_unavailable")},
		{name: "stream cut, then success", answers: []answer{{text: `{"answer":`, end: broken}, good}, events: events, silent: true, payloads: said("provider_unavailable")},
		{
			name: "500 every time", answers: []answer{{status: http.StatusInternalServerError}, {status: http.StatusBadGateway}}, events: []string{again, started, failed},
			code: "provider_unavailable", silent: true,
		},
		{
			name: "wrong, then 500, then success", answers: []answer{{text: wrong, in: 130, out: 3}, {status: http.StatusInternalServerError}, good},
			events: []string{usage, retry, again, started, usage, artifact, completed},
		},
	}
}
