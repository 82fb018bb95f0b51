package models

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// render returns a value as JSON.
func render(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // values of this package always render
	}
	return string(b)
}

type doc = map[string]any

// claudeEvents are the events of Anthropic's stream.
func claudeEvents(a answer) []string {
	out := []string{
		render(doc{"type": "message_start", "message": doc{
			"type": "message", "role": "assistant", "model": "claude-double", "content": []any{}, "usage": doc{"input_tokens": a.in, "output_tokens": 1},
		}}),
		render(doc{"type": "content_block_start", "index": 0, "content_block": doc{"type": "text", "text": ""}}),
	}
	for _, p := range a.pieces() {
		out = append(out, render(doc{"type": "content_block_delta", "index": 0, "delta": doc{"type": "text_delta", "text": p}}))
	}
	end := doc{"stop_reason": "end_turn"}
	if a.stop == refused {
		end = doc{"stop_reason": "refusal", "stop_details": doc{"type": "refusal", "category": "cyber", "explanation": secretWords}}
	}
	counts := doc{"output_tokens": a.out}
	if a.thoughts > 0 {
		counts["output_tokens_details"] = doc{"thinking_tokens": a.thoughts}
	}
	return append(out,
		render(doc{"type": "content_block_stop", "index": 0}),
		render(doc{"type": "message_delta", "delta": end, "usage": counts}),
		render(doc{"type": "message_stop"}))
}

// geminiEvents are the responses of Gemini's stream.
func geminiEvents(a answer) (out []string) {
	part := func(text, finish string) doc {
		c := doc{"index": 0, "content": doc{"role": "model", "parts": []any{doc{"text": text}}}}
		if finish != "" {
			c["finishReason"] = finish
		}
		return doc{"candidates": []any{c}, "modelVersion": "gemini-double"}
	}
	finish := "STOP"
	if a.stop == refused {
		finish = "SAFETY"
	}
	for _, p := range a.pieces() {
		out = append(out, render(part(p, "")))
	}
	last := part("", finish)
	counts := doc{"promptTokenCount": a.in, "candidatesTokenCount": a.out - a.thoughts, "totalTokenCount": a.in + a.out}
	if a.thoughts > 0 {
		counts["thoughtsTokenCount"] = a.thoughts
	}
	last["usageMetadata"] = counts
	return append(out, render(last))
}

// writer writes a stream of events, of which it may break off half.
type writer struct {
	http.ResponseWriter

	events []string
}

func (w *writer) add(name string, doc any) {
	if name != "" {
		name = "event: " + name + "\n"
	}
	w.events = append(w.events, name+"data: "+render(doc)+"\n\n")
}

func (w *writer) send(a answer) {
	w.Header().Set("Content-Type", "text/event-stream")
	text := strings.Join(w.events, "")
	if a.end == broken {
		_, _ = io.WriteString(w, text[:len(text)/2])
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, text)
}

// refuseOpenAI writes an error in OpenAI's form.
func refuseOpenAI(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, render(doc{"error": doc{"message": message, "type": "invalid_request_error", "param": nil, "code": code}}))
}

// scripted answers a valid request with an error, if its answer is one.
func scripted(w http.ResponseWriter, a answer) (done bool) {
	if a.status == 0 {
		return false
	}
	if a.retryAfter != "" {
		w.Header().Set("Retry-After", a.retryAfter)
	}
	switch a.status {
	case http.StatusTooManyRequests:
		refuseOpenAI(w, a.status, "429", "Requests have exceeded token rate limit. Please retry after 1 second.")
	case http.StatusRequestEntityTooLarge:
		refuseOpenAI(w, http.StatusBadRequest, "context_length_exceeded", "This model's maximum context length is 8 tokens.")
	default:
		refuseOpenAI(w, a.status, "server_error", "boom")
	}
	return true
}

// openResponses starts a double of OpenAI's Responses API.
func openResponses(t *testing.T) flavour {
	t.Helper()
	d := newDesk()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // an incomplete body is no document
		if problem := checkResponses(r, body); problem != "" {
			refuseOpenAI(w, http.StatusTeapot, "rule", problem)
			return
		}
		a := d.answer(r.Header, body)
		if scripted(w, a) {
			return
		}
		out := &writer{ResponseWriter: w}
		event := func(name string, more doc) {
			more["type"] = name
			out.add(name, more)
		}
		event("response.created", doc{"response": doc{"object": "response", "model": "gpt-double", "status": "in_progress"}})
		kind, field := "response.output_text", "text"
		pieces := a.pieces()
		if a.stop == refused {
			kind, field, pieces = "response.refusal", "refusal", []string{secretWords}
		}
		for _, p := range pieces {
			event(kind+".delta", doc{"output_index": 0, "content_index": 0, "delta": p})
		}
		event(kind+".done", doc{"output_index": 0, "content_index": 0, field: strings.Join(pieces, "")})
		event("response.completed", doc{"response": doc{
			"object": "response", "model": "gpt-double", "status": "completed", "output": []any{},
			"usage": doc{
				"input_tokens": a.in, "output_tokens": a.out, "total_tokens": a.in + a.out,
				"input_tokens_details": doc{"cached_tokens": 0}, "output_tokens_details": doc{"reasoning_tokens": a.thoughts},
			},
		}})
		out.send(a)
	}))
	t.Cleanup(s.Close)
	return flavour{
		id: "my-responses", model: "gpt-5.6", desk: d, counted: true,
		entry: fmt.Sprintf(`{"api":"openai-responses","baseUrl":%q,"key":{"env":"FLAVOUR_KEY"}}`, s.URL+"/v1"),
	}
}

