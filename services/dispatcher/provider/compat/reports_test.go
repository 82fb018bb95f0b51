package compat_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
)

// Answers, usage and errors that broke clients in public reports, in forms that no other test of this package has.

func zipped(t *testing.T, body string, keep int) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(body))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()[:b.Len()*keep/100]
}

func TestReports_Answers(t *testing.T) {
	t.Parallel()
	halves := delta(firstHalf, "") + delta(secondHalf, "")
	whole := delta(wholeText, `,"finish_reason":"stop"`)
	event := func(doc string) string { return "data: " + doc + "\n\n" }
	stream := func(body string) served { return served{body: body} }
	calls := func(list string) string { return chunkOf(`{"index":0,"delta":{"tool_calls":[` + list + `]}}`) }
	piece := func(arguments, more string) string {
		return calls(`{` + more + `"function":{"arguments":` + arguments + `}}`)
	}
	begin := func(arguments string) string {
		return calls(`{"index":0,"id":"c","type":"function","function":{"name":"answer","arguments":` + arguments + `}}`)
	}
	tool := provider.ViaTool
	for name, tc := range map[string]struct {
		served
		via  provider.SchemaVia
		text string // wanted, unless set
		stop provider.StopClass
	}{
		// Numbers that JSON does not have.
		"NaN in log probabilities":      {served: stream(delta(wholeText, `,"logprobs":{"content":[{"token":"{","logprob":NaN}]}`) + stopChunk)},
		"minus infinity in them":        {served: stream(delta(wholeText, `,"logprobs":{"content":[{"token":"{","logprob":-Infinity,"top_logprobs":[{"logprob":-Infinity}]}]}`) + stopChunk)},
		"infinite speed":                {served: stream(halves + event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"timings":{"predicted_per_second":Infinity}}`) + doneEvent)},
		"NaN next to the word":          {served: stream(delta(`"NaN, Infinity: \" -Infinity"`, `,"logprobs":NaN,"finish_reason":"stop"`)), text: `NaN, Infinity: " -Infinity`},
		"NaN in a document":             {served: served{label: "application/json", body: `{"choices":[{"index":0,"message":{"content":` + wholeText + `},"finish_reason":"stop","logprobs":{"content":[NaN,-Infinity,Infinity]}}]}`}},
		"NaN in a line of documents":    {served: served{label: "application/x-ndjson", body: strings.ReplaceAll(strings.ReplaceAll(halves+stopChunk, "data: ", ""), `}]}`, `}],"eval":NaN}`)}},
		"NaN at the end of an answer":   {served: stream(halves + event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"score":NaN}`))},
		"NaN in arguments as an object": {served: stream(begin(`{"amount":NaN,"most":[Infinity,-Infinity]}`) + stopChunk), via: tool, text: `{"amount":NaN,"most":[Infinity,-Infinity]}`},
		"a number beyond any":           {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"created":1e999,"choices"`))},
		"an id of half a character":     {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"id":"\ud800","choices"`))},
		"an index of many digits":       {served: stream(strings.ReplaceAll(halves+stopChunk, `"index":0`, `"index":99999999999999999999999`))},
		"members twice":                 {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"choices":[],"choices"`))},
		"the role twice":                {served: stream(strings.ReplaceAll(halves, `{"content"`, `{"role":"assistant","role":"assistant","content"`) + stopChunk)},
		"a finish reason twice":         {served: stream(halves + chunkOf(`{"index":0,"finish_reason":null,"delta":{},"finish_reason":"stop"}`))},
		"members that only differ":      {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"Choices":[],"choices"`))},
		"sixty levels of metadata":      {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"x":`+strings.Repeat("[", 60)+strings.Repeat("]", 60)+`,"choices"`))},
		"escapes of all letters":        {served: stream(delta(`"\u007b\u0022title\u0022:\u0022Call \uD83D\uDE00\u0022,\u0022urgent\u0022:true\u007d"`, "") + stopChunk)},
		"an escape for each letter":     {served: stream(delta(`"{\"title\":\"Call "`, "") + delta(`"\uD83D"`, "") + delta(`"\uDE00"`, "") + delta(`"\",\"urgent\":true}"`, "") + stopChunk)},
		"half a letter, then thinking":  {served: stream(delta(`"{\"title\":\"Call \ud83d"`, "") + chunkOf(`{"index":0,"delta":{"reasoning_content":"hm"}}`) + delta(`"\ude00\",\"urgent\":true}"`, "") + stopChunk)},
		"half a letter, then no text":   {served: stream(delta(`"{\"title\":\"Call \ud83d"`, "") + delta(`""`, "") + delta(`null`, "") + delta(`"\ude00\",\"urgent\":true}"`, "") + stopChunk)},

		// Transport.
		"a stream labelled as a page":  {served: served{label: "text/html; charset=utf-8", body: whole + doneEvent}},
		"a stream labelled as XML":     {served: served{label: "application/xml", body: whole + doneEvent}},
		"a stream labelled as binary":  {served: served{label: "binary/octet-stream", body: whole + doneEvent}},
		"JSON labelled as a page":      {served: served{label: "text/html", body: `{"choices":[{"index":0,"message":{"content":` + wholeText + `},"finish_reason":"stop"}]}`}},
		"JSON labelled as JavaScript":  {served: served{label: "text/javascript", body: `{"choices":[{"index":0,"message":{"content":` + wholeText + `},"finish_reason":"stop"}]}`}},
		"a label of two":               {served: served{label: "text/event-stream, text/event-stream", body: whole + doneEvent}},
		"a label with odd parameters":  {served: served{label: "text/event-stream;charset=UTF-8;;", body: whole + doneEvent}},
		"compressed":                   {served: served{body: zipped(t, halves+stopChunk+doneEvent, 100), header: map[string]string{"Content-Encoding": "gzip"}}},
		"compressed, a document":       {served: served{label: "application/json", body: zipped(t, `{"choices":[{"index":0,"message":{"content":`+wholeText+`},"finish_reason":"stop"}]}`, 100), header: map[string]string{"Content-Encoding": "gzip"}}},
		"a comment as data":            {served: stream("data: : OPENROUTER PROCESSING\n\n" + halves + "data: : keep-alive\n\n" + stopChunk + doneEvent)},
		"a heartbeat in brackets":      {served: stream(event(`[HEARTBEAT]`) + halves + event(`[PING]`) + stopChunk + doneEvent)},
		"a heartbeat with the time":    {served: stream("event: heartbeat\ndata: 1764257463\n\n" + halves + stopChunk + doneEvent)},
		"a keepalive with a word":      {served: stream("event: keepalive\ndata: still here\n\n" + halves + stopChunk + doneEvent)},
		"a ping with a document":       {served: stream("event: ping\ndata: {\"type\":\"ping\",\"cost\":\"0\"}\n\n" + halves + stopChunk + doneEvent)},
		"an event that opens":          {served: stream("event: open\ndata: {}\n\n" + halves + stopChunk + doneEvent)},
		"an event that closes":         {served: stream(halves + stopChunk + "event: close\ndata: bye\n\n")},
		"a status line of a proxy":     {served: stream(": HTTP/1.1 200 OK\n: server: x\n\n" + halves + stopChunk + doneEvent)},
		"a carriage return and a pair": {served: stream(strings.ReplaceAll(halves, "\n\n", "\r\r\n") + stopChunk)},
		"pairs after each data line":   {served: stream(strings.ReplaceAll(halves+stopChunk, "\n\n", "\n\r\n"))},
		"data over lines, with pairs":  {served: stream("data: {\"choices\":[{\"index\":0,\r\ndata:\"delta\":{\"content\":" + wholeText + "},\r\ndata: \"finish_reason\":\"stop\"}]}\r\n\r\n")},
		"no line end at all":           {served: stream(`data: {"choices":[{"index":0,"delta":{"content":` + wholeText + `},"finish_reason":"stop"}]}`)},
		"tabs after the colon":         {served: stream(strings.ReplaceAll(halves+stopChunk, "data: ", "data:\t"))},
		"spaces behind the data":       {served: stream(strings.ReplaceAll(halves+stopChunk, "\n\n", "  \t\n\n"))},
		"nulls behind the stream":      {served: stream(halves + stopChunk + doneEvent + "\x00\x00")},
		"[DONE] twice":                 {served: stream(halves + stopChunk + doneEvent + doneEvent)},
		"[DONE] without a line end":    {served: stream(halves + "data: [DONE]")},
		"[DONE] of an object":          {served: stream(halves + event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`) + event(`{"data":"[DONE]"}`))},

		// Choices and deltas.
		"an empty choice":            {served: stream(chunkOf(`{}`) + halves + stopChunk)},
		"a null choice":              {served: stream(chunkOf(`null`) + halves + stopChunk)},
		"choices false":              {served: stream(event(`{"choices":false}`) + halves + stopChunk)},
		"a delta of null members":    {served: stream(chunkOf(`{"index":0,"delta":{"role":null,"content":null,"refusal":null,"tool_calls":null,"function_call":null,"audio":null,"reasoning":null}}`) + halves + stopChunk)},
		"empty choices at each end":  {served: stream(event(`{"choices":[]}`) + halves + stopChunk + event(`{"choices":[]}`) + doneEvent)},
		"a finish reason with text":  {served: stream(delta(firstHalf, "") + delta(secondHalf, `,"finish_reason":"stop"`))},
		"a usage without choices":    {served: stream(halves + stopChunk + event(`{"usage":{"prompt_tokens":1,"completion_tokens":1}}`) + doneEvent)},
		"a stop reason, Anthropic's": {served: stream(halves + chunkOf(`{"index":0,"delta":{},"finish_reason":null,"stop_reason":"end_turn"}`) + doneEvent)},
		"text parts that are null":   {served: stream(delta(`[{"type":"text","text":null},{"type":"text","text":`+wholeText+`}]`, "") + stopChunk)},
		"a text with annotations":    {served: stream(strings.ReplaceAll(halves, `}}]`, `,"annotations":[{"type":"url_citation"}]}}]`) + stopChunk)},
		"an error of null members":   {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"error":{"code":null,"message":null},"choices"`))},
		"an error that is empty":     {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"error":"","choices"`))},
		"an answer with a warning":   {served: stream(strings.ReplaceAll(halves+stopChunk, `{"choices"`, `{"warnings":["x"],"message":"deprecated","choices"`))},

		// Calls.
		"an empty object, then pieces":     {served: stream(begin(`"{}"`) + piece(firstHalf, `"index":0,`) + piece(secondHalf, `"index":0,`) + stopChunk), via: tool, text: "{}" + `{"title":"Call 😀","urgent":true}`},
		"an empty object as a value":       {served: stream(begin(`{}`) + piece(wholeText, `"index":0,`) + stopChunk), via: tool, text: "{}" + `{"title":"Call 😀","urgent":true}`},
		"pieces without index and id":      {served: stream(begin(`""`) + piece(firstHalf, "") + piece(secondHalf, "") + stopChunk), via: tool},
		"index as text":                    {served: stream(strings.ReplaceAll(begin(firstHalf)+piece(secondHalf, `"index":0,`)+stopChunk, `"index":0`, `"index":"0"`)), via: tool},
		"index null":                       {served: stream(strings.ReplaceAll(begin(firstHalf)+piece(secondHalf, `"index":0,`), `[{"index":0`, `[{"index":null`) + stopChunk), via: tool},
		"two calls, interleaved":           {served: stream(begin(firstHalf) + calls(`{"index":1,"id":"d","function":{"name":"search","arguments":"{\"q\":"}}`) + piece(secondHalf, `"index":0,`) + piece(`"1}"`, `"index":1,`) + stopChunk), via: tool, stop: provider.StopUnknown},
		"two calls in one piece":           {served: stream(calls(`{"index":0,"id":"c","function":{"name":"answer","arguments":`+firstHalf+`}},{"index":0,"function":{"arguments":`+secondHalf+`}}`) + stopChunk), via: tool},
		"the name null in later pieces":    {served: stream(begin(firstHalf) + calls(`{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":`+secondHalf+`}}`) + stopChunk), via: tool},
		"the name empty in later pieces":   {served: stream(begin(firstHalf) + calls(`{"index":0,"id":"","type":"","function":{"name":"","arguments":`+secondHalf+`}}`) + stopChunk), via: tool},
		"an empty call at the end":         {served: stream(begin(wholeText) + calls(`{}`) + calls(`null`) + stopChunk), via: tool},
		"an empty list of calls":           {served: stream(halves + calls(``) + stopChunk)},
		"a name with a channel of gpt-oss": {served: stream(calls(`{"index":0,"id":"c","function":{"name":"answer<|channel|>commentary","arguments":`+wholeText+`}}`) + stopChunk), via: tool},
		"a call and an empty text":         {served: stream(chunkOf(`{"index":0,"delta":{"content":"","tool_calls":[{"index":0,"id":"c","function":{"name":"answer","arguments":`+wholeText+`}}]}}`) + stopChunk), via: tool},
		"a custom tool's input":            {served: stream(calls(`{"index":0,"id":"c","type":"custom","custom":{"name":"answer","input":`+wholeText+`}}`) + stopChunk), via: tool},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := callServed(t, tc.served, tc.via)
			require.NoError(t, err)
			if tc.text == "" {
				tc.text = wanted
			}
			if tc.stop == "" {
				tc.stop = provider.StopClean
			}
			require.Equal(t, tc.text, res.Text)
			require.Equal(t, tc.stop, res.Stop)
		})
	}
}

// What is cut or no answer is a failure that may pass, and says what happened.
func TestReports_BrokenAnswers(t *testing.T) {
	t.Parallel()
	halves := delta(firstHalf, "") + delta(secondHalf, "")
	gzipped := map[string]string{"Content-Encoding": "gzip"}
	for name, tc := range map[string]struct {
		served
		says  string
		final bool
	}{
		"compressed and cut":           {served: served{body: zipped(t, strings.Repeat(": "+wholeText+"\n", 200)+halves+stopChunk, 60), header: gzipped}, says: "broke before the answer was complete"},
		"two documents on a line":      {served: served{body: strings.Replace(halves, "\n\n", "", 1) + stopChunk}, says: "no part of an answer"},
		"a document cut, the next one": {served: served{body: `data: {"choices":[{"index":0,"delta":{"con` + "\n\n" + halves + stopChunk}, says: "no part of an answer"},
		"words without a name":         {served: served{body: halves + "data: Internal Server Error\n\n"}, says: "no part of an answer"},
		"choices that stay empty":      {served: served{body: strings.Repeat(`data: {"choices":[]}`+"\n\n", 9) + doneEvent}, says: "ended its answer before it was complete"},
		"a usage and no answer":        {served: served{body: `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":0}}` + "\n\n" + doneEvent}, says: "ended its answer before it was complete"},
		"a page within the stream":     {served: served{body: halves + "data: <html><body>502 Bad Gateway</body></html>\n\n"}, says: "no part of an answer"},
		"a page labelled as a stream":  {served: served{body: "<!DOCTYPE html><html><title>Just a moment...</title></html>"}, says: "check the address", final: true},
		"a page with space before":     {served: served{label: "text/html", body: "\n\n  <html></html>"}, says: "check the address", final: true},
		"a page without tags":          {served: served{label: "text/html", body: "OK"}, says: "check the address", final: true},
		"nothing, labelled as a page":  {served: served{label: "text/html"}, says: "check the address", final: true},
		"compressed twice":             {served: served{body: "x", header: map[string]string{"Content-Encoding": "br"}}, says: "compresses its answers", final: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := callServed(t, tc.served, provider.ViaFormat)
			e, ok := provider.As(err)
			require.True(t, ok, err)
			require.Equal(t, provider.CodeUnavailable, e.Code)
			require.Equal(t, !tc.final, e.Retryable)
			require.Contains(t, e.Message, tc.says)
		})
	}
}

// Usage is read wherever it stands; what is no count is unknown.
func TestReports_Usage(t *testing.T) {
	t.Parallel()
	event := func(doc string) string { return "data: " + doc + "\n\n" }
	halves := delta(firstHalf, "") + delta(secondHalf, "")
	counts := `"prompt_tokens":10,"completion_tokens":5,"total_tokens":15`
	plain := provider.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15, Known: true}
	for name, tc := range map[string]struct {
		body string
		want provider.Usage
	}{
		"in the delta":                {halves + chunkOf(`{"index":0,"delta":{"usage":{`+counts+`}},"finish_reason":"stop"}`), plain},
		"in the message":              {`{"choices":[{"index":0,"message":{"content":` + wholeText + `,"usage":{` + counts + `}},"finish_reason":"stop"}]}`, plain},
		"in Google's words":           {halves + event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}`), plain},
		"in a wrapped document":       {`{"data":{"choices":[{"index":0,"message":{"content":` + wholeText + `},"finish_reason":"stop"}],"usage":{` + counts + `}}}`, plain},
		"usage with NaN":              {halves + event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{`+counts+`,"tokens_per_second":NaN}}`), plain},
		"NaN tokens":                  {halves + event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":NaN,"completion_tokens":NaN}}`), provider.Usage{}},
		"zeros, then counts":          {strings.ReplaceAll(halves, `{"choices"`, `{"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0},"choices"`) + event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{`+counts+`}}`), plain},
		"counts, then zeros":          {halves + event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{`+counts+`}}`) + event(`{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`) + doneEvent, plain},
		"null counts":                 {halves + stopChunk + event(`{"choices":[],"usage":{"prompt_tokens":null,"completion_tokens":null,"total_tokens":null}}`) + doneEvent, provider.Usage{}},
		"null details":                {halves + stopChunk + event(`{"choices":[],"usage":{`+counts+`,"prompt_tokens_details":null,"completion_tokens_details":null}}`) + doneEvent, plain},
		"a choice that is empty":      {halves + stopChunk + event(`{"choices":[{"index":0,"delta":{}}],"usage":{`+counts+`}}`) + doneEvent, plain},
		"a count beyond any":          {halves + stopChunk + event(`{"choices":[],"usage":{"prompt_tokens":1e300,"completion_tokens":5}}`) + doneEvent, provider.Usage{OutputTokens: 5, Known: true}},
		"xAI, thinking apart":         {halves + stopChunk + event(`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":115,"completion_tokens_details":{"reasoning_tokens":100}}}`) + doneEvent, provider.Usage{InputTokens: 10, OutputTokens: 105, TotalTokens: 115, ReasoningTokens: new(100), Known: true}},
		"with the stop, without done": {halves + event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{`+counts+`}}`), plain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := served{body: tc.body}.call(t, compat.Config{}, ask(), nil)
			require.NoError(t, err)
			require.Equal(t, tc.want, res.Usage)
		})
	}
}

// Errors in the words of servers.
func TestReports_Errors(t *testing.T) {
	t.Parallel()
	status := func(code int, doc string) served { return served{status: code, label: "application/json", body: doc} }
	said := func(code int, message, kind, id string) served {
		return status(code, `{"error":{"message":`+quote(message)+`,"type":"`+kind+`","param":null,"code":"`+id+`"}}`)
	}
	doc := func(body string) served { return served{label: "application/json", body: body} }
	stream := func(doc string) served { return served{body: "data: " + doc + "\n\n"} }
	type failure struct {
		served
		via                 provider.SchemaVia
		schemaless          bool
		code                string
		retryable, capacity bool
		after               time.Duration
	}
	limited := func(s served) failure {
		return failure{served: s, code: provider.CodeQuota, retryable: true, capacity: true}
	}
	after := func(d time.Duration, f failure) failure { f.after = d; return f }
	tool := func(f failure) failure { f.via = provider.ViaTool; return f }
	text := func(f failure) failure { f.schemaless = true; return f }
	spent := func(s served) failure { return failure{served: s, code: provider.CodeQuota} }
	tooLong := func(s served) failure { return failure{served: s, code: provider.CodeContentTooLong} }
	noSchema := func(s served) failure { return failure{served: s, code: provider.CodeSchemaInvalid} }
	broken := func(s served) failure { return failure{served: s, code: provider.CodeUnavailable, retryable: true} }
	noKey := func(s served) failure { return failure{served: s, code: provider.CodeCredentialRequired} }
	away := func(s served) failure { return failure{served: s, code: provider.CodeUnavailable} }
	noModel := func(s served) failure { return failure{served: s, code: provider.CodeModelNotSupported} }
	invalid := func(s served) failure { return failure{served: s, code: provider.CodeInvalidRequest} }
	busy := func(s served) failure {
		return failure{served: s, code: provider.CodeUnavailable, retryable: true, capacity: true}
	}
	with := func(s served, name, value string) served { s.header = map[string]string{name: value}; return s }
	for name, tc := range map[string]failure{
		// Limits that pass.
		"Bedrock, tokens, 400":         limited(status(400, `{"message":"Too many tokens, please wait before trying again."}`)),
		"Bedrock, tokens, 429":         limited(status(429, `{"message":"Too many tokens, please wait before trying again."}`)),
		"Bedrock, tokens of a day":     limited(status(429, `{"message":"Too many tokens per day, please wait before trying again."}`)),
		"Bedrock, tokens, streamed":    limited(stream(`{"error":{"message":"Too many tokens, please wait before trying again.","type":"server_error"}}`)),
		"Bedrock, tokens, behind 500":  limited(said(500, "litellm.InternalServerError: BedrockException - Too many tokens, please wait before trying again.", "", "500")),
		"Bedrock, connections":         busy(status(503, `{"message":"Too many connections, please wait before trying again."}`)),
		"Alibaba, tokens of a minute":  limited(status(429, `{"code":"Throttling.AllocationQuota","message":"Allocated quota exceeded, please increase your quota limit.","request_id":"x"}`)),
		"Alibaba, calls of a minute":   limited(status(429, `{"code":"Throttling.RateQuota","message":"Requests rate limit exceeded, please try again later.","request_id":"x"}`)),
		"Volcengine, overloaded":       limited(said(429, "The service is currently unable to handle additional requests due to server overload.", "TooManyRequests", "ServerOverloaded")),
		"SiliconFlow, calls, 403":      limited(status(403, `{"code":50603,"message":"RPM limit exceeded. Please complete identity verification to lift the restriction.","data":null}`)),
		"Baidu, calls, 200":            limited(doc(`{"error_code":18,"error_msg":"Open api qps request limit reached"}`)),
		"Cohere, a trial":              limited(status(429, `{"message":"You are using a Trial key, which is limited to 10 API calls / minute. You can continue to use the Trial key for free or upgrade to a Production key with higher rate limits."}`)),
		"GitHub, a day":                after(3567*time.Second, limited(said(429, "Rate limit of 50 per 86400s exceeded for UserByModelByDay. Please wait 3567 seconds before retrying.", "", "RateLimitReached"))),
		"an hour and minutes in words": after(6*time.Hour+29*time.Minute, limited(said(429, "Rate limited. Try again in 6hr 29min.", "", ""))),
		"minutes and seconds in words": after(2*time.Minute+5*time.Second, limited(said(429, "Rate limited. Please retry after 2 minutes 5 seconds.", "", ""))),
		"two waits":                    after(60*time.Second, limited(with(said(429, "slow down", "", ""), "Retry-After", "30, 60"))),
		"a wait that a proxy repeats":  after(7*time.Second, limited(with(said(429, "slow down", "", ""), "Retry-After", "7, 7"))),
		"Azure, milliseconds":          after(1500*time.Millisecond, limited(with(said(429, "slow down", "", ""), "X-Ms-Retry-After-Ms", "1500"))),
		"a wait of 503":                after(4*time.Second, busy(with(status(503, `{"error":"queue full"}`), "Retry-After", "4"))),
		"Codex, resets in seconds":     after(2939*time.Second, limited(status(429, `{"error":{"type":"rate_limit_reached","message":"slow down","resets_in_seconds":2939}}`))),
		"Vertex, behind LiteLLM":       limited(said(429, "litellm.RateLimitError: VertexAIException - {\"error\":{\"code\":429,\"message\":\"Resource exhausted. Please try again later.\",\"status\":\"RESOURCE_EXHAUSTED\"}}", "throttling_error", "429")),
		"a limit of a stream":          limited(stream(`{"error":{"message":"429 Too Many Requests","type":"upstream_error","code":null}}`)),

		// Accounts.
		"OpenAI, no credits":            spent(said(429, "You have no credits remaining. Add credits to continue using the API at https://platform.openai.com/settings/organization/billing/", "insufficient_quota", "credit_balance_exhausted")),
		"OpenAI, no credits, LiteLLM":   spent(said(429, "litellm.RateLimitError: RateLimitError: OpenAIException - You have no credits remaining. Add credits to continue using the API.", "throttling_error", "429")),
		"a usage limit that resets":     after(300*time.Second, limited(status(429, `{"error":{"type":"usage_limit_reached","resets_in_seconds":300}}`))),
		"Codex, a usage limit":          spent(status(429, `{"error":{"type":"usage_limit_reached","plan_type":"plus"}}`)),
		"Gemini, prepaid":               spent(status(429, `[{"error":{"code":429,"message":"Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing.","status":"RESOURCE_EXHAUSTED"}}]`)),
		"Anthropic behind, extra usage": spent(said(429, "Extra usage is required for long context requests.", "rate_limit_error", "429")),
		"Alibaba, arrears":              spent(status(400, `{"error":{"code":"Arrearage","param":null,"message":"Access denied, please make sure your account is in good standing.","type":"Arrearage"}}`)),
		"Alibaba, the free tier":        spent(status(403, `{"error":{"code":"AllocationQuota.FreeTierOnly","message":"The free tier of the model has been exhausted. If you wish to continue access the model on a paid basis, please disable the \"use free tier only\" mode.","type":"AllocationQuota.FreeTierOnly"}}`)),
		"Volcengine, overdue":           spent(said(403, "The request failed because your account has an overdue balance.", "Forbidden", "AccountOverdueError")),
		"Novita, a balance":             spent(status(403, `{"code":403,"reason":"NOT_ENOUGH_BALANCE","message":"not enough balance","metadata":{}}`)),
		"Vercel, a card":                spent(said(403, "AI Gateway requires a valid credit card on file to service requests.", "customer_verification_required", "")),
		"watsonx, a quota":              spent(status(403, `{"errors":[{"code":"token_quota_reached","message":"This instance has reached its token quota for the billing period"}],"trace":"x","status_code":403}`)),
		"Mistral, a subscription":       spent(status(401, `{"message":"Inactive subscription or usage limit reached"}`)),
		"Cohere, a month":               spent(status(429, `{"message":"You are using a Trial key, which is limited to 1000 API calls / month. Upgrade to a Production key."}`)),

		// Prompts that are too long.
		"watsonx, too long":     tooLong(status(400, `{"errors":[{"code":"invalid_input_argument","message":"Invalid input argument for Model 'x': the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model"}],"trace":"x","status_code":400}`)),
		"TabbyAPI, too long":    tooLong(status(400, `{"detail":"Prompt length 5000 is greater than max_seq_len 4096"}`)),
		"Atlas, too long":       tooLong(said(400, "Prompt too long: 5152 tokens exceeds max_seq_len 2048 (leave room for output tokens)", "", "")),
		"LM Studio, n_keep":     tooLong(status(400, `{"error":"Cannot truncate prompt with n_keep (5000) >= n_ctx (4096)"}`)),
		"Snowflake, too long":   tooLong(status(400, `{"message":"max tokens of 8192 exceeded","request_id":"x"}`)),
		"Baidu, too long, 200":  tooLong(doc(`{"error_code":336007,"error_msg":"prompt tokens too long"}`)),
		"Volcengine, too long":  tooLong(said(400, "Total tokens of image and text exceed max message tokens. Request id: x", "BadRequest", "InvalidParameter")),
		"Zhipu, in Chinese":     tooLong(status(400, `{"error":{"code":"1261","message":"Prompt 超长"}}`)),
		"Copilot, too long":     tooLong(said(400, "prompt token count of 140000 exceeds the limit of 128000", "", "model_max_prompt_tokens_exceeded")),
		"NEAR, too long":        tooLong(said(400, "prompt is too long: 234872 tokens > 200000 maximum", "invalid_request_error", "")),
		"llama-cpp-python":      tooLong(said(400, "This model's maximum context length is 2048 tokens, however you requested 3000 tokens", "invalid_request_error", "context_length_exceeded")),
		"llama.cpp, old stream": tooLong(served{body: `error: {"code":400,"message":"the request exceeds the available context size","type":"invalid_request_error"}` + "\n\n"}),
		"a limit of answers":    invalid(said(400, "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens for x", "invalid_request_error", "")),
		"a limit of a number":   invalid(said(400, "temperature exceeds maximum allowed value", "invalid_request_error", "")),
		"a quota of tokens":     invalid(said(400, "Requested max_tokens exceeds the model output limit", "invalid_request_error", "")),

		// What the model wrote.
		"Ollama, a call":                 tool(broken(said(500, "error parsing tool call: raw='{\"title\":', err=unexpected end of JSON input", "api_error", ""))),
		"Ollama, a call, streamed":       tool(broken(stream(`{"error":{"message":"error parsing tool call: raw='{', err=unexpected end of JSON input","type":"api_error"}}`))),
		"Ollama, a call in XML":          tool(broken(said(500, "XML syntax error on line 3: element <parameter> closed by </function>", "api_error", ""))),
		"Ollama, Qwen":                   tool(broken(said(500, "qwen tool call parsing failed: expected element type <function> but have <parameter>", "api_error", ""))),
		"llama.cpp, a call":              tool(broken(status(500, `{"error":{"code":500,"message":"Failed to parse input at pos 24: <tool_call>","type":"server_error"}}`))),
		"llama.cpp, a difference":        tool(broken(status(500, `{"error":{"code":500,"message":"Invalid diff: '{\"tool_calls\":' not found at start of '{'","type":"server_error"}}`))),
		"llama.cpp, a call, 200":         tool(broken(stream(`{"error":{"code":500,"message":"Failed to parse input at pos 24: <tool_call>","type":"server_error"}}`))),
		"vLLM, harmony":                  tool(broken(status(400, `{"error":{"message":"unexpected tokens remaining in message header: Some(\"to=functions.answer code\")","type":"BadRequestError","param":null,"code":400}}`))),
		"Groq, harmony":                  text(broken(said(400, "Parsing failed. The model generated output that could not be parsed. Please adjust your prompt. See 'failed_generation' for more details.", "invalid_request_error", "output_parse_failed"))),
		"Groq, an unrequested tool call": text(broken(said(400, "Tool choice is none, but model called a tool", "invalid_request_error", "tool_use_failed"))),

		// Schemas.
		"xAI, a schema":        noSchema(status(400, `{"code":"Client specified an invalid argument","error":"Invalid request content: Schema contains unsupported keyword: oneOf"}`)),
		"Cohere, a schema":     noSchema(status(400, `{"message":"invalid request: schema must have at least one required property"}`)),
		"Cerebras, a schema":   noSchema(said(400, "Incompatible request: Unsupported JSON schema fields: {'minItems'}", "invalid_request_error", "wrong_api_format")),
		"Polza, a format":      noSchema(said(400, "Model does not support 'json_schema' response format. Supported formats: json_object.", "invalid_request_error", "")),
		"MLX, a format":        noSchema(status(422, `{"detail":[{"type":"literal_error","loc":["body","response_format","type"],"msg":"Input should be 'text'"}]}`)),
		"Ollama, both":         tool(noSchema(said(400, "format and tools cannot be used together", "api_error", ""))),
		"Perplexity, no tools": tool(noSchema(said(400, "Tool calling is not supported for this model.", "invalid_request_error", ""))),
		"a named schema":       noSchema(said(422, "Cannot use schema 'answer' of this request", "invalid_request_error", "")),
		"another schema":       {served: said(400, "Request body does not match schema: messages[1].content must be a string", "invalid_request_error", ""), code: provider.CodeInvalidRequest},
		"another JSON schema":  {served: said(422, "JSON schema validation failed: messages[1].content must be a string", "invalid_request_error", ""), code: provider.CodeInvalidRequest},
		"the API's schema":     {served: said(422, "Request validation against the schema failed at /model", "invalid_request_error", ""), code: provider.CodeInvalidRequest},
		"a plan, 403":          noKey(said(403, "Your plan allows no requests per minute for this model", "forbidden", "")),
		"too many, 403":        {served: said(403, "Too many requests", "forbidden", ""), code: provider.CodeQuota, retryable: true, capacity: true},
		"a database":           busy(status(503, `{"error":"database schema migration in progress"}`)),

		// Keys, models, addresses.
		"xAI, a wrong key":          noKey(status(400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xx***yy. You can obtain an API key from https://console.x.ai."}`)),
		"Groq, restricted":          noKey(said(400, "Organization has been restricted. Please reach out to support if you believe this was in error.", "invalid_request_error", "organization_restricted")),
		"Anthropic behind, closed":  noKey(said(400, "This organization has been disabled.", "invalid_request_error", "")),
		"Baidu, a token, 200":       noKey(doc(`{"error_code":111,"error_msg":"Access token expired"}`)),
		"Volcengine, no model":      noModel(said(404, "The model or endpoint x does not exist or you do not have access to it.", "NotFound", "InvalidEndpointOrModel.NotFound")),
		"Volcengine, a closed one":  noModel(said(404, "Your account has not activated the model x. Please activate the model service in the Ark Console.", "NotFound", "ModelNotOpen")),
		"OpenAI, another interface": noModel(said(404, "This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?", "invalid_request_error", "")),
		"a page of a firewall":      away(served{status: 403, label: "text/html", body: "<html><title>Attention Required! | Cloudflare</title></html>"}),
		"MiniMax, a wrong key, 200": noKey(doc(`{"base_resp":{"status_code":1004,"status_msg":"login fail: Please carry the API secret key in the 'Authorization' field of the request header"}}`)),

		// Failures that pass.
		"KoboldCpp, 200":         broken(doc(`{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"error"}]}`)),
		"exo, memory":            broken(stream(`{"error":{"message":"out of memory","type":"InternalServerError","code":500}}`)),
		"an old field of errors": broken(served{body: `error: {"code":500,"message":"slot unavailable","type":"server_error"}` + "\n\n"}),
		"Cloudflare, a page":     broken(served{status: 521, label: "text/html", body: "<html>Web server is down</html>"}),
		"an error in Chinese":    broken(status(500, `{"error":{"code":"1234","message":"网络错误，错误id：x，请稍后重试"}}`)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask()
			req.SchemaName, req.Via = "answer", tc.via
			if !tc.schemaless {
				req.Schema = []byte(`{"type":"object"}`)
			}
			_, err := tc.call(t, compat.Config{}, req, nil)
			e, ok := provider.As(err)
			require.True(t, ok, err)
			require.Equal(t, tc.code, e.Code, "%s %s", e.Message, e.Quote)
			require.Equal(t, tc.retryable, e.Retryable, e.Message)
			require.Equal(t, tc.capacity, e.Capacity, e.Message)
			require.Equal(t, tc.after, e.RetryAfter)
			require.NotContains(t, e.Message, "could not be reached")
		})
	}
}

