package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
	double "waybill.dev/waybill/test/double/anthropic"
)

func message(role, content string) provider.Message {
	return provider.Message{Role: role, Content: json.RawMessage(content)}
}

func TestCall_SaysTheRequestInTheVendorsWords(t *testing.T) {
	t.Parallel()
	temperature, topP, seed := 0.0, 0.5, int64(7)
	req := provider.Request{
		Provider: "anthropic", Model: double.DefaultModel, System: "be <brief>",
		Messages: []provider.Message{
			message("user", `[{"type":"text","text":"a<b"},{"type":"image","mimeType":"image/png","base64":"AQI="}]`),
			message("assistant", `"yes"`),
			message("system", `"and kind"`),
			message("tool", `"42"`),
		},
		Schema: json.RawMessage(answerSchema), SchemaName: "vendor_waybill_x-1",
		MaxTokens: 50, Temperature: &temperature, TopP: &topP, Seed: &seed, Stop: []string{"END"},
		NodeID: "secret-node", Tenant: "secret-tenant",
	}
	const common = `"model":"claude-opus-4-6","stream":true,"max_tokens":50,"temperature":0,"top_p":0.5,"stop_sequences":["END"],
		"system":[{"type":"text","text":"be <brief>"},{"type":"text","text":"and kind","cache_control":{"type":"ephemeral"}}],
		"messages":[
			{"role":"user","content":[{"type":"text","text":"a<b"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQI="}}]},
			{"role":"assistant","content":[{"type":"text","text":"yes"}]},
			{"role":"user","content":[{"type":"text","text":"42"}]}]`
	for via, want := range map[provider.SchemaVia]string{
		provider.ViaFormat: `"output_config":{"format":{"type":"json_schema","schema":` + answerSchema + `}}`,
		provider.ViaTool: `"tools":[{"name":"vendor_waybill_x-1","strict":true,"input_schema":` + answerSchema + `}],
			"tool_choice":{"type":"tool","name":"vendor_waybill_x-1","disable_parallel_tool_use":true}`,
	} {
		r := newRig(t, nil)
		req.Via = via
		r.call(t, req)
		rec := r.server.Requests()[0]
		require.Equal(t, "/v1/messages", rec.Path)
		body := string(rec.Body)
		require.JSONEq(t, "{"+common+","+want+"}", body)
		require.Less(t, strings.Index(body, `"z"`), strings.Index(body, `"a"`), "the schema keeps its order")
		require.NotContains(t, body, "secret")
	}
}

func TestCall_LeavesOutWhatIsNotAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.call(t, ask())
	body := r.sent(t)
	require.Len(t, body, 4, "model, messages, max_tokens and stream alone: %v", body)
	require.EqualValues(t, anthropic.DefaultMaxTokens, body["max_tokens"], "the vendor wants a bound")
}

func TestCall_NamesASchemaThatHasNoName(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.call(t, tool.ask())
	require.Equal(t, map[string]any{
		"type":                      "tool",
		"name":                      "answer",
		"disable_parallel_tool_use": true,
	}, r.sent(t)["tool_choice"])
}

func TestCall_PutsEveryKindOfPartInTheVendorsBlocks(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		`{"type":"text","text":"x"}`:                                                                 `{"type":"text","text":"x"}`,
		`{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}`:                         `{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}`,
		`{"type":"image_url","image_url":{"url":"data:image/webp;base64,AQI="}}`:                     `{"type":"image","source":{"type":"base64","media_type":"image/webp","data":"AQI="}}`,
		`{"type":"file","mimeType":"application/pdf","url":"https://x.example/a.pdf"}`:               `{"type":"document","source":{"type":"url","url":"https://x.example/a.pdf"}}`,
		`{"type":"file","url":"https://x.example/a"}`:                                                `{"type":"document","source":{"type":"url","url":"https://x.example/a"}}`,
		`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AQI="}}`: `{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"AQI="}}`,
		`{"type":"file","mimeType":"text/csv","name":"a.csv","base64":"YSxi"}`:                       `{"type":"document","title":"a.csv","source":{"type":"text","media_type":"text/plain","data":"a,b"}}`,
	} {
		r := newRig(t, nil)
		req := ask()
		req.Messages = []provider.Message{message("user", "["+part+"]")}
		r.call(t, req)
		got, err := json.Marshal(r.sent(t)["messages"])
		require.NoError(t, err)
		require.JSONEq(t, `[{"role":"user","content":[`+want+`]}]`, string(got))
	}
}

