package models

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// reply is what a server sends to the first call of a case; the next calls get a right answer.
type reply struct {
	status int // 0: 200
	body   string
	header map[string]string
}

// said is a reply, and what the run makes of it.
type said struct {
	reply
	// provider and model are called; the model tool gets its schema as a tool.
	provider, model, flow string
	output                string // task, unless set or failed
	code, says            string
	calls                 int // 1, unless set
	usage                 string
}

const (
	saidTask  = `{"title":"Call the printer","urgent":true}`
	saidDraft = `{"title":"draft","urgent":false}`
	saidStop  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	saidUsage = `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}` + "\n\n"
	saidDone  = "data: [DONE]\n\n"
)

// piece is an event of Chat Completions.
func piece(delta doc) string {
	return "data: " + render(doc{"choices": []any{doc{"index": 0, "delta": delta}}}) + "\n\n"
}

func callPiece(index int, name, arguments string) string {
	call := doc{"index": index, "id": fmt.Sprint("c", index), "type": "function", "function": doc{"name": name, "arguments": arguments}}
	return piece(doc{"tool_calls": []any{call}})
}

// events joins the documents of a stream.
func events(docs ...doc) string {
	var b strings.Builder
	for _, d := range docs {
		b.WriteString("data: " + render(d) + "\n\n")
	}
	return b.String()
}

// block is a block of Anthropic's stream.
func block(index int, content, delta doc) []doc {
	return []doc{
		{"type": "content_block_start", "index": index, "content_block": content},
		{"type": "content_block_delta", "index": index, "delta": delta},
		{"type": "content_block_stop", "index": index},
	}
}

// claude is a stream of Anthropic with these blocks, and the usage of its start and end.
func claude(end doc, blocks ...[]doc) string {
	out := []doc{{"type": "message_start", "message": doc{"id": "m", "type": "message", "role": "assistant", "model": "c", "content": []any{}, "usage": doc{"input_tokens": 10, "output_tokens": 1}}}}
	for _, b := range blocks {
		out = append(out, b...)
	}
	return events(append(out, doc{"type": "message_delta", "delta": doc{"stop_reason": "end_turn"}, "usage": end}, doc{"type": "message_stop"})...)
}

func gem(usage doc, parts ...doc) string {
	return events(doc{"candidates": []any{doc{"content": doc{"role": "model", "parts": parts}, "finishReason": "STOP"}}, "usageMetadata": usage})
}

