package compat_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
)

// Members whose types or places are not the vendor's, as servers and gateways were reported to send them.

// Answers: the text is what the server means, whatever else an event has.
func TestOdd_Answers(t *testing.T) {
	t.Parallel()
	first, second := delta(firstHalf, ""), delta(secondHalf, "")
	halves, whole := first+second, delta(wholeText, `,"finish_reason":"stop"`)
	event := func(doc string) string { return "data: " + doc + "\n\n" }
	call := func(calls string) string {
		return chunkOf(`{"index":0,"delta":{"tool_calls":` + calls + `},"finish_reason":null}`)
	}
	function := `{"name":"answer","arguments":` + wholeText + `}`
	message := func(m string) string {
		return `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":` + m + `,"finish_reason":"stop"}]}`
	}
	doc := func(body string) served { return served{label: "application/json", body: body} }
	stream := func(body string) served { return served{body: body} }
	for name, tc := range map[string]struct {
		served
		via  provider.SchemaVia
		text string // wanted, unless set
		stop provider.StopClass
	}{
		// Members of another type than the vendor's.
		"tool_calls as an object":       {served: stream(strings.ReplaceAll(halves, `}}`, `,"tool_calls":{}}}`) + stopChunk)},
		"tool_calls as text":            {served: stream(strings.ReplaceAll(halves, `}}`, `,"tool_calls":""}}`) + stopChunk)},
		"tool_calls false":              {served: stream(strings.ReplaceAll(halves, `}}`, `,"tool_calls":false}}`) + stopChunk)},
		"an empty list of calls":        {served: stream(strings.ReplaceAll(halves, `}}`, `,"tool_calls":[]}}`) + stopChunk)},
		"function_call as text":         {served: stream(strings.ReplaceAll(halves, `}}`, `,"function_call":""}}`) + stopChunk)},
		"function_call empty":           {served: stream(strings.ReplaceAll(halves, `}}`, `,"function_call":{}}}`) + stopChunk)},
		"a null call in the list":       {served: stream(call(`[null,{"index":0,"id":"c","function":`+function+`}]`) + stopChunk), via: provider.ViaTool},
		"one call without a list":       {served: stream(call(`{"index":0,"id":"c","function":`+function+`}`) + stopChunk), via: provider.ViaTool},
		"calls in a map":                {served: stream(call(`{"0":{"id":"c","function":`+function+`}}`) + stopChunk), via: provider.ViaTool},
		"a call without its function":   {served: stream(call(`[{"index":0,"id":"c","name":"answer","arguments":`+wholeText+`}]`) + stopChunk), via: provider.ViaTool},
		"a function as text":            {served: stream(call(`[{"index":0,"id":"c","type":"function","function":""}]`) + call(`[{"index":0,"function":`+function+`}]`) + stopChunk), via: provider.ViaTool},
		"arguments as a list of one":    {served: stream(call(`[{"index":0,"id":"c","function":{"name":"answer","arguments":[{"title":"Call 😀","urgent":true}]}}]`) + stopChunk), via: provider.ViaTool, text: `[{"title":"Call 😀","urgent":true}]`},
		"delta as text":                 {served: stream(chunkOf(`{"index":0,"delta":`+firstHalf+`}`) + chunkOf(`{"index":0,"delta":`+secondHalf+`}`) + stopChunk)},
		"delta as an empty list":        {served: stream(chunkOf(`{"index":0,"delta":[]}`) + halves + stopChunk)},
		"delta false":                   {served: stream(chunkOf(`{"index":0,"delta":false}`) + halves + stopChunk)},
		"message as text":               {served: doc(message(wholeText))},
		"choices as an object":          {served: stream(`data: {"choices":{"index":0,"delta":{"content":` + wholeText + `},"finish_reason":"stop"}}` + "\n\n")},
		"choices in a map":              {served: stream(`data: {"choices":{"0":{"index":0,"delta":{"content":` + wholeText + `},"finish_reason":"stop"}}}` + "\n\n")},
		"a null choice":                 {served: stream(`data: {"choices":[null]}` + "\n\n" + whole)},
		"choices as text":               {served: stream(`data: {"choices":""}` + "\n\n" + whole)},
		"usage as text":                 {served: stream(`data: {"choices":[],"usage":""}` + "\n\n" + whole)},
		"usage as a list":               {served: stream(halves + stopChunk + `data: {"choices":[],"usage":[]}` + "\n\n")},
		"model as an object":            {served: stream(strings.ReplaceAll(whole, `{"choices"`, `{"model":{"id":"x"},"choices"`))},
		"x_groq as text":                {served: stream(strings.ReplaceAll(whole, `{"choices"`, `{"x_groq":"","choices"`))},
		"x_groq null":                   {served: stream(strings.ReplaceAll(whole, `{"choices"`, `{"x_groq":null,"choices"`))},
		"error as an empty object":      {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"error":{},"choices"`))},
		"error as empty text":           {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"error":"","choices"`))},
		"error false":                   {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"error":false,"choices"`))},
		"error of code 0":               {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"error":{"code":0,"message":""},"choices"`))},
		"error null in the choice":      {served: stream(strings.ReplaceAll(halves+stopChunk, `{"index"`, `{"error":null,"index"`))},
		"an index of text":              {served: stream(strings.ReplaceAll(halves+stopChunk, `"index":0`, `"index":"0"`))},
		"an index null":                 {served: stream(strings.ReplaceAll(halves+stopChunk, `"index":0`, `"index":null`))},
		"audio as text":                 {served: stream(strings.ReplaceAll(halves, `}}`, `,"audio":""}}`) + stopChunk)},
		"audio null, annotations":       {served: stream(strings.ReplaceAll(halves, `}}`, `,"audio":null,"annotations":[]}}`) + stopChunk)},
		"refusal as empty text":         {served: stream(strings.ReplaceAll(halves, `}}`, `,"refusal":""}}`) + stopChunk)},
		"refusal false":                 {served: stream(strings.ReplaceAll(halves, `}}`, `,"refusal":false}}`) + stopChunk)},
		"reasoning as a list":           {served: stream(strings.ReplaceAll(halves, `}}`, `,"reasoning":["hm"]}}`) + stopChunk)},
		"reasoning_details as text":     {served: stream(strings.ReplaceAll(halves, `}}`, `,"reasoning_details":"hm"}}`) + stopChunk)},
		"reasoning_details with null":   {served: stream(strings.ReplaceAll(halves, `}}`, `,"reasoning_details":[null]}}`) + stopChunk)},
		"finish_reason as a list":       {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finish_reason":["stop"]}`))},
		"finish_reason as an object":    {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finish_reason":{"type":"stop"}}`))},
		"finish_reason in the delta":    {served: stream(halves + chunkOf(`{"index":0,"delta":{"finish_reason":"stop"}}`) + doneEvent)},
		"finishReason":                  {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finishReason":"stop"}`))},
		"finish_reason at the top":      {served: stream(halves + event(`{"choices":[],"finish_reason":"stop"}`))},
		"stop in capitals":              {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"STOP"}`))},
		"FINISH_REASON_STOP":            {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"FINISH_REASON_STOP"}`))},
		"FinishReason.stop":             {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"FinishReason.STOP"}`))},
		"max-tokens":                    {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"max-tokens"}`)), stop: provider.StopTruncated},
		"maxTokens":                     {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"maxTokens"}`)), stop: provider.StopTruncated},
		"model_context_window_exceeded": {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"model_context_window_exceeded"}`)), stop: provider.StopTruncated},
		"context_length_exceeded":       {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"context_length_exceeded"}`)), stop: provider.StopTruncated},
		"refusal as a reason":           {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"refusal"}`)), stop: provider.StopRefused},
		"content-filter":                {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"content-filter"}`)), stop: provider.StopRefused},
		"contentFilter":                 {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finish_reason":"contentFilter"}`)), stop: provider.StopRefused},
		"tool_call in the singular":     {served: stream(call(`[{"index":0,"id":"c","function":`+function+`}]`) + chunkOf(`{"index":0,"delta":{},"finish_reason":"tool_call"}`)), via: provider.ViaTool},
		"tool_use":                      {served: stream(call(`[{"index":0,"id":"c","function":`+function+`}]`) + chunkOf(`{"index":0,"delta":{},"finish_reason":"tool_use"}`)), via: provider.ViaTool},
		"tool-calls":                    {served: stream(call(`[{"index":0,"id":"c","function":`+function+`}]`) + chunkOf(`{"index":0,"delta":{},"finish_reason":"tool-calls"}`)), via: provider.ViaTool},
		"tool_calls, end by [DONE]":     {served: stream(call(`[{"index":0,"id":"c","function":`+function+`}]`) + doneEvent), via: provider.ViaTool},

		// Wrappings of gateways.
		"a wrapped document":        {served: doc(`{"result":` + message(`{"content":`+wholeText+`}`) + `,"success":true,"errors":[],"messages":[]}`)},
		"a document in data":        {served: doc(`{"code":0,"msg":"ok","data":` + message(`{"content":`+wholeText+`}`) + `}`)},
		"a stream in data":          {served: stream(event(`{"code":0,"data":{"choices":[{"index":0,"delta":{"content":` + wholeText + `},"finish_reason":"stop"}]}}`))},
		"MiniMax, all is well":      {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"base_resp":{"status_code":0,"status_msg":""},"choices"`))},
		"errors that are empty":     {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"errors":[],"choices"`))},
		"an event of a heartbeat":   {served: stream(first + event(`{"type":"heartbeat"}`) + event(`{}`) + event(`null`) + event(`[]`) + event(`""`) + second + stopChunk + doneEvent)},
		"a code of success":         {served: stream(event(`{"code":200,"message":"success"}`) + whole)},
		"words of a heartbeat":      {served: stream(first + event(`keep-alive`) + second + stopChunk)},
		"a ping":                    {served: stream(first + event(`ping`) + second + stopChunk)},
		"a named ping":              {served: stream(first + "event: ping\ndata: ping\n\n" + second + stopChunk)},
		"data twice":                {served: stream(strings.ReplaceAll(halves+stopChunk+doneEvent, "data: ", "data: data: "))},
		"lines without data":        {served: served{label: "text/plain", body: strings.ReplaceAll(halves+stopChunk, "data: ", "")}},
		"done without brackets":     {served: stream(halves + "data: DONE\n\n")},
		"done in lower case":        {served: stream(halves + "data: [done]\n\n")},
		"an end in quotes":          {served: stream(halves + `data: "[DONE]"` + "\n\n")},
		"an end of an object":       {served: stream(halves + `data: {"done":true}` + "\n\n" + doneEvent)},
		"one line feed each":        {served: stream(strings.ReplaceAll(halves+stopChunk+doneEvent, "\n\n", "\n"))},
		"a line feed, no done":      {served: stream(strings.ReplaceAll(halves+stopChunk, "\n\n", "\n"))},
		"event and data on a line":  {served: stream(strings.ReplaceAll(halves+stopChunk, "data: ", "id: 1\nevent: chunk\nretry: 3000\ndata: "))},
		"a byte order mark in each": {served: stream(strings.ReplaceAll(halves+stopChunk, "data: ", "\ufeffdata: "))},
		"data in capitals":          {served: stream(strings.ReplaceAll(halves+stopChunk, "data: ", "Data: "))},
		"space before data":         {served: stream(strings.ReplaceAll(halves+stopChunk, "data: ", " data: "))},

		// Content in other forms.
		"Databricks, a summary":        {served: stream(delta(`[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm {"}]}]`, "") + delta(`[{"type":"text","text":`+wholeText+`}]`, "") + stopChunk)},
		"Databricks, both at once":     {served: doc(message(`{"role":"assistant","content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm {"}]},{"type":"text","text":` + wholeText + `}]}`))},
		"a signature with the text":    {served: stream(delta(`[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":`+wholeText+`}]`, "") + stopChunk)},
		"tool_use as a part":           {served: stream(delta(`[{"type":"text","text":`+wholeText+`},{"type":"tool_use","id":"t","name":"x","input":{}}]`, "") + stopChunk)},
		"an image as a part":           {served: stream(delta(`[{"type":"text","text":`+wholeText+`},{"type":"image","image":{"url":"x"}}]`, "") + stopChunk)},
		"an unknown part":              {served: stream(delta(`[{"type":"text","text":`+wholeText+`},{"type":"search_result","id":3}]`, "") + stopChunk)},
		"a null part":                  {served: stream(delta(`[null,{"type":"text","text":`+wholeText+`}]`, "") + stopChunk)},
		"a string among parts":         {served: stream(delta(`[`+firstHalf+`,{"type":"text","text":`+secondHalf+`}]`, "") + stopChunk)},
		"images next to the text":      {served: stream(strings.ReplaceAll(halves, `}}`, `,"images":[{"type":"image_url"}]}}`) + stopChunk)},
		"text of the older interface":  {served: stream(event(`{"object":"text_completion","choices":[{"index":0,"text":`+firstHalf+`,"finish_reason":null}]}`) + event(`{"choices":[{"index":0,"text":`+secondHalf+`,"finish_reason":"stop"}]}`))},
		"content null, text":           {served: stream(chunkOf(`{"index":0,"delta":{"content":null},"text":`+wholeText+`}`) + stopChunk)},
		"a delta and a null message":   {served: stream(strings.ReplaceAll(halves+stopChunk, `"delta"`, `"message":null,"delta"`))},
		"an empty delta and a message": {served: stream(chunkOf(`{"index":0,"delta":{},"message":{"content":` + wholeText + `},"finish_reason":"stop"}`))},
		"a null delta and a message":   {served: stream(chunkOf(`{"index":0,"delta":null,"message":{"content":` + wholeText + `},"finish_reason":"stop"}`))},
		"an answer after [DONE]":       {served: stream(whole + doneEvent + delta(`"x"`, "") + doneEvent)},
		"a second role":                {served: stream(chunkOf(`{"index":0,"delta":{"role":"assistant","content":""}}`) + halves + chunkOf(`{"index":0,"delta":{"role":"","content":""},"finish_reason":"stop"}`))},
		"parsed next to the content":   {served: doc(message(`{"content":` + wholeText + `,"parsed":{"title":"Call 😀","urgent":true}}`))},
		"parsed instead of content":    {served: doc(message(`{"content":null,"parsed":{"title":"Call 😀","urgent":true}}`))},
		"a call in both forms":         {served: stream(chunkOf(`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":`+function+`}],"function_call":`+function+`}}`) + stopChunk), via: provider.ViaTool},
		"the call repeated at the end": {served: stream(call(`[{"index":0,"id":"c","function":`+function+`}]`) + chunkOf(`{"index":0,"delta":{},"message":{"tool_calls":[{"id":"c","function":`+function+`}]},"finish_reason":"tool_calls"}`)), via: provider.ViaTool},
		"ids that change":              {served: stream(call(`[{"index":0,"id":"c1","function":{"name":"answer","arguments":`+firstHalf+`}}]`) + call(`[{"index":0,"id":"c2","function":{"arguments":`+secondHalf+`}}]`) + stopChunk), via: provider.ViaTool},
		"ids null, then empty":         {served: stream(call(`[{"index":0,"id":null,"function":{"name":"answer","arguments":`+firstHalf+`}}]`) + call(`[{"index":0,"id":"","function":{"name":null,"arguments":`+secondHalf+`}}]`) + stopChunk), via: provider.ViaTool},
		"no index in any piece":        {served: stream(call(`[{"id":"c","function":{"name":"answer","arguments":`+firstHalf+`}}]`) + call(`[{"function":{"arguments":`+secondHalf+`}}]`) + stopChunk), via: provider.ViaTool},
		"the name in pieces":           {served: stream(call(`[{"index":0,"id":"c","function":{"name":"ans","arguments":""}}]`) + call(`[{"index":0,"function":{"name":"wer","arguments":`+wholeText+`}}]`) + stopChunk), via: provider.ViaTool},
		"a name with a namespace":      {served: stream(call(`[{"index":0,"id":"c","function":{"name":"functions.answer","arguments":`+wholeText+`}}]`) + stopChunk), via: provider.ViaTool},
		"a name with space":            {served: stream(call(`[{"index":0,"id":"c","function":{"name":" answer ","arguments":`+wholeText+`}}]`) + stopChunk), via: provider.ViaTool},
		"arguments said to be text":    {served: stream(call(`[{"index":0,"id":"c","function":{"name":"answer","arguments":"\"{\\\"title\\\":\\\"Call 😀\\\",\\\"urgent\\\":true}\""}}]`) + stopChunk), via: provider.ViaTool, text: `"{\"title\":\"Call 😀\",\"urgent\":true}"`},
		"two calls of the tool":        {served: stream(call(`[{"index":0,"id":"c","function":`+function+`},{"index":1,"id":"d","function":`+function+`}]`) + stopChunk), via: provider.ViaTool, stop: provider.StopUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := callServed(t, tc.served, tc.via)
			require.NoError(t, err)
			switch tc.text {
			case "":
				require.JSONEq(t, wanted, res.Text)
			case "-":
				require.Empty(t, res.Text)
			default:
				require.Equal(t, tc.text, res.Text)
			}
			if tc.stop == "" {
				tc.stop = provider.StopClean
			}
			require.Equal(t, tc.stop, res.Stop)
		})
	}
}

