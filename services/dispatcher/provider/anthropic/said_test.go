package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/anthropic"
)

// callBlock returns the events of a call with pieces of its input.
func callBlock(index, name string, input ...string) string {
	events := []string{`{"type":"content_block_start","index":` + index + `,"content_block":{"type":"tool_use","id":"t` + index + `","name":"` + name + `","input":{}}}`}
	for _, piece := range input {
		events = append(events, `{"type":"content_block_delta","index":`+index+`,"delta":{"type":"input_json_delta","partial_json":`+piece+`}}`)
	}
	return strings.Join(append(events, `{"type":"content_block_stop","index":`+index+`}`), "\x00")
}

// A call of the forced tool with input is the answer. Without input, the text is, if it can have the answer. A call
// of another tool is none.
func TestForcedTool_WhatIsTheAnswer(t *testing.T) {
	t.Parallel()
	const right, other = `"{\"a\":1}"`, `"{\"q\":1}"`
	text := strings.Join([]string{evText, strings.Replace(evA, `"text":"a"`, `"text":"{\"a\":1}"`, 1), evShut}, "\x00")
	prose := strings.Join([]string{evText, evA, evShut}, "\x00")
	end := strings.Replace(evEnd, "end_turn", "tool_use", 1)
	for name, tc := range map[string]struct {
		blocks []string
		text   string
		stop   provider.StopClass
		waits  bool // the answer is interim
	}{
		"no input after the text":      {[]string{text, callBlock("1", "answer", `""`)}, `{"a":1}`, provider.StopClean, false},
		"no pieces after the text":     {[]string{text, callBlock("1", "answer")}, `{"a":1}`, provider.StopClean, false},
		"an empty object":              {[]string{text, callBlock("1", "answer", `"{}"`)}, `{}`, provider.StopClean, false},
		"no input, prose":              {[]string{prose, callBlock("1", "answer", `""`)}, `{}`, provider.StopClean, false},
		"no input alone":               {[]string{callBlock("0", "answer")}, `{}`, provider.StopClean, false},
		"another tool":                 {[]string{callBlock("0", "search", other)}, ``, provider.StopUnknown, true},
		"another tool after the text":  {[]string{text, callBlock("1", "search", other)}, `{"a":1}`, provider.StopUnknown, true},
		"another tool, then the right": {[]string{callBlock("0", "search", other), callBlock("1", "answer", right)}, `{"a":1}`, provider.StopUnknown, false},
		"an empty call, then a full":   {[]string{callBlock("0", "answer"), callBlock("1", "answer", right)}, `{"a":1}`, provider.StopClean, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := append([]string{evStart}, strings.Split(strings.Join(tc.blocks, "\x00"), "\x00")...)
			res, _ := newRig(t, nil).call(t, tool.ask(), stream(append(events, end, evStop)...))
			require.Equal(t, tc.text, res.Text)
			require.Equal(t, tc.stop, res.Stop)
			require.Equal(t, tc.waits, res.Interim)
		})
	}
}

// A stop reason that means a failure, which gateways pass on, is no end of an answer.
func TestStop_OfAFailureIsAnError(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"error", "cancelled", "preempted"} {
		e := newRig(t, nil).fail(t, ask(), stream(evStart, evText, evA, evShut, strings.Replace(evEnd, "end_turn", reason, 1), evStop))
		require.Equal(t, provider.CodeUnavailable, e.Code)
		require.True(t, e.Retryable)
		require.Contains(t, e.Message, "broke off its answer: "+reason)
	}
}

// A usage without a count of the prompt or the answer is unknown, not 0.
func TestUsage_WithoutCountsIsUnknown(t *testing.T) {
	t.Parallel()
	start := strings.Replace(evStart, `"usage":{`, `"usage":{"cost":1},"used":{`, 1)
	end := strings.Replace(evEnd, `{"output_tokens":4}`, `{"service_tier":"standard"}`, 1)
	res, _ := newRig(t, nil).call(t, ask(), stream(start, evText, evA, evShut, end, evStop))
	require.Equal(t, provider.Usage{}, res.Usage)
}

// A later zero erases no count, and Amazon's own counts fill gaps. What says how far a call is, is no error.
func TestUsage_KeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	end := func(usage string) string { return strings.Replace(evEnd, `{"output_tokens":4}`, usage, 1) }
	start := strings.Replace(strings.Replace(evStart, `"input_tokens":3`, `"input_tokens":10`, 1), `"output_tokens":2`, `"output_tokens":1`, 1)
	none := strings.Replace(evStart, `"usage":`, `"used":`, 1)
	for name, tc := range map[string]struct {
		double.Reply
		in, out int
	}{
		"a later input of 0": {stream(start, evText, evA, evShut, end(`{"input_tokens":0,"output_tokens":5}`), evStop), 10, 5},
		"zeros at the end":   {stream(start, evText, evA, evShut, end(`{"input_tokens":0,"output_tokens":0}`), evStop), 10, 1},
		"zeros at the start": {stream(strings.Replace(start, `"input_tokens":10`, `"input_tokens":0`, 1), evText, evA, evShut, end(`{"input_tokens":10,"output_tokens":5}`), evStop), 10, 5},
		"Amazon's metrics":   {stream(none, evText, evA, evShut, end(`null`), strings.Replace(evStop, `}`, `,"amazon-bedrock-invocationMetrics":{"inputTokenCount":10,"outputTokenCount":5}}`, 1)), 10, 5},
		"other names":        {stream(none, evText, evA, evShut, end(`{"prompt_tokens":10,"completion_tokens":5}`), evStop), 10, 5},
		"a progress event":   {raw(eventStream, "data: {\"status\":\"queued\",\"message\":\"Waiting for a free slot\"}\n\n"+stream(start, evText, evA, evShut, end(`{"output_tokens":5}`), evStop).Raw), 10, 5},
		"a status event":     {raw(eventStream, "event: status\ndata: {\"status\":\"loading\",\"message\":\"Loading model\"}\n\n"+stream(start, evText, evA, evShut, end(`{"output_tokens":5}`), evStop).Raw), 10, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := newRig(t, nil).call(t, ask(), tc.Reply)
			require.Equal(t, "a", res.Text)
			require.True(t, res.Usage.Known)
			require.Equal(t, []int{tc.in, tc.out}, []int{res.Usage.InputTokens, res.Usage.OutputTokens})
		})
	}
}