// A filter's refusal is an answer.
func TestReports_Filters(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]served{
		"MiniMax, the prompt, 200": {body: `{"choices":null,"base_resp":{"status_code":1026,"status_msg":"input new_sensitive"}}`},
		"MiniMax, the answer, 200": {body: `{"choices":null,"base_resp":{"status_code":1027,"status_msg":"output new_sensitive"}}`},
		"Volcengine, the prompt":   {status: 400, body: `{"error":{"code":"InputTextSensitiveContentDetected","message":"The request failed because the input text may contain sensitive information.","type":"BadRequest"}}`},
		"Volcengine, the answer":   {status: 400, body: `{"error":{"code":"SensitiveContentDetected","message":"The request failed because the output may contain sensitive information.","type":"BadRequest"}}`},
		"Zhipu, in Chinese":        {status: 400, body: `{"contentFilter":[{"level":1,"role":"user"}],"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容，请您避免输入易产生敏感内容的提示语，感谢您的配合。"}}`},
		"OpenAI, behind LiteLLM":   {status: 400, body: `{"error":{"message":"litellm.BadRequestError: OpenAIException - Invalid prompt: your prompt was flagged as potentially violating our usage policy.","type":null,"param":null,"code":"400"}}`},
		"OpenAI, moderation":       {status: 400, body: `{"error":{"message":"Your request was rejected as a result of our safety system.","type":"image_generation_user_error","param":null,"code":"moderation_blocked"}}`},
		"LiteLLM, a guardrail":     {status: 400, body: `{"error":{"message":"{'error': 'Violated guardrail policy', 'bedrock_guardrail_response': 'no'}","type":"None","param":"None","code":"400"}}`},
		"Portkey, a guardrail":     {status: 446, body: `{"error":{"message":"The guardrail checks defined in the config failed. You can find more information in the hook_results object.","type":"hooks_failed","param":null,"code":null}}`},
		"Cloudflare, a guardrail":  {status: 424, body: `{"success":false,"result":[],"messages":[],"error":[{"code":2016,"message":"Prompt blocked due to security configurations"}]}`},
		"Moonshot, a risk":         {status: 400, body: `{"error":{"message":"The request was rejected because it was considered high risk","type":"content_filter"}}`},
		"Gemini, in the stream":    {body: "data: {\"error\":{\"code\":400,\"message\":\"blocked\",\"type\":\"PROHIBITED_CONTENT\"}}\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s.status != 0 {
				s.label = "application/json"
			}
			res, err := callServed(t, s, provider.ViaFormat)
			require.NoError(t, err)
			require.Equal(t, provider.StopRefused, res.Stop)
			require.NotEmpty(t, res.SafetyCategory)
			require.Empty(t, res.Text)
		})
	}
}