// Usage: counts are found wherever they are, and a placeholder after them changes nothing.
func TestOdd_Usage(t *testing.T) {
	t.Parallel()
	whole := delta(`"a"`, `,"finish_reason":"stop"`)
	with := func(usage string) string { return `data: {"choices":[],"usage":` + usage + "}\n\n" }
	plain := provider.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15, Known: true}
	cached := func(read, written int) provider.Usage {
		u := plain
		u.CacheReadTokens, u.CacheWriteTokens = read, written
		return u
	}
	const counts = `"prompt_tokens":10,"completion_tokens":5,"total_tokens":15`
	for name, tc := range map[string]struct {
		body string
		want provider.Usage
	}{
		"vLLM, in two stages":        {delta(`"a"`, `,"finish_reason":"stop"`) + with(`{`+counts+`}`) + with(`{`+counts+`,"prompt_tokens_details":{"cached_tokens":4}}`), cached(4, 0)},
		"details first":              {whole + with(`{`+counts+`,"prompt_tokens_details":{"cached_tokens":4}}`) + with(`{`+counts+`}`), cached(4, 0)},
		"zeros after the counts":     {whole + with(`{`+counts+`}`) + with(`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`), plain},
		"null after the counts":      {whole + with(`{`+counts+`}`) + with(`null`), plain},
		"empty after the counts":     {whole + with(`{`+counts+`}`) + with(`{}`), plain},
		"growing":                    {with(`{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}`) + whole + with(`{`+counts+`}`), plain},
		"the output alone, later":    {with(`{"prompt_tokens":10}`) + whole + with(`{"completion_tokens":5,"total_tokens":15}`), plain},
		"Moonshot":                   {whole + with(`{`+counts+`,"cached_tokens":4}`), cached(4, 0)},
		"names of Anthropic":         {whole + with(`{`+counts+`,"cache_read_input_tokens":4,"cache_creation_input_tokens":3}`), cached(4, 3)},
		"LiteLLM":                    {whole + with(`{`+counts+`,"prompt_tokens_details":{"cached_tokens":4,"cache_creation_tokens":3}}`), cached(4, 3)},
		"camel case":                 {whole + with(`{"promptTokens":10,"completionTokens":5,"totalTokens":15}`), plain},
		"in the delta's choice":      {chunkOf(`{"index":0,"delta":{"content":"a"},"finish_reason":"stop","usage":{` + counts + `}}`), plain},
		"in a list":                  {whole + with(`[{`+counts+`}]`), plain},
		"fractions":                  {whole + with(`{"prompt_tokens":10.0,"completion_tokens":5.0,"total_tokens":15.0}`), plain},
		"of llama.cpp's timings":     {delta(`"a"`, "") + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"timings":{"prompt_n":10,"predicted_n":5}}` + "\n\n", provider.Usage{InputTokens: 10, OutputTokens: 5, Known: true}},
		"timings after the cache":    {delta(`"a"`, "") + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"timings":{"cache_n":4,"prompt_n":6,"predicted_n":5}}` + "\n\n", provider.Usage{InputTokens: 10, OutputTokens: 5, CacheReadTokens: 4, Known: true}},
		"usage and timings":          {delta(`"a"`, "") + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{` + counts + `},"timings":{"prompt_n":1,"predicted_n":5}}` + "\n\n", plain},
		"in an event after [DONE]":   {whole + doneEvent + with(`{`+counts+`}`), plain},
		"with the reason, no choice": {delta(`"a"`, "") + `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":"stop"}],"usage":{` + counts + `}}` + "\n\n", plain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := served{body: tc.body}.call(t, compat.Config{}, ask(), nil)
			require.NoError(t, err)
			require.Equal(t, tc.want, res.Usage)
		})
	}
}

