package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/anthropic"
)

// Streams of gateways and of other servers' Messages APIs, as they were reported.
func TestOdd_Answers(t *testing.T) {
	t.Parallel()
	think := `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`
	second := func(e string) string { return strings.Replace(e, `"index":0`, `"index":1`, 1) }
	stopped := func(reason string) double.Reply {
		return stream(evStart, evText, evA, evShut, strings.Replace(evEnd, "end_turn", reason, 1), evStop)
	}
	input := `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"z\":\"a\",\"a\":1}"}}`
	called := `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"answer","input":{}}}`
	used := strings.Replace(evEnd, "end_turn", "tool_use", 1)
	for name, tc := range map[string]struct {
		double.Reply
		way  way
		text string
		stop provider.StopClass
	}{
		"LiteLLM, two starts":            {Reply: stream(evStart, evStart, evText, evA, evShut, evEnd, evStop)},
		"LiteLLM, thinking in text":      {Reply: stream(evStart, evText, think, evA, evShut, evEnd, evStop)},
		"LiteLLM, empty input in text":   {Reply: stream(evStart, evText, strings.Replace(input, `{\"z\":\"a\",\"a\":1}`, "", 1), evA, evShut, evEnd, evStop)},
		"no start of the message":        {Reply: stream(evText, evA, evShut, evEnd, evStop)},
		"no start of the block":          {Reply: stream(evStart, evA, evShut, evEnd, evStop)},
		"no starts":                      {Reply: stream(evA, evEnd, evStop)},
		"no stop of the block":           {Reply: stream(evStart, evText, evA, evEnd, evStop)},
		"a stop too many":                {Reply: stream(evStart, evText, evA, evShut, evShut, evEnd, evStop)},
		"a stop of an unknown block":     {Reply: stream(evStart, evText, evA, second(evShut), evShut, evEnd, evStop)},
		"no stop between blocks":         {Reply: stream(evStart, strings.Replace(evText, `"text","text":""`, `"thinking","thinking":""`, 1), think, second(evText), second(evA), second(evShut), evEnd, evStop)},
		"no message_delta":               {Reply: stream(evStart, evText, evA, evShut, evStop)},
		"the end alone, no message_stop": {Reply: stream(evStart, evText, evA, evEnd)},
		"usage before the blocks":        {Reply: stream(evStart, `{"type":"message_delta","delta":{},"usage":{"output_tokens":0}}`, evText, evA, evShut, evEnd, evStop)},
		"two ends":                       {Reply: stream(evStart, evText, evA, evShut, evEnd, evEnd, evStop)},
		"a null block":                   {Reply: stream(evStart, `{"type":"content_block_start","index":0,"content_block":null}`, evShut, evText, evA, evShut, evEnd, evStop)},
		"a null delta":                   {Reply: stream(evStart, evText, `{"type":"content_block_delta","index":0,"delta":null}`, evA, evShut, evEnd, evStop)},
		"text null":                      {Reply: stream(evStart, strings.Replace(evText, `"text":""`, `"text":null`, 1), evA, evShut, evEnd, evStop)},
		"index as text":                  {Reply: stream(evStart, strings.Replace(evText, `"index":0`, `"index":"0"`, 1), strings.Replace(evA, `"index":0`, `"index":"0"`, 1), evShut, evEnd, evStop)},
		"counts as text":                 {Reply: stream(strings.Replace(evStart, `"input_tokens":3`, `"input_tokens":"3"`, 1), evText, evA, evShut, evEnd, evStop)},
		"usage as a list":                {Reply: stream(evStart, evText, evA, evShut, strings.Replace(evEnd, `{"output_tokens":4}`, "[]", 1), evStop)},
		"no index":                       {Reply: stream(evStart, strings.Replace(evText, `"index":0,`, "", 1), strings.Replace(evA, `"index":0,`, "", 1), strings.Replace(evShut, `,"index":0`, "", 1), evEnd, evStop)},
		"one line feed each":             {Reply: raw(eventStream, strings.ReplaceAll(stream(evStart, evText, evA, evShut, evEnd, evStop).Raw, "\n\n", "\n"))},
		"a word to keep alive":           {Reply: raw(eventStream, strings.ReplaceAll(stream(evStart, evText, evA, evShut, evEnd, evStop).Raw, "\n\n", "\n\ndata: ping\n\n"))},
		"citations":                      {Reply: stream(evStart, evText, `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"char_location"}}}`, evA, evShut, evEnd, evStop)},
		"a signature":                    {Reply: stream(evStart, `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"x"}}`, evShut, second(evText), second(evA), second(evShut), evEnd, evStop)},

		"stop":                          {Reply: stopped("stop")},
		"STOP":                          {Reply: stopped("STOP")},
		"eos":                           {Reply: stopped("eos")},
		"length":                        {Reply: stopped("length"), stop: provider.StopTruncated},
		"MAX_TOKENS":                    {Reply: stopped("MAX_TOKENS"), stop: provider.StopTruncated},
		"model_context_window_exceeded": {Reply: stopped("model_context_window_exceeded"), stop: provider.StopTruncated},
		"content_filter":                {Reply: stopped("content_filter"), stop: provider.StopRefused},
		"content_filtered":              {Reply: stopped("content_filtered"), stop: provider.StopRefused},
		"stop_sequence":                 {Reply: stopped("stop_sequence"), stop: provider.StopSequence},
		"pause_turn":                    {Reply: stopped("pause_turn"), stop: provider.StopUnknown},
		"tool_calls, no tool":           {Reply: stopped("tool_calls"), stop: provider.StopUnknown},

		"a forced call":               {Reply: stream(evStart, called, input, evShut, used, evStop), way: tool},
		"a forced call, tool_calls":   {Reply: stream(evStart, called, input, evShut, strings.Replace(evEnd, "end_turn", "tool_calls", 1), evStop), way: tool},
		"a forced call, end_turn":     {Reply: stream(evStart, called, input, evShut, evEnd, evStop), way: tool},
		"a forced call without start": {Reply: stream(evStart, input, evShut, used, evStop), way: tool},
		"a forced call without stop":  {Reply: stream(evStart, called, input, used, evStop), way: tool},
		"a forced call, input null":   {Reply: stream(evStart, strings.Replace(called, `"input":{}`, `"input":null`, 1), input, evShut, used, evStop), way: tool},
		"input as text":               {Reply: stream(evStart, strings.Replace(called, `"input":{}`, `"input":""`, 1), input, evShut, used, evStop), way: tool},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.way == "" {
				tc.way = free
			}
			res, _ := newRig(t, nil).call(t, tc.way.ask(), tc.Reply)
			if tc.way == tool {
				require.JSONEq(t, `{"z":"a","a":1}`, res.Text)
			} else {
				require.Equal(t, "a", res.Text)
			}
			if tc.stop == "" {
				tc.stop = provider.StopClean
			}
			require.Equal(t, tc.stop, res.Stop)
		})
	}
}