func saidRows() map[string]said {
	five := doc{"output_tokens": 5}
	counts := doc{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
	textBlock := block(0, doc{"type": "text", "text": ""}, doc{"type": "text_delta", "text": saidTask})
	call := func(index int, name, input string) []doc {
		return block(index, doc{"type": "tool_use", "id": fmt.Sprint("t", index), "name": name, "input": doc{}}, doc{"type": "input_json_delta", "partial_json": input})
	}
	ends := saidStop + saidUsage + saidDone
	text := piece(doc{"content": saidTask})
	responses := func(whole string, deltas ...string) string {
		var docs []doc
		for i, d := range deltas {
			docs = append(docs, doc{"type": "response.output_text.delta", "sequence_number": i + 1, "output_index": 0, "content_index": 0, "delta": d})
		}
		message := doc{"type": "message", "role": "assistant", "content": []any{doc{"type": "output_text", "text": whole}}}
		return events(append(docs, doc{"type": "response.completed", "response": doc{
			"status": "completed", "output": []any{message}, "usage": doc{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
		}})...)
	}
	asIs := func(status int, body string) reply {
		return reply{status: status, body: body, header: map[string]string{"Content-Type": "application/json"}}
	}
	return map[string]said{
		"an empty call":                {reply: reply{body: text + callPiece(0, "answer", "") + ends}, model: "tool", flow: "opt"},
		"an empty call, Anthropic":     {reply: reply{body: claude(five, textBlock, call(1, "answer", ""))}, provider: "claude", model: "tool", flow: "opt"},
		"an empty call, Gemini":        {reply: reply{body: gem(counts, doc{"text": saidTask}, doc{"functionCall": doc{"name": "answer"}})}, provider: "gem", model: "tool", flow: "opt"},
		"an empty object":              {reply: reply{body: text + callPiece(0, "answer", "{}") + ends}, model: "tool", flow: "opt", output: "{}"},
		"another tool":                 {reply: reply{body: callPiece(0, "search", `{"title":"q"}`) + ends}, model: "tool", flow: "opt", calls: 2},
		"another tool, Anthropic":      {reply: reply{body: claude(five, call(0, "search", `{"title":"q"}`))}, provider: "claude", model: "tool", flow: "opt", calls: 2},
		"another tool, Gemini":         {reply: reply{body: gem(counts, doc{"functionCall": doc{"name": "search", "args": doc{"title": "q"}}})}, provider: "gem", model: "tool", flow: "opt", calls: 2},
		"a draft and another tool":     {reply: reply{body: piece(doc{"content": "Maybe " + saidDraft}) + callPiece(0, "search", `{"q":1}`) + ends}, model: "tool", calls: 2},
		"a draft, another tool, words": {reply: reply{body: piece(doc{"content": saidDraft}) + callPiece(0, "search", `{"q":1}`) + ends}, calls: 2},
		"a draft, Anthropic":           {reply: reply{body: claude(five, block(0, doc{"type": "text", "text": ""}, doc{"type": "text_delta", "text": saidDraft}), call(1, "search", `{"q":1}`))}, provider: "claude", calls: 2},
		"a draft, Gemini":              {reply: reply{body: gem(counts, doc{"text": saidDraft}, doc{"functionCall": doc{"name": "search", "args": doc{"q": 1}}})}, provider: "gem", calls: 2},
		"a text and another tool":      {reply: reply{body: piece(doc{"content": "Let me look."}) + callPiece(0, "search", `{"q":1}`) + ends}, flow: "text", calls: 2, output: strconv.Quote(saidTask)},
		"a custom tool, Responses":     {reply: reply{body: events(doc{"type": "response.completed", "response": doc{"status": "completed", "usage": doc{"input_tokens": 10, "output_tokens": 5}, "output": []any{doc{"type": "message", "role": "assistant", "content": []any{doc{"type": "output_text", "text": saidDraft}}}, doc{"type": "custom_tool_call", "call_id": "c", "name": "search", "input": "q"}}}})}, provider: "resp", calls: 2},
		"an unreadable call, Gemini":   {reply: reply{body: strings.Replace(gem(counts, doc{"text": "Let me look."}), "STOP", "MALFORMED_FUNCTION_CALL", 1)}, provider: "gem", flow: "text", calls: 2, output: strconv.Quote(saidTask)},
		"a failure's word, Anthropic":  {reply: reply{body: strings.Replace(claude(five, textBlock), "end_turn", "cancelled", 1)}, provider: "claude", calls: 2, code: "-"},
		"a tool that the server ran":   {reply: reply{body: callPiece(0, "search", `{"q":1}`) + piece(doc{"role": "tool", "content": saidDraft}) + piece(doc{"role": "assistant", "content": saidTask}) + ends}},
		"a call in the text":           {reply: reply{body: piece(doc{"content": saidDraft + "\n<tool_call>{\"name\":\"search\",\"arguments\":{}}</tool_call>"}) + ends}, calls: 2},
		"another tool, then the right": {reply: reply{body: callPiece(0, "search", `{"title":"q"}`) + callPiece(1, "answer", saidTask) + ends}, model: "tool", flow: "opt"},
		"a role of a tool":             {reply: reply{body: piece(doc{"role": "tool", "content": saidDraft}) + piece(doc{"role": "assistant", "content": saidTask}) + ends}},
		"a final text":                 {reply: reply{body: responses(saidTask, saidDraft)}, provider: "resp"},
		"a lost piece":                 {reply: reply{body: responses("Hello big world", "Hello ", "world")}, provider: "resp", flow: "text", output: `"Hello big world"`},

		"generation, 424":      {reply: asIs(424, `{"error":"Request failed during generation: CUDA out of memory","error_type":"generation"}`), calls: 2, code: "-", says: "rejected what its model wrote"},
		"no model, 200":        {reply: asIs(200, `{"error":"model 'x' not found, try pulling it first"}`), code: "model_not_supported", says: "does not know the model"},
		"no model, Responses":  {reply: reply{body: events(doc{"type": "error", "error": doc{"code": "model_not_found", "message": "The model does not exist"}})}, provider: "resp", code: "model_not_supported", says: "does not know the model"},
		"a region":             {reply: asIs(403, `{"error":{"message":"Country, region, or territory not supported","code":"unsupported_country_region_territory"}}`), code: "provider_unavailable", says: "does not serve the country or region"},
		"a network":            {reply: asIs(403, `{"error":{"message":"Access denied due to Virtual Network/Firewall rules."}}`), code: "provider_unavailable", says: "network rule"},
		"a page, Anthropic":    {reply: reply{status: 403, body: "<html>Cloudflare 1020 Access denied</html>", header: map[string]string{"Content-Type": "text/html"}}, provider: "claude", code: "provider_unavailable", says: "network rule"},
		"credits":              {reply: asIs(403, `{"error":"Your newly created team doesn't have any credits yet."}`), code: "provider_quota_exhausted", says: "used up"},
		"a proxy":              {reply: asIs(407, `{}`), code: "provider_unavailable", says: "proxy"},
		"too long, 502":        {reply: asIs(502, `{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"Input is too long for requested model.\"}}"}}}`), code: "content_too_long", says: "longer than the model takes"},
		"too long, 502 Gemini": {reply: asIs(502, `{"error":{"message":"Input is too long for requested model."}}`), provider: "gem", code: "content_too_long", says: "longer than the model takes"},
		"too long, 200":        {reply: asIs(200, `{"error_code":336007,"error_msg":"the max input characters is 20000"}`), code: "content_too_long", says: "longer than the model takes"},
		"an hour's limit":      {reply: reply{status: 429, body: `{"error":"you've reached your hourly usage limit"}`, header: map[string]string{"Retry-After": "1", "Content-Type": "application/json"}}, calls: 2, code: "-", says: "rate limit"},

		"progress":            {reply: reply{body: `data: {"status":"queued","message":"Waiting for a free slot"}` + "\n\n" + text + ends}},
		"progress, Anthropic": {reply: reply{body: "event: status\ndata: {\"message\":\"Loading model\",\"status\":\"loading\"}\n\n" + claude(five, textBlock)}, provider: "claude"},
		"progress, Gemini":    {reply: reply{body: `data: {"status":"queued","message":"Waiting"}` + "\n\n" + gem(counts, doc{"text": saidTask})}, provider: "gem"},

		"usage, Anthropic":       {reply: reply{body: claude(doc{"input_tokens": 0, "output_tokens": 5}, textBlock)}, provider: "claude", usage: "10/5"},
		"usage, a later prompt":  {reply: reply{body: text + saidStop + saidUsage + `data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":7}}` + "\n\n" + saidDone}, usage: "10/7"},
		"usage, a total":         {reply: reply{body: text + saidStop + strings.Replace(saidUsage, "15", "40", 1) + saidDone}, usage: "10/30"},
		"usage, Gemini":          {reply: reply{body: gem(doc{"promptTokenCount": 10, "thoughtsTokenCount": 7, "totalTokenCount": 22}, doc{"text": saidTask})}, provider: "gem", usage: "10/12"},
		"usage, short names":     {reply: reply{body: text + saidStop + `data: {"choices":[],"usage":{"prompt":10,"completion":5}}` + "\n\n" + saidDone}, usage: "10/5"},
		"usage, shorter names":   {reply: reply{body: text + saidStop + `data: {"choices":[],"usage":{"input":10,"output":5}}` + "\n\n" + saidDone}, usage: "10/5"},
		"usage of Ollama":        {reply: reply{body: text + saidStop + `data: {"choices":[],"prompt_eval_count":10,"eval_count":5}` + "\n\n" + saidDone}, usage: "10/5"},
		"a charset":              {reply: reply{body: piece(doc{"content": "caf"}) + "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xe9\"}}]}\n\n" + ends, header: map[string]string{"Content-Type": "text/event-stream; charset=iso-8859-1"}}, flow: "text", output: `"café"`},
		"unknown usage is 0 / 0": {reply: reply{body: text + saidStop + saidDone}, usage: "0/0"},
	}
}

// rightAnswers are answers of each interface, for the calls after the first.
var rightAnswers = map[string]string{
	"chat/completions": piece(doc{"content": saidTask}) + saidStop + saidUsage + saidDone,
	"/responses":       events(doc{"type": "response.completed", "response": doc{"status": "completed", "usage": doc{"input_tokens": 10, "output_tokens": 5}, "output": []any{doc{"type": "message", "role": "assistant", "content": []any{doc{"type": "output_text", "text": saidTask}}}}}}),
	"/messages":        claude(doc{"output_tokens": 5}, block(0, doc{"type": "text", "text": ""}, doc{"type": "text_delta", "text": saidTask})),
	"GenerateContent":  gem(doc{"promptTokenCount": 10, "candidatesTokenCount": 5}, doc{"text": saidTask}),
}

var caseMark = regexp.MustCompile(`\[case:([a-z0-9-]+)\]`)

// saidServer is a server of all interfaces that sends the replies of the rows.
type saidServer struct {
	*httptest.Server
	mu    sync.Mutex // guards calls
	calls map[string]int
	rows  map[string]said
}

func (s *saidServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	id := ""
	if m := caseMark.FindSubmatch(body); m != nil {
		id = string(m[1])
	}
	s.mu.Lock()
	s.calls[id]++
	first := s.calls[id] == 1
	s.mu.Unlock()
	out := s.rows[id].reply
	if !first {
		out = reply{}
		for path, body := range rightAnswers {
			if strings.Contains(r.URL.Path, path) {
				out.body = body
			}
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for name, value := range out.header {
		w.Header().Set(name, value)
	}
	if out.status != 0 {
		w.WriteHeader(out.status)
	}
	_, _ = io.WriteString(w, out.body)
}

func (s *saidServer) count(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[id]
}

// startSaid starts the server and a host that calls it.
func startSaid(t *testing.T) (*saidServer, *harness.Client) {
	t.Helper()
	s := &saidServer{calls: map[string]int{}, rows: map[string]said{}}
	for name, row := range saidRows() {
		s.rows[strings.ToLower(unsafeInName.ReplaceAllString(name, "-"))] = row
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	dir := t.TempDir()
	settings := fmt.Sprintf(`{"providers":{"house":{"baseUrl":"%[1]s/v1"},"resp":{"api":"openai-responses","baseUrl":"%[1]s/v1","key":{"env":"SAID_KEY"}},`+
		`"claude":{"api":"anthropic","baseUrl":%[1]q,"key":{"env":"SAID_KEY"}},"gem":{"api":"gemini","baseUrl":%[1]q,"key":{"env":"SAID_KEY"}}}}`, s.URL)
	var models []string
	for _, p := range []string{"house", "resp", "claude", "gem"} {
		for id, row := range s.rows {
			form := "format"
			if row.model == "tool" {
				form = "tool"
			}
			models = append(models, fmt.Sprintf(`{"provider":%q,"model":"m-%s","capabilities":["structured-output","function-calling"],"contextTokens":128000,"outputTokens":16384,"structuredOutput":%q}`, p, id, form))
		}
	}
	require.NoError(t, writeFiles(dir, map[string]string{
		"p.json": settings, "m.json": `{"version":1,"asOf":"2026-01-31","models":[` + strings.Join(models, ",") + `]}`,
	}))
	h := harness.StartWith(t, harness.Options{
		Args: []string{"--provider-settings", filepath.Join(dir, "p.json"), "--models", filepath.Join(dir, "m.json"), "--durability", "process"},
		Env:  append(os.Environ(), "SAID_KEY="+flavourKey),
	})
	const schema = `"outputSchema":{"title":"answer","type":"object","additionalProperties":false,%s"properties":{"title":{"type":"string"},"urgent":{"type":"boolean"}}}`
	var flows []string
	for name, config := range map[string]string{
		"task": fmt.Sprintf(schema, `"required":["title","urgent"],`), "opt": fmt.Sprintf(schema, ""),
	} {
		flows = append(flows, workflow("said-"+name, node("ask", "core.ai.structuredOutput", `{"prompt":"[case:{{case}}] Make it.",`+config+`}`, "{}")))
	}
	flows = append(flows, workflow("said-text", node("ask", "core.ai.callPrompt", `{"prompt":"[case:{{case}}] Make it."}`, "{}")))
	require.NoError(t, h.Deploy(flows, "dev-key"))
	return s, checked(t, h.Client("dev-key"))
}

// What servers say, through a host over real sockets: outcome, output, code, message, calls and usage.
func TestAnswers_OfServersThroughAHost(t *testing.T) {
	t.Parallel()
	needsHost(t)
	s, c := startSaid(t)
	for id, row := range s.rows {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			list := finish(t, c, start(t, c, fmt.Sprintf(`{"workflowId":"said-%s","inputs":{"case":%q},"configurable":{"ai.provider":%q,"ai.model":"m-%s"}}`,
				or(row.flow, "task"), id, or(row.provider, "house"), id)))
			require.Equal(t, max(row.calls, 1), s.count(id), "%s", dump(list))
			if row.code != "" && row.code != "-" {
				requireHas(t, `{"error":{"code":"`+row.code+`"}}`, of(list, failed)[0].Payload)
				require.Contains(t, string(of(list, failed)[0].Payload), row.says)
				require.Empty(t, of(list, usage))
				return
			}
			require.JSONEq(t, or(row.output, saidTask), outputOf(t, list))
			if row.says != "" {
				require.Contains(t, string(of(list, again)[0].Payload), row.says)
			}
			used := of(list, usage)
			var p struct{ InputTokens, OutputTokens int }
			require.NoError(t, json.Unmarshal(used[len(used)-1].Payload, &p))
			require.Equal(t, or(row.usage, "10/5"), fmt.Sprintf("%d/%d", p.InputTokens, p.OutputTokens))
		})
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