func TestCall_RefusesPartsTheVendorDoesNotTake(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ role, part, want string }{
		{
			"user", `{"type":"input_audio","input_audio":{"data":"AQI=","format":"wav"}}`,
			"messages[1].content[1]: audio: this provider takes text, images and files",
		},
		{"user", `{"type":"audio","mimeType":"audio/mpeg","url":"https://x.example/a"}`, "messages[1].content[1]: audio"},
		{
			"user", `{"type":"image","mimeType":"image/tiff","base64":"AQI="}`,
			`messages[1].content[1]: image of type "image/tiff"; this provider takes image/jpeg`,
		},
		{
			"user", `{"type":"file","mimeType":"application/zip","base64":"AQI="}`,
			`messages[1].content[1]: file of type "application/zip"`,
		},
		{"user", `{"type":"file","mimeType":"text/plain","base64":"/w=="}`, "messages[1].content[1]: file of type"},
		{
			"user", `{"type":"file","mimeType":"text/plain","url":"https://x.example/a"}`,
			"messages[1].content[1]: file of type",
		},
		{
			"assistant", `{"type":"image","mimeType":"image/png","base64":"AQI="}`,
			"messages[1].content[1]: image: this provider takes nothing but text of the assistant",
		},
		{"system", `{"type":"image","mimeType":"image/png","base64":"AQI="}`, "of the system"},
	} {
		r := newRig(t, nil)
		req := ask()
		req.Messages = append(req.Messages, message(tc.role, `[{"type":"text","text":"x"},`+tc.part+`]`))
		e := r.fail(t, req)
		require.Equal(t, provider.CodeUnsupportedModality, e.Code, tc.part)
		require.Contains(t, e.Message, tc.want)
		require.False(t, e.Retryable)
		require.Empty(t, r.server.Requests(), "it is not asked")
	}
}

func TestCall_KeepsToTheVendorsTurns(t *testing.T) {
	t.Parallel()
	const said = `[{"role":"user","content":[{"type":"text","text":"hi"}]}]`
	for _, tc := range []struct {
		system   string
		messages []provider.Message
		want     string
	}{
		{"hi", nil, said},
		{"", []provider.Message{message("system", `"hi"`)}, said},
		{
			"",
			[]provider.Message{
				message("assistant", `""`),
				message("user", `[{"type":"text","text":""},{"type":"text","text":"hi"}]`),
				message("user", `[]`),
			},
			said,
		},
		{
			"",
			[]provider.Message{message("user", `"a"`), message("user", `"b"`)},
			`[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"b"}]}]`,
		},
		{
			"",
			[]provider.Message{message("user", `"a"`), message("assistant", `"b \n"`)},
			`[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"text","text":"b"}]}]`,
		},
	} {
		r := newRig(t, nil)
		r.call(t, provider.Request{Model: double.DefaultModel, System: tc.system, Messages: tc.messages})
		got, err := json.Marshal(r.sent(t)["messages"])
		require.NoError(t, err)
		require.JSONEq(t, tc.want, string(got))
	}
}