// Errors of other servers with Anthropic's interface, and of gateways before it.
func TestOdd_Errors(t *testing.T) {
	t.Parallel()
	status := func(code int, doc string) double.Reply {
		return double.Reply{Status: code, ContentType: "application/json", Raw: doc}
	}
	said := func(message string) double.Reply {
		return status(400, `{"type":"error","error":{"type":"invalid_request_error","message":"`+message+`"}}`)
	}
	event := func(doc string) double.Reply {
		return raw(eventStream, stream(evStart).Raw+"event: error\ndata: "+doc+"\n\n")
	}
	for name, tc := range map[string]struct {
		double.Reply
		code      string
		retryable bool
	}{
		"vLLM, too long":        {said("This model's maximum context length is 4096 tokens."), provider.CodeContentTooLong, false},
		"llama.cpp, too long":   {status(400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`), provider.CodeContentTooLong, false},
		"llama.cpp, streamed":   {event(`{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`), provider.CodeContentTooLong, false},
		"Anthropic, too long":   {said("input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000"), provider.CodeContentTooLong, false},
		"LM Studio, too long":   {said("The number of tokens to keep from the initial prompt is greater than the context length."), provider.CodeContentTooLong, false},
		"Databricks, too long":  {status(400, `{"error_code":"BAD_REQUEST","message":"{\"message\":\"prompt is too long: 903884 tokens > 200000 maximum\"}"}`), provider.CodeContentTooLong, false},
		"LiteLLM, a budget":     {status(400, `{"error":{"message":"Budget has been exceeded! Current cost: 20.1","type":"budget_exceeded","param":null,"code":"400"}}`), provider.CodeQuota, false},
		"LiteLLM, a limit":      {status(429, `{"error":{"message":"litellm.RateLimitError: AnthropicException","type":"throttling_error","code":"429"}}`), provider.CodeQuota, true},
		"a limit, with prices":  {status(429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit. See https://claude.com/pricing/billing"}}`), provider.CodeQuota, true},
		"Ollama, no model":      {status(404, `{"type":"error","error":{"type":"not_found_error","message":"model 'x' not found"}}`), provider.CodeModelNotSupported, false},
		"a schema, vLLM":        {said("Grammar error: Unimplemented keys: [\\\"format\\\"]"), provider.CodeSchemaInvalid, false},
		"a schema, a gateway":   {said("output_config.format: Extra inputs are not permitted"), provider.CodeSchemaInvalid, false},
		"a schema as a tool":    {said("tools.0.custom.strict: Extra inputs are not permitted"), provider.CodeSchemaInvalid, false},
		"credit":                {said("Your credit balance is too low to access the Anthropic API."), provider.CodeQuota, false},
		"credit, in the stream": {event(`{"type":"error","error":{"message":"insufficient balance"}}`), provider.CodeQuota, false},
		"busy, in the stream":   {event(`{"type":"error","error":{"message":"The server is busy, try again later"}}`), provider.CodeUnavailable, true},
		"api_error":             {event(`{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`), provider.CodeUnavailable, true},
		"a timeout":             {event(`{"type":"error","error":{"type":"timeout_error","message":"Request timed out"}}`), provider.CodeUnavailable, true},
		"a page of Cloudflare":  {double.Reply{Status: 529, ContentType: "text/html", Raw: "<html></html>"}, provider.CodeUnavailable, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRig(t, nil).fail(t, format.ask(), tc.Reply)
			require.Equal(t, tc.code, e.Code, "%s %s", e.Message, e.Quote)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
		})
	}
}
