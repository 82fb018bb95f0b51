package compat_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
)

// sentBy returns the request of a call, without the server's address.
func sentBy(t *testing.T, cfg compat.Config, req provider.Request) (path string, header http.Header, body map[string]any) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		path, header = r.URL.Path, r.Header
		_ = json.Unmarshal(b, &body)
		_, _ = w.Write([]byte(textDelta(0, `"a"`) + completed("[]")))
	}))
	t.Cleanup(server.Close)
	cfg.BaseURL, cfg.Responses = server.URL+"/v1", true
	p, err := compat.New(cfg)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	_, err = p.Call(t.Context(), req, nil)
	require.NoError(t, err)
	return path, header, body
}

func TestResponses_SaysTheRequestInTheVendorsWords(t *testing.T) {
	t.Parallel()
	temperature, topP := 0.5, 0.9
	seed := int64(7)
	req := provider.Request{
		Model: "gpt-4o", System: "Be brief.", MaxTokens: 100, Temperature: &temperature, TopP: &topP, Seed: &seed,
		InvocationID: "i-1", Credential: "sk-of-a-tenant", Thoughts: true,
		Messages: []provider.Message{
			{Role: "user", Content: []byte(`[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"low"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}},{"type":"file","mimeType":"application/pdf","url":"https://x/b.pdf"}]`)},
			{Role: "assistant", Content: []byte(`[{"type":"text","text":"seen"}]`)},
			{Role: "user", Content: []byte(`"and?"`)},
		},
		Schema: []byte(`{"type":"object","properties":{"b":{},"a":{}}}`), SchemaName: "answer",
	}
	path, header, body := sentBy(t, compat.Config{Dialect: compat.DialectOpenAI, APIKey: "sk-of-the-host"}, req)
	require.Equal(t, "/v1/responses", path)
	require.Equal(t, []string{"Bearer sk-of-a-tenant"}, header.Values("Authorization"))
	require.Equal(t, "i-1", header.Get("Idempotency-Key"))
	want := map[string]any{
		"model": "gpt-4o", "stream": true, "store": false, "max_output_tokens": 100.0, "temperature": 0.5, "top_p": 0.9,
		"input": []any{
			map[string]any{"role": "system", "content": "Be brief."},
			map[string]any{"role": "user", "content": []any{
				map[string]any{"type": "input_text", "text": "look"},
				map[string]any{"type": "input_image", "image_url": "https://x/y.png", "detail": "low"},
				map[string]any{"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
				map[string]any{"type": "input_file", "file_url": "https://x/b.pdf"},
			}},
			map[string]any{"role": "assistant", "content": []any{
				map[string]any{"type": "output_text", "text": "seen", "annotations": []any{}},
			}},
			map[string]any{"role": "user", "content": "and?"},
		},
		"text": map[string]any{"format": map[string]any{
			"type": "json_schema", "name": "answer", "strict": true,
			"schema": map[string]any{"type": "object", "properties": map[string]any{"b": map[string]any{}, "a": map[string]any{}}},
		}},
	}
	require.Equal(t, want, body)

	req.Via, req.AsWritten, req.Messages = provider.ViaTool, true, req.Messages[2:]
	_, _, body = sentBy(t, compat.Config{ReasoningEffort: "low"}, req)
	require.NotContains(t, body, "text")
	require.Equal(t, map[string]any{"type": "function", "name": "answer"}, body["tool_choice"])
	require.Equal(t, false, body["parallel_tool_calls"])
	require.Equal(t, map[string]any{"effort": "low"}, body["reasoning"], "no summary is asked of other servers")
	tool := body["tools"].([]any)[0].(map[string]any)
	require.Equal(t, "function", tool["type"])
	require.Equal(t, false, tool["strict"])
	require.Contains(t, tool["parameters"], "properties")

	req.Via, req.Schema, req.Model = provider.ViaObject, nil, "o9"
	_, _, body = sentBy(t, compat.Config{Dialect: compat.DialectOpenAI, ReasoningEffort: "high"}, req)
	require.Equal(t, map[string]any{"format": map[string]any{"type": "json_object"}}, body["text"])
	require.Equal(t, map[string]any{"effort": "high", "summary": "auto"}, body["reasoning"])
	require.NotContains(t, body, "temperature", "reasoning models reject it")
	require.NotContains(t, body, "tools")
}

// What the API does not have is named, and the server is not called.
func TestResponses_NamesWhatItDoesNotHave(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(*provider.Request){
		"stop: the Responses API takes no stop sequences": func(r *provider.Request) { r.Stop = []string{"x"} },
		"messages[0].role": func(r *provider.Request) { r.Messages[0].Role = "tool" },
		"messages[0].content[0]: the Responses API takes no sound": func(r *provider.Request) {
			r.Messages[0].Content = []byte(`[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]`)
		},
		"messages[0].content[0]: the Responses API takes image parts from the user alone": func(r *provider.Request) {
			r.Messages[0].Role, r.Messages[0].Content = "assistant", []byte(`[{"type":"image_url","image_url":{"url":"https://x"}}]`)
		},
		"messages[0].content[0]: image/tiff": func(r *provider.Request) {
			r.Messages[0].Content = []byte(`[{"type":"image","mimeType":"image/tiff","base64":"AAAA"}]`)
		},
		"messages[0].content[0]: type": func(r *provider.Request) { r.Messages[0].Content = []byte(`[{"type":"video"}]`) },
	} {
		req := ask()
		req.Messages = []provider.Message{{Role: "user", Content: []byte(`"x"`)}}
		edit(&req)
		_, err := served{status: 500}.call(t, compat.Config{Responses: true, Dialect: compat.DialectOpenAI, APIKey: "k"}, req, nil)
		e, ok := provider.As(err)
		require.True(t, ok, want)
		require.Contains(t, e.Message, want)
		require.Zero(t, e.Status, want)
	}
}
