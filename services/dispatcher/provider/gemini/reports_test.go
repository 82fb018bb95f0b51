package gemini_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/gemini"
)

// Streams and errors of servers with Google's interface that broke clients in public reports.
func TestReports_Answers(t *testing.T) {
	t.Parallel()
	const (
		wanted = `{"title":"Call it","urgent":true}`
		counts = `"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":9,"totalTokenCount":17}`
	)
	text := func(s string) string { return `{"text":` + string(strictjson.Render(s)) + `}` }
	event := func(doc string) string { return "data: " + doc + "\r\n\r\n" }
	parts := func(list, more string) string {
		return event(`{"candidates":[{"content":{"role":"model","parts":[` + list + `]}` + more + `}]}`)
	}
	end := event(`{"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}],` + counts + `}`)
	halves := parts(text(`{"title":"Call`), "") + parts(text(` it","urgent":true}`), "")
	call := func(arguments string) string {
		return parts(`{"functionCall":{"name":"answer","args":`+arguments+`}}`, "")
	}
	for name, tc := range map[string]struct {
		label, body string
		via         provider.SchemaVia
		text        string // wanted, unless set; it need not be JSON
	}{
		"NaN in arguments":          {body: call(`{"amount":NaN,"most":[Infinity,-Infinity]}`) + end, via: provider.ViaTool, text: `{"amount":NaN,"most":[Infinity,-Infinity]}`},
		"NaN in log probabilities":  {body: halves + strings.Replace(end, `"finishReason"`, `"avgLogprobs":NaN,"finishReason"`, 1)},
		"minus infinity in them":    {body: halves + strings.Replace(end, `"finishReason"`, `"avgLogprobs":-Infinity,"finishReason"`, 1)},
		"NaN in a document":         {label: "application/json", body: `{"candidates":[{"content":{"parts":[` + text(wanted) + `]},"avgLogprobs":NaN,"finishReason":"STOP"}],` + counts + `}`},
		"a stream called a page":    {label: "text/html", body: halves + end},
		"a comment as data":         {body: "data: : PROCESSING\n\n" + halves + end},
		"a heartbeat with the time": {body: "event: heartbeat\ndata: 1764257463\n\n" + halves + end},
		"no role":                   {body: strings.ReplaceAll(halves+end, `"role":"model",`, "")},
		"an empty part":             {body: parts(`{}`, "") + halves + end},
		"a signature alone":         {body: halves + parts(`{"text":"","thoughtSignature":"eA=="}`, "") + end},
		"code that was run":         {body: parts(`{"executableCode":{"language":"PYTHON","code":"x"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"{}"}}`, "") + halves + end},
		"grounding and citations":   {body: halves + strings.Replace(end, `"finishReason"`, `"groundingMetadata":{"webSearchQueries":["x"]},"citationMetadata":{"citations":[{"uri":"x"}]},"finishReason"`, 1)},
		"a finish message":          {body: halves + strings.Replace(end, `"finishReason"`, `"finishMessage":"done","finishReason"`, 1)},
		"members twice":             {body: strings.ReplaceAll(halves, `{"candidates"`, `{"candidates":[],"candidates"`) + end},
		"an index beyond any":       {body: strings.ReplaceAll(halves, `{"content"`, `{"index":0e9,"content"`) + end},
		"a response id of a half":   {body: strings.ReplaceAll(halves, `{"candidates"`, `{"responseId":"\ud800","candidates"`) + end},
		"a call, no arguments then": {body: call(wanted) + end, via: provider.ViaTool},
		"a call, arguments as text": {body: call(string(strictjson.Render(wanted))) + end, via: provider.ViaTool},
		"a call with a signature":   {body: parts(`{"functionCall":{"name":"answer","args":`+wanted+`},"thoughtSignature":"eA=="}`, "") + end, via: provider.ViaTool},
		"thought as text":           {body: parts(`{"text":"hm {","thought":"true"}`, "") + halves + end},
		"parts that are one":        {body: event(`{"candidates":[{"content":{"role":"model","parts":`+text(wanted)+`}}]}`) + end},
		"text null":                 {body: parts(`{"text":null}`, "") + halves + end},
		"usage details null":        {body: halves + strings.Replace(end, `"totalTokenCount":17`, `"totalTokenCount":17,"promptTokensDetails":null`, 1)},
		"model version null":        {body: strings.ReplaceAll(halves, `{"candidates"`, `{"modelVersion":null,"candidates"`) + end},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.label == "" {
				tc.label = eventStream
			}
			res, _ := newRig(t, nil).call(t, askVia(tc.via), served(tc.label, tc.body))
			if tc.text != "" {
				require.Equal(t, tc.text, res.Text)
			} else {
				require.JSONEq(t, wanted, res.Text)
			}
			require.Equal(t, provider.StopClean, res.Stop)
			require.Equal(t, provider.Usage{InputTokens: 8, OutputTokens: 9, TotalTokens: 17, Known: true}, res.Usage)
		})
	}
}

func TestReports_Errors(t *testing.T) {
	t.Parallel()
	vendor := func(code int, kind, message string) double.Reply {
		return double.Reply{Status: code, ContentType: "application/json", Raw: `{"error":{"code":` + string(strictjson.Render(code)) + `,"message":"` + message + `","status":"` + kind + `"}}`}
	}
	for name, tc := range map[string]struct {
		double.Reply
		code                string
		retryable, capacity bool
	}{
		"prepaid credits":      {vendor(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing."), provider.CodeQuota, false, false},
		"a spike":              {vendor(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."), provider.CodeQuota, true, true},
		"high demand":          {vendor(503, "UNAVAILABLE", "This model is currently experiencing high demand. Spikes in demand are usually temporary. Please try again later."), provider.CodeUnavailable, true, true},
		"a leaked key":         {vendor(403, "PERMISSION_DENIED", "Your API key was reported as leaked. Please use another API key."), provider.CodeCredentialRequired, false, false},
		"an output limit":      {vendor(400, "INVALID_ARGUMENT", "Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive)."), provider.CodeInvalidRequest, false, false},
		"a schema of the form": {vendor(400, "INVALID_ARGUMENT", "Unable to submit request because one or more response schemas specified incorrect schema type field."), provider.CodeSchemaInvalid, false, false},
		"a cancelled call":     {vendor(499, "CANCELLED", "The operation was cancelled."), provider.CodeUnavailable, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRig(t, nil).fail(t, askVia(provider.ViaTool), tc.Reply)
			require.Equal(t, tc.code, e.Code, "%s %s", e.Message, e.Quote)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.capacity, e.Capacity, e.Message)
		})
	}
}
