package gemini_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/gemini"
)

// responses returns a stream of documents.
func responses(docs ...string) double.Reply {
	return served(eventStream, "data: "+strings.Join(docs, "\n\ndata: ")+"\n\n")
}

// answerOf returns a whole response of parts.
func answerOf(parts string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"finishReason":"STOP"}]}`
}

// A call of the forced function with arguments is the answer. Without arguments, the text is, if it can have the
// answer. A call of another function is none.
func TestForcedFunction_WhatIsTheAnswer(t *testing.T) {
	t.Parallel()
	const text, right = `{"text":"{\"a\":1}"}`, `{"functionCall":{"name":"answer","args":{"a":1}}}`
	const empty, other = `{"functionCall":{"name":"answer"}}`, `{"functionCall":{"name":"search","args":{"q":1}}}`
	req := ask()
	req.Schema, req.SchemaName, req.Via = []byte(`{"type":"object"}`), "answer", provider.ViaTool
	for name, tc := range map[string]struct {
		parts, text string
		stop        provider.StopClass
		interim     bool
	}{
		"no arguments after the text":   {text + "," + empty, `{"a":1}`, provider.StopClean, false},
		"null arguments after the text": {text + `,{"functionCall":{"name":"answer","args":null}}`, `{"a":1}`, provider.StopClean, false},
		"an empty object":               {text + `,{"functionCall":{"name":"answer","args":{}}}`, `{}`, provider.StopClean, false},
		"no arguments, prose":           {`{"text":"I look."},` + empty, `{}`, provider.StopClean, false},
		"no arguments alone":            {empty, `{}`, provider.StopClean, false},
		"an empty call, then a full":    {empty + "," + right, `{"a":1}`, provider.StopClean, false},
		"another function":              {other, ``, provider.StopUnknown, true},
		"another after the text":        {text + "," + other, `{"a":1}`, provider.StopUnknown, true},
		"another, then the right":       {other + "," + right, `{"a":1}`, provider.StopUnknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := newRig(t, nil).call(t, req, responses(answerOf(tc.parts)))
			require.Equal(t, tc.text, res.Text)
			require.Equal(t, tc.stop, res.Stop)
			require.Equal(t, tc.interim, res.Interim)
		})
	}
}

// A finish reason that means a failure, which gateways pass on, is no end of an answer.
func TestStop_OfAFailureIsAnError(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"ERROR", "CANCELLED", "PREEMPTED"} {
		e := newRig(t, nil).fail(t, ask(), responses(strings.Replace(answerOf(`{"text":"Half an"}`), "STOP", reason, 1)))
		require.Equal(t, provider.CodeUnavailable, e.Code)
		require.True(t, e.Retryable)
		require.Contains(t, e.Message, "broke off its answer: "+reason)
	}
}

// A call that the vendor could not read is no answer, and the text before it neither.
func TestStop_OfAnUnreadableCallIsInterim(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"} {
		res, _ := newRig(t, nil).call(t, ask(), responses(strings.Replace(answerOf(`{"text":"Let me look."}`), "STOP", reason, 1)))
		require.True(t, res.Interim)
	}
}

// Contents of other roles are not the answer, and what says how far a call is, is no error.
func TestRoles_OnlyTheModelsContentCounts(t *testing.T) {
	t.Parallel()
	content := func(role, text string) string {
		return `{"candidates":[{"content":{"role":"` + role + `","parts":[{"text":"` + text + `"}]}}]}`
	}
	end := answerOf(`{"text":""}`)
	for name, reply := range map[string]double.Reply{
		"a function's result": responses(content("function", "found"), content("model", "one"), end),
		"an echo":             responses(content("user", "Say it"), content("model", "one"), end),
		"progress":            responses(`{"status":"queued","message":"Waiting for a free slot"}`, content("model", "one"), end),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := newRig(t, nil).call(t, ask(), reply)
			require.Equal(t, "one", res.Text)
		})
	}
}

// Totals fill the counts that are missing, and a later zero erases none.
func TestUsage_KeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	with := func(counts string) string {
		return `{"candidates":[{"content":{"role":"model","parts":[{"text":"one"}]},"finishReason":"STOP"}],"usageMetadata":` + counts + `}`
	}
	later := func(counts string) string { return `{"candidates":[],"usageMetadata":` + counts + `}` }
	for name, tc := range map[string]struct {
		double.Reply
		in, out int
	}{
		"no count of the answer":    {responses(with(`{"promptTokenCount":10,"totalTokenCount":15}`)), 10, 5},
		"thoughts, no answer":       {responses(with(`{"promptTokenCount":10,"thoughtsTokenCount":7,"totalTokenCount":22}`)), 10, 12},
		"thoughts alone":            {responses(with(`{"promptTokenCount":10,"thoughtsTokenCount":60,"totalTokenCount":70}`)), 10, 60},
		"no count of the prompt":    {responses(with(`{"candidatesTokenCount":5,"totalTokenCount":15}`)), 10, 5},
		"zeros at the end":          {responses(with(`{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}`), later(`{"promptTokenCount":0,"candidatesTokenCount":0,"totalTokenCount":0}`)), 10, 5},
		"the total in another one":  {responses(with(`{"promptTokenCount":10}`), later(`{"totalTokenCount":15}`)), 10, 5},
		"an answer without a total": {responses(with(`{"promptTokenCount":10,"candidatesTokenCount":5}`)), 10, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, _ := newRig(t, nil).call(t, ask(), tc.Reply)
			require.Equal(t, []int{tc.in, tc.out}, []int{res.Usage.InputTokens, res.Usage.OutputTokens})
		})
	}
}

// Errors are what they say, whatever their status.
func TestErrors_AreWhatTheySay(t *testing.T) {
	t.Parallel()
	said := func(code int, message, status string) double.Reply {
		body := `{"error":{"message":"` + message + `","status":"` + status + `"}}`
		return double.Reply{Status: code, ContentType: "application/json", Raw: body}
	}
	for name, tc := range map[string]struct {
		double.Reply
		code      string
		retryable bool
	}{
		"a region":             {said(403, "User location is not supported for the API use.", "PERMISSION_DENIED"), provider.CodeUnavailable, false},
		"a page":               {double.Reply{Status: 403, ContentType: "text/html", Raw: "<!DOCTYPE html><title>Attention Required! | Cloudflare</title>"}, provider.CodeUnavailable, false},
		"a key":                {said(403, "Permission denied", "PERMISSION_DENIED"), provider.CodeCredentialRequired, false},
		"generation, 424":      {double.Reply{Status: 424, ContentType: "application/json", Raw: `{"error":"Request failed during generation: out of memory"}`}, provider.CodeUnavailable, true},
		"too long, 502":        {said(502, "Input is too long for requested model.", ""), provider.CodeContentTooLong, false},
		"no model, status 200": {responses(`{"error":"model 'x' not found, try pulling it first"}`), provider.CodeModelNotSupported, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRig(t, nil).fail(t, ask(), tc.Reply)
			require.Equal(t, tc.code, e.Code, e.Message)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
		})
	}
}