// Errors: what a server says decides, and a link to its prices says nothing.
func TestOdd_Errors(t *testing.T) {
	t.Parallel()
	status := func(code int, doc string) served { return served{status: code, label: "application/json", body: doc} }
	said := func(code int, message string) served {
		return status(code, `{"error":{"message":"`+message+`","type":"invalid_request_error","param":null,"code":null}}`)
	}
	stream := func(doc string) served { return served{body: delta(`"{"`, "") + "data: " + doc + "\n\n"} }
	doc := func(body string) served { return served{label: "application/json", body: body} }
	type failure struct {
		served
		code                string
		retryable, capacity bool
		after               time.Duration
		says                string
	}
	limited := func(s served) failure {
		return failure{served: s, code: provider.CodeQuota, retryable: true, capacity: true}
	}
	tooLong := func(s served) failure { return failure{served: s, code: provider.CodeContentTooLong} }
	noSchema := func(s served) failure { return failure{served: s, code: provider.CodeSchemaInvalid} }
	spent := func(s served) failure { return failure{served: s, code: provider.CodeQuota} }
	broken := func(s served) failure { return failure{served: s, code: provider.CodeUnavailable, retryable: true} }
	busy := func(s served) failure {
		return failure{served: s, code: provider.CodeUnavailable, retryable: true, capacity: true}
	}
	after := func(d time.Duration, f failure) failure { f.after = d; return f }
	quoted := func(says string, f failure) failure { f.says = says; return f }
	noKey := func(s served) failure { return failure{served: s, code: provider.CodeCredentialRequired} }
	noModel := func(s served) failure { return failure{served: s, code: provider.CodeModelNotSupported} }
	invalid := func(s served) failure { return failure{served: s, code: provider.CodeInvalidRequest} }
	const google = `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequests%s"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37s"}]}}`
	for name, tc := range map[string]failure{
		// Rate limits.
		"Groq, with its prices":          after(2500*time.Millisecond, limited(status(429, "{\"error\":{\"message\":\"Rate limit reached for model `x` in organization `o` on tokens per minute (TPM): Limit 6000, Used 5000, Requested 2000. Please try again in 2.5s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}"))),
		"OpenAI, with its payments":      after(20*time.Second, limited(status(429, `{"error":{"message":"Rate limit reached for x on requests per min. Limit: 3 / min. Please try again in 20s. Please add a payment method to your account to increase your rate limit. Visit https://platform.openai.com/account/billing to add a payment method.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`))),
		"OpenAI, used up":                spent(status(429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`)),
		"OpenAI, larger than the minute": tooLong(status(429, `{"error":{"message":"Request too large for x on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`)),
		"Gemini, of the minute":          after(37*time.Second, limited(status(429, "["+strings.Replace(google, "%s", "PerMinutePerProjectPerModel-FreeTier", 1)+"]"))),
		"Gemini, of the day":             spent(status(429, strings.Replace(google, "%s", "PerDayPerProjectPerModel-FreeTier", 1))),
		"Gemini, in the stream":          after(37*time.Second, limited(stream(strings.Replace(google, "%s", "PerMinute", 1)))),
		"MiniMax, 200":                   limited(doc(`{"id":"x","choices":null,"base_resp":{"status_code":1002,"status_msg":"rate limit exceeded(RPM)"}}`)),
		"MiniMax, in the stream":         limited(stream(`{"choices":null,"base_resp":{"status_code":1002,"status_msg":"rate limit exceeded(RPM)"}}`)),
		"MiniMax, no balance":            spent(doc(`{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`)),
		"MiniMax, too long":              tooLong(doc(`{"base_resp":{"status_code":2013,"status_msg":"invalid params, context window exceeds limit (2013)"}}`)),
		"Azure, in words":                after(22*time.Second, limited(said(429, "Requests to the API have exceeded the call rate limit. Please retry after 22 seconds."))),
		"LiteLLM, in words":              after(5*time.Second, limited(said(429, "No deployments available for selected model, Try again in 5 seconds."))),
		"minutes in words":               after(6*time.Minute, limited(said(429, "Rate limit reached. Please try again in 6m0s."))),
		"a minute in words":              after(time.Minute, limited(said(429, "Slow down and try again in 1 minute"))),
		"milliseconds in words":          after(842*time.Millisecond, limited(said(429, "Please try again in 842ms."))),
		"no time in words":               limited(said(429, "Please try again in a while, after 9 requests.")),
		"AWS, throttling":                limited(status(429, `{"__type":"com.amazon.coral.availability#ThrottlingException","message":"Too many requests, please wait before trying again."}`)),
		"AWS, throttling of 400":         limited(status(400, `{"__type":"ThrottlingException","message":"Rate exceeded"}`)),
		"Databricks, a limit":            limited(status(429, `{"error_code":"REQUEST_LIMIT_EXCEEDED","message":"REQUEST_LIMIT_EXCEEDED: Exceeded workspace input tokens per minute rate limit"}`)),
		"OpenRouter, waits in metadata":  limited(status(429, `{"error":{"code":429,"message":"Provider returned error","metadata":{"raw":"x is temporarily rate-limited upstream. Please retry shortly.","provider_name":"p"}}}`)),
		"HTTP 200, a limit, streamed":    limited(stream(`{"error":{"message":"Rate limit exceeded","type":"rate_limit_error"}}`)),
		"a number of 429 in the stream":  limited(stream(`{"error":{"code":"429","message":"slow"}}`)),
		"a status in the stream":         limited(stream(`{"error":{"status":429,"message":"slow"}}`)),
		"a status next to the error":     limited(stream(`{"status_code":429,"error":{"message":"slow"}}`)),

		// Prompts that are too long.
		"xAI":              tooLong(said(400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.")),
		"Anthropic behind": tooLong(said(400, "input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000, decrease input length or `max_tokens` and try again")),
		"Moonshot":         tooLong(said(400, "Invalid request: Your request exceeded model token limit: 8192")),
		"Zhipu":            tooLong(status(400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`)),
		"SGLang":           tooLong(said(400, "Input length (9000 tokens) exceeds the maximum allowed length (8192 tokens). Use a shorter input or enable --allow-auto-truncate.")),
		"vLLM":             tooLong(said(400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096.")),
		"TensorRT-LLM":     tooLong(said(400, "Prompt length (5000) exceeds maximum input length (4096).")),
		"NIM":              tooLong(said(400, "Input length 5000 exceeds max_input_len 4096")),
		"Gemini":           tooLong(status(400, `[{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]`)),
		"Vertex":           tooLong(said(400, "Unable to submit request because the input token count is 33000 but model only supports up to 32768.")),
		"GitHub Models":    tooLong(status(413, `{"error":{"code":"tokens_limit_reached","message":"Request body too large for x model. Max size: 8000 tokens."}}`)),
		"Bedrock behind":   tooLong(said(400, "Mantle streaming error: ErrorEvent { error: APIError { code: Some(400), message: \\\"This model's maximum context length is 32768 tokens.\\\" } }")),
		"Databricks":       tooLong(status(400, `{"error_code":"BAD_REQUEST","message":"{\"message\":\"Input is too long for requested model.\"}"}`)),
		"Cohere":           tooLong(status(400, `{"message":"too many tokens: size limit exceeded by 5000 tokens. Try using shorter or fewer inputs"}`)),
		"a page of nginx":  tooLong(served{status: 413, label: "text/html", body: "<html><title>413 Request Entity Too Large</title></html>"}),

		// Schemas.
		"Gemini, a member":        noSchema(status(400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"additionalProperties\" at 'generation_config.response_schema': Cannot find field.","status":"INVALID_ARGUMENT"}}]`)),
		"Gemini, states":          noSchema(said(400, "The specified schema produces a constraint that has too many states for serving.")),
		"Anthropic, a format":     noSchema(said(400, "output_format: Extra inputs are not permitted")),
		"Databricks, strict":      noSchema(status(400, `{"error_code":"BAD_REQUEST","message":"Bad request: json: unknown field \"strict\"\n"}`)),
		"vLLM, outputs":           noSchema(said(400, "structured_outputs: the engine was started without a backend")),
		"vLLM, keys":              noSchema(said(400, "Grammar error: Unimplemented keys: [\\\"format\\\"]")),
		"OpenAI, a schema":        noSchema(said(400, "Invalid schema for function 'answer': In context=('properties', 'x'), 'oneOf' is not permitted.")),
		"LM Studio, a type":       noSchema(status(400, `{"error":"'response_format.type' must be 'json_schema' or 'text'"}`)),
		"LiteLLM, a schema":       noSchema(said(500, "litellm.APIConnectionError: Failed to compile json_schema")),
		"llama.cpp, both":         noSchema(said(400, "Cannot use custom grammar constraints with tools.")),
		"LM Studio, a stream":     noSchema(stream(`{"error":{"message":"Failed to parse JSON schema: unrecognized schema","code":400}}`)),
		"llama.cpp, a stream":     noSchema(stream(`{"error":{"code":400,"message":"failed to parse grammar","type":"invalid_request_error"}}`)),
		"Azure, an older version": noSchema(said(400, "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later")),

		// Other failures.
		"Cloudflare, 200":         busy(doc(`{"result":null,"success":false,"errors":[{"code":7009,"message":"Upstream service unavailable"}],"messages":[]}`)),
		"Cloudflare, no route":    noModel(status(404, `{"result":null,"success":false,"errors":[{"code":7003,"message":"Could not route to /x"}],"messages":[]}`)),
		"Cloudflare, the neurons": spent(status(429, `{"errors":[{"message":"AiError: AiError: you have used up your daily free allocation of 10,000 neurons, please upgrade to Cloudflare's Workers Paid plan","code":4006}],"success":false}`)),
		"Databricks, no endpoint": noModel(status(404, `{"error_code":"RESOURCE_DOES_NOT_EXIST","message":"The given endpoint does not exist, please retry after checking the specified model and version deployment exists."}`)),
		"an inner document":       quoted("Extra inputs", invalid(status(400, `{"error_code":"BAD_REQUEST","message":"{\"message\":\"messages.1: Extra inputs are not permitted\"}"}`))),
		"a title":                 quoted("odd things", invalid(status(400, `{"title":"Bad Request","detail":"odd things"}`))),
		"a reason":                quoted("odd things", invalid(status(400, `{"reason":"odd things"}`))),
		"errors as texts":         quoted("odd things", invalid(status(400, `{"errors":["odd things"]}`))),
		"errors in a map":         quoted("odd things", invalid(status(400, `{"errors":{"temperature":["odd things"]}}`))),
		"an error description":    quoted("odd things", invalid(status(400, `{"error":"invalid_request","error_description":"odd things"}`))),
		"a key, in German":        noKey(status(401, `{"fehler":"kein Schlüssel"}`)),
		"a key, in the stream":    noKey(stream(`{"error":{"code":401,"message":"User not found."}}`)),
		"an account, streamed":    spent(stream(`{"error":{"code":402,"message":"pay"}}`)),
		"a model, in the stream":  noModel(stream(`{"error":{"code":404,"message":"No endpoints found for x."}}`)),
		"a choice's rate limit":   limited(stream(`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":429,"message":"slow"}}]}`)),
		"a choice's error, text":  broken(stream(`{"choices":[{"index":0,"delta":{},"finish_reason":"error","error":"boom"}]}`)),
		"detail, in the stream":   broken(stream(`{"detail":"Internal Server Error"}`)),
		"queue is full":           busy(status(503, `{"error":"Queue is full"}`)),
		"a cold start":            busy(status(503, `{"error":{"message":"The model is warming up, please try again later"}}`)),
		"loading, 404":            busy(status(404, `{"error":{"message":"Model is loading","code":"model_loading"}}`)),
		"an engine that sleeps":   busy(status(503, `{"message":"engine is sleeping"}`)),
		"Cloudflare, 520":         broken(served{status: 520, label: "text/html", body: "<html>Web server returns an unknown error</html>"}),
		"Cloudflare, 522":         broken(served{status: 522, label: "text/plain", body: "error code: 522"}),
		"a code of 529":           busy(status(529, `{"error":{"type":"overloaded_error","message":"Overloaded"}}`)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := callServed(t, tc.served, provider.ViaFormat)
			e, ok := provider.As(err)
			require.True(t, ok, err)
			require.Equal(t, tc.code, e.Code, "%s %s", e.Message, e.Quote)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.capacity, e.Capacity, e.Message)
			require.Equal(t, tc.after, e.RetryAfter)
			require.Contains(t, e.Quote, tc.says)
		})
	}
}