func TestCall_NamesWhatTheVendorWouldRefuse(t *testing.T) {
	t.Parallel()
	number := func(n float64) *float64 { return &n }
	for want, spoil := range map[string]func(*provider.Request){
		"temperature: 1.5; this provider takes 0 to 1": func(r *provider.Request) { r.Temperature = number(1.5) },
		"topP: -1; want 0 to 1":                        func(r *provider.Request) { r.TopP = number(-1) },
		"stop[1]: has nothing but white space":         func(r *provider.Request) { r.Stop = []string{"x", "\n"} },
		"messages: all of them are empty":              func(r *provider.Request) { r.Messages = []provider.Message{message("user", `""`)} },
		"the assistant's; this provider wants":         func(r *provider.Request) { r.Messages = []provider.Message{message("assistant", `"x"`)} },
		"nothing but white space; leave it out":        func(r *provider.Request) { r.Messages = append(r.Messages, message("assistant", `" "`)) },
		"goes on from no beginning": func(r *provider.Request) {
			r.Schema, r.Messages = json.RawMessage(answerSchema), append(r.Messages, message("assistant", `"{"`))
		},
		"messages[0].content[0]: type": func(r *provider.Request) { r.Messages = []provider.Message{message("user", `[{"type":"hologram"}]`)} },
	} {
		r := newRig(t, nil)
		req := ask()
		spoil(&req)
		e := r.fail(t, req)
		require.Equal(t, provider.CodeInvalidRequest, e.Code)
		require.Contains(t, e.Message, want)
		require.Empty(t, r.server.Requests())
	}
}

func TestCall_AsksForThoughtsAsTheModelWantsIt(t *testing.T) {
	t.Parallel()
	adaptive := map[string]any{"type": "adaptive", "display": "summarized"}
	budget := func(n float64) map[string]any { return map[string]any{"type": "enabled", "budget_tokens": n} }
	number := func(n float64) *float64 { return &n }
	for _, tc := range []struct {
		model string
		edit  func(*provider.Request)
		want  any
	}{
		{"claude-opus-4-6", nil, adaptive},
		{"claude-fable-5-1", nil, adaptive},
		{"claude-opus-9", nil, adaptive},
		{"claude-haiku-4-5-20251001", nil, budget(8192)},
		{"claude-sonnet-4-5", func(r *provider.Request) { r.MaxTokens = 3000 }, budget(1500)},
		{"claude-sonnet-4-5", func(r *provider.Request) { r.MaxTokens = 2048 }, budget(1024)},
		{"claude-sonnet-4-5", func(r *provider.Request) { r.MaxTokens = 60_000 }, budget(16_384)},
		{"claude-sonnet-4-5", func(r *provider.Request) { r.MaxTokens = 2047 }, nil},
		{"claude-3-haiku-20240307", nil, nil},
		{"claude-opus-4-6", func(r *provider.Request) { r.Thoughts = false }, nil},
		{"claude-opus-4-6", func(r *provider.Request) { r.Temperature = number(0.2) }, nil},
		{"claude-opus-4-6", func(r *provider.Request) { r.Temperature = number(1) }, adaptive},
		{"claude-opus-4-6", func(r *provider.Request) { r.TopP = number(0.9) }, nil},
		{"claude-opus-4-6", func(r *provider.Request) { r.TopP = number(0.95) }, adaptive},
		{"claude-opus-4-6", func(r *provider.Request) { r.Schema = json.RawMessage(answerSchema) }, adaptive},
		{
			"claude-opus-4-6",
			func(r *provider.Request) { r.Schema, r.Via = json.RawMessage(answerSchema), provider.ViaTool },
			nil,
		},
	} {
		r := newRig(t, models(tc.model))
		req := ask()
		req.Model, req.Thoughts = tc.model, true
		if tc.edit != nil {
			tc.edit(&req)
		}
		res, pieces := r.call(t, req, double.Reply{Thoughts: []string{"hm", "m"}, Pieces: []string{"a", "b"}})
		require.Equal(t, tc.want, r.sent(t)["thinking"], tc.model)
		var thoughts string
		for _, d := range pieces {
			thoughts += d.Thought
		}
		require.Equal(t, tc.want != nil, thoughts == "hmm", "%s: %q", tc.model, thoughts)
		require.Equal(t, "ab", res.Text)
	}
}
