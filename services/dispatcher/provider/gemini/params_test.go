package gemini_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/gemini"
	double "waybill.dev/waybill/test/double/gemini"
)

// The host projects schemas for a provider that says to which dialect.
var _ provider.Strict = (*gemini.Provider)(nil)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestCall_SaysTheRequestInTheVendorsWords(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	temperature, topP, seed := 0.0, 0.1, int64(7)
	r.call(t, provider.Request{
		Provider: "gemini",
		Model:    double.DefaultModel,
		System:   "be <brief>",
		Messages: []provider.Message{
			{Role: "system", Content: raw(`"and kind"`)},
			{
				Role:    "user",
				Content: raw(`[{"type":"text","text":"a<b"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQI="}}]`),
			},
			{Role: "tool", Content: raw(`"found"`)},
			{Role: "assistant", Content: raw(`"yes"`)},
			{Role: "assistant", Content: raw(`""`)},
			{
				Role:    "user",
				Content: raw(`[{"type":"file","mimeType":"application/pdf","url":"https://x.example/a.pdf"},{"type":"input_audio","input_audio":{"data":"AQI=","format":"wav"}}]`),
			},
		},
		Schema:       raw(schema),
		SchemaName:   "vendor_waybill_x-1",
		MaxTokens:    50,
		Temperature:  &temperature,
		TopP:         &topP,
		Seed:         &seed,
		Stop:         []string{"END"},
		Tenant:       "secret-tenant",
		NodeID:       "secret-node",
		InvocationID: "inv:1",
		Traceparent:  "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	})
	rec := r.server.Requests()[0]
	require.Equal(t, 200, rec.Status)
	require.JSONEq(t, `{
		"systemInstruction":{"role":"user","parts":[{"text":"be <brief>"},{"text":"and kind"}]},
		"contents":[
			{"role":"user","parts":[{"text":"a<b"},{"inlineData":{"mimeType":"image/png","data":"AQI="}},{"text":"found"}]},
			{"role":"model","parts":[{"text":"yes"}]},
			{"role":"user","parts":[{"fileData":{"fileUri":"https://x.example/a.pdf","mimeType":"application/pdf"}},{"inlineData":{"mimeType":"audio/wav","data":"AQI="}}]}],
		"generationConfig":{"maxOutputTokens":50,"temperature":0,"topP":0.1,"seed":7,"stopSequences":["END"],
			"responseMimeType":"application/json","responseJsonSchema":`+schema+`}}`, string(rec.Body))
	require.Contains(t, string(rec.Body), schema, "the schema keeps its order and its bytes")
	require.NotContains(t, string(rec.Body), "secret-")
	require.Equal(t, key, rec.Header.Get("X-Goog-Api-Key"))
	require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", rec.Header.Get("Traceparent"))
}

func TestCall_PutsTheSchemaIntoAFunctionThatMustBeCalled(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "answer", "vendor_x-1": "vendor_x-1", "9lives": "_9lives", "-x": "_-x", "_x": "_x",
		strings.Repeat("7", 64): "_" + strings.Repeat("7", 63),
	} {
		r := newRig(t, nil)
		req := askVia(provider.ViaTool)
		req.SchemaName = name
		res, _ := r.call(t, req, double.Reply{Calls: []double.Call{{Name: want, Args: `{"z":1,"a":null}`}}})
		require.Equal(t, `{"z":1,"a":null}`, res.Text)
		require.Equal(t, provider.StopClean, res.Stop)
		require.JSONEq(t, `{
			"contents":[{"role":"user","parts":[{"text":"private words"}]}],
			"tools":[{"functionDeclarations":[{"name":"`+want+`","description":"Gives the answer.","parametersJsonSchema":`+schema+`}]}],
			"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["`+want+`"]}},"generationConfig":{}}`, r.lastBody(t))
		require.Contains(t, r.lastBody(t), schema)
	}
}

// Every call with a schema sends it strictly: the server refuses the others.
func TestCall_NeverLeavesTheSchemaOut(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, double.Options{RequireSchema: true}, nil)
	for _, via := range []provider.SchemaVia{provider.ViaFormat, provider.ViaTool} {
		r.call(t, askVia(via))
	}
	require.Equal(t, 400, r.fail(t, ask()).Status)
}

// A JSON object without a schema is the response type alone.
func TestCall_RequestsAnyObject(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	req := ask()
	req.Via = provider.ViaObject
	r.call(t, req)
	require.JSONEq(t, `{"contents":[{"role":"user","parts":[{"text":"private words"}]}],"generationConfig":{"responseMimeType":"application/json"}}`, r.lastBody(t))
}

func TestCall_LeavesOutWhatIsNotAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.call(t, ask())
	require.JSONEq(t, `{"contents":[{"role":"user","parts":[{"text":"private words"}]}],"generationConfig":{}}`, r.lastBody(t))
	require.NotContains(t, r.server.Requests()[0].Header, "Traceparent")
}

func TestCall_TakesTheSystemTextForTheTurnWhereThereIsNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	req := ask()
	req.System, req.Messages = "say hello", nil
	r.call(t, req)
	require.JSONEq(t, `{"contents":[{"role":"user","parts":[{"text":"say hello"}]}],"generationConfig":{}}`, r.lastBody(t))
}