// checkResponses returns the rule of the Responses API that a request breaks; empty for none.
func checkResponses(r *http.Request, body []byte) string {
	var req struct {
		Model  string
		Input  []doc
		Stream bool
		Store  *bool
		Text   struct {
			Format struct {
				Type, Name string
				Strict     bool
				Schema     json.RawMessage
			}
		}
	}
	members := map[string]json.RawMessage{}
	if json.Unmarshal(body, &members) != nil || json.Unmarshal(body, &req) != nil {
		return "the body is no document"
	}
	for _, name := range []string{"messages", "response_format", "max_tokens", "max_completion_tokens", "stop", "stream_options"} {
		if members[name] != nil {
			return "unsupported parameter: " + name
		}
	}
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/responses":
		return "unknown path " + r.URL.Path
	case r.Header.Get("Authorization") != "Bearer "+flavourKey:
		return "wrong key"
	case req.Model == "" || len(req.Input) == 0 || !req.Stream:
		return "model, input and stream are required"
	case req.Store == nil || *req.Store:
		return "the host must not store answers at the vendor"
	case req.Text.Format.Type != "json_schema" || req.Text.Format.Name == "" || !strings.Contains(string(req.Text.Format.Schema), `"answer"`):
		return "text.format: no schema"
	}
	return ""
}

// azureVersion is the version of Azure's API.
const azureVersion = "2024-10-21"

// openAzure starts a double of Azure OpenAI: the deployment is in the path, the version in the query, the
// key in a header of its own, and filters have results.
func openAzure(t *testing.T) flavour {
	t.Helper()
	const deployment = "desk gpt-4o"
	d := newDesk()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // an incomplete body is no document
		a, err := readOpenAI(body)
		switch {
		case r.URL.Path != "/openai/deployments/"+deployment+"/chat/completions":
			refuseOpenAI(w, http.StatusNotFound, "DeploymentNotFound", "The API deployment for this resource does not exist.")
			return
		case r.URL.Query().Get("api-version") != azureVersion:
			refuseOpenAI(w, http.StatusNotFound, "404", "Resource not found")
			return
		case r.Header.Get("Api-Key") != flavourKey || r.Header.Get("Authorization") != "":
			refuseOpenAI(w, http.StatusUnauthorized, "401", "Access denied due to invalid subscription key or wrong API endpoint.")
			return
		case err != nil || !strings.Contains(string(a.schema), `"answer"`):
			refuseOpenAI(w, http.StatusTeapot, "rule", "no strict schema")
			return
		}
		said := d.answer(r.Header, body)
		if scripted(w, said) {
			return
		}
		if said.stop == refused {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, render(doc{"error": doc{
				"message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
				"type":    nil, "param": "prompt", "code": "content_filter", "status": http.StatusBadRequest,
				"innererror": doc{"code": "ResponsibleAIPolicyViolation", "content_filter_result": doc{"violence": doc{"filtered": true, "severity": "high"}}},
			}}))
			return
		}
		out := &writer{ResponseWriter: w}
		out.add("", doc{"choices": []any{}, "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": []any{doc{"prompt_index": 0}}})
		for _, p := range said.pieces() {
			out.add("", doc{"model": "gpt-4o-double", "choices": []any{doc{"index": 0, "delta": doc{"content": p}, "finish_reason": nil, "content_filter_results": doc{}}}})
		}
		out.add("", doc{"model": "gpt-4o-double", "choices": []any{doc{"index": 0, "delta": doc{}, "finish_reason": "stop"}}})
		out.add("", doc{"model": "gpt-4o-double", "choices": []any{}, "usage": doc{
			"prompt_tokens": said.in, "completion_tokens": said.out, "total_tokens": said.in + said.out,
			"completion_tokens_details": doc{"reasoning_tokens": said.thoughts},
		}})
		out.events = append(out.events, "data: [DONE]\n\n")
		out.send(said)
	}))
	t.Cleanup(s.Close)
	return flavour{
		id: "my-azure", model: deployment, desk: d,
		entry: fmt.Sprintf(`{"api":"azure-openai","baseUrl":%q,"key":{"env":"FLAVOUR_KEY"},"query":{"api-version":%q}}`, s.URL, azureVersion),
	}
}