func TestCall_NamesThePartTheVendorCannotTake(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`[{"type":"text","text":"a"},{"type":"image","mimeType":"image/gif","base64":"AQI="}]`: "unsupported_modality: messages[1].content[1]: Gemini takes no image/gif",
		`[{"type":"file","mimeType":"application/zip","base64":"AQI="}]`:                       "unsupported_modality: messages[1].content[0]: Gemini takes no application/zip",
		`[{"type":"image","mimeType":"image/png","url":"http://x.example/a"}]`:                 "unsupported_modality: messages[1].content[0]: Gemini fetches https",
		`[{"type":"hologram"}]`: "provider_request_invalid: messages[1].content[0]: type",
	} {
		r := newRig(t, nil)
		req := ask()
		req.Messages = append(req.Messages, provider.Message{Role: "user", Content: raw(content)})
		require.ErrorContains(t, r.fail(t, req), want)
		require.Empty(t, r.server.Requests())
	}
	req := ask()
	req.Messages = []provider.Message{{
		Role:    "system",
		Content: raw(`[{"type":"image","mimeType":"image/png","base64":"AQI="}]`),
	}}
	require.ErrorContains(t, newRig(t, nil).fail(t, req), "unsupported_modality: messages[0].content[0]: a system text holds no image")
	req.Messages = []provider.Message{{Role: "user", Content: raw(`""`)}}
	require.ErrorContains(t, newRig(t, nil).fail(t, req), "provider_request_invalid: messages: all are empty")
}

func TestCall_AsksForThoughtsWithinTheBoundOfTheAnswer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		model  string
		tokens int
		want   string
	}{
		{double.DefaultModel, 0, `{"includeThoughts":true}`},
		{double.DefaultModel, 300, ``},
		{double.DefaultModel, 512, ``},
		{double.DefaultModel, 513, `{"includeThoughts":true,"thinkingBudget":512}`},
		{double.DefaultModel, 4000, `{"includeThoughts":true,"thinkingBudget":2000}`},
		{double.DefaultModel, math.MaxInt, `{"includeThoughts":true,"thinkingBudget":24576}`},
		{"gemini-2.0-double", 0, ``},
		{"gemini-2.5-flash-image", 4000, ``},
		{"gemini-2.5-double-preview-tts", 4000, ``},
	} {
		r := newRig(t, nil)
		req := ask()
		req.Model, req.MaxTokens, req.Thoughts = tc.model, tc.tokens, true
		r.call(t, req)
		var body struct {
			GenerationConfig struct{ ThinkingConfig json.RawMessage }
		}
		require.NoError(t, json.Unmarshal([]byte(r.lastBody(t)), &body))
		got := string(body.GenerationConfig.ThinkingConfig)
		if tc.want == "" {
			require.Empty(t, got, "%+v", tc)
			continue
		}
		require.JSONEq(t, tc.want, got, "%+v", tc)
	}
}

func TestCall_AsksModelsForWhatTheyMake(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		double.DefaultModel: ``, "gemini-2.5-double-image": `["TEXT","IMAGE"]`, "gemini-2.5-double-preview-tts": `["AUDIO"]`,
	} {
		r := newRig(t, nil)
		req := ask()
		req.Model = model
		r.call(t, req)
		require.Equal(t, want != "", strings.Contains(r.lastBody(t), `"responseModalities":`+want), model)
	}
}

func TestCall_FoldsSeedsThatAreTooLargeForTheVendor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	seedOf := func(seed int64) (out int64) {
		req := ask()
		req.Seed = &seed
		_, err := r.Call(t.Context(), req, nil)
		require.NoError(t, err)
		var body struct{ GenerationConfig struct{ Seed int64 } }
		require.NoError(t, json.Unmarshal([]byte(r.lastBody(t)), &body))
		return body.GenerationConfig.Seed
	}
	for _, small := range []int64{0, -1, math.MaxInt32, math.MinInt32} {
		require.Equal(t, small, seedOf(small))
	}
	for _, large := range []int64{math.MaxInt32 + 1, math.MaxInt64, math.MinInt64} {
		require.Equal(t, seedOf(large), seedOf(large))
	}
	require.NotEqual(t, seedOf(1<<40), seedOf(2<<40))
}

// Whatever the messages are, the server accepts what is made of them, or the
// adapter says which one is wrong.
func TestCall_MakesTurnsTheVendorAccepts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	content := rapid.SampledFrom([]string{
		`""`, `"x"`, `[]`, `[{"type":"text","text":""}]`,
		`[{"type":"text","text":"y"},{"type":"image","mimeType":"image/png","base64":"AQI="}]`,
		`[{"type":"audio","mimeType":"audio/ogg","url":"https://x.example/a"}]`,
		`[{"type":"image","mimeType":"image/bmp","base64":"AQI="}]`,
	})
	rapid.Check(t, func(rt *rapid.T) {
		req := ask()
		req.System = rapid.SampledFrom([]string{"", "s"}).Draw(rt, "system")
		req.Messages = nil
		for range rapid.IntRange(1, 6).Draw(rt, "n") {
			req.Messages = append(req.Messages, provider.Message{
				Role:    rapid.SampledFrom([]string{"system", "user", "assistant", "tool"}).Draw(rt, "role"),
				Content: raw(content.Draw(rt, "content")),
			})
		}
		asked := len(r.server.Requests())
		if _, err := r.Call(t.Context(), req, nil); err != nil {
			require.ErrorContains(rt, err, "messages", "the vendor refused: %v", err)
			require.Len(rt, r.server.Requests(), asked)
		}
	})
}
