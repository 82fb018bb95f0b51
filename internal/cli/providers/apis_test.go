package providers

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/bedrock"
)

// doubled is the server of an API, which can refuse each form and leave out counts and pieces.
type doubled struct {
	// refuses has the forms that are refused: format, tool, object.
	refuses string
	// whole sends the answer in one piece, silent leaves out the usage, wrong answers any schema wrongly.
	whole, silent, wrong bool
}

// formOf returns the form of a request of any API.
func formOf(body string) string {
	switch {
	case strings.Contains(body, `"tools"`):
		return "tool"
	case strings.Contains(body, `"json_schema"`), strings.Contains(body, `"responseJsonSchema"`), strings.Contains(body, `"responseSchema"`), strings.Contains(body, `"output_config"`), strings.Contains(body, `"output_format"`):
		return "format"
	case strings.Contains(body, `"json_object"`), strings.Contains(body, `"responseMimeType":"application/json"`):
		return "object"
	}
	return ""
}

// pieces returns the pieces of the answer to a request.
func (d doubled) pieces(body string) []string {
	switch {
	case formOf(body) != "" || strings.Contains(body, "JSON Schema"):
		if d.wrong {
			return []string{`{"ready":"yes"}`}
		}
		return []string{`{"ready":true}`}
	case d.whole:
		return []string{"one two three"}
	}
	return []string{"one ", "two ", "three"}
}

// chat, claude, gemini and responses return the events of an answer of each API.
func (d doubled) chat(body string) (events []string) {
	for _, p := range d.pieces(body) {
		delta := fmt.Sprintf(`{"content":%q}`, p)
		if formOf(body) == "tool" {
			delta = fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"readiness","arguments":%q}}]}`, p)
		}
		events = append(events, `{"choices":[{"index":0,"delta":`+delta+`}]}`)
	}
	return append(events, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]`+d.usage(`,"usage":{"prompt_tokens":7,"completion_tokens":3}`)+`}`)
}

func (d doubled) usage(members string) string {
	if d.silent {
		return ""
	}
	return members
}

func (d doubled) claude(body string) []string {
	block, delta, stop := `{"type":"text","text":""}`, `{"type":"text_delta","text":%q}`, "end_turn"
	if formOf(body) == "tool" {
		block, delta, stop = `{"type":"tool_use","id":"t","name":"readiness","input":{}}`, `{"type":"input_json_delta","partial_json":%q}`, "tool_use"
	}
	events := []string{
		`{"type":"message_start","message":{"type":"message","role":"assistant","model":"m","content":[]` + d.usage(`,"usage":{"input_tokens":7,"output_tokens":1}`) + `}}`,
		`{"type":"content_block_start","index":0,"content_block":` + block + `}`,
	}
	for _, p := range d.pieces(body) {
		events = append(events, `{"type":"content_block_delta","index":0,"delta":`+fmt.Sprintf(delta, p)+`}`)
	}
	return append(events, `{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"`+stop+`"}`+d.usage(`,"usage":{"output_tokens":3}`)+`}`, `{"type":"message_stop"}`)
}

func (d doubled) gemini(body string) (events []string) {
	for _, p := range d.pieces(body) {
		part := fmt.Sprintf(`{"text":%q}`, p)
		if formOf(body) == "tool" {
			part = `{"functionCall":{"name":"readiness","args":` + p + `}}`
		}
		events = append(events, `{"candidates":[{"content":{"role":"model","parts":[`+part+`]}}]}`)
	}
	return append(events, `{"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}]`+d.usage(`,"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3}`)+`}`)
}

func (d doubled) responses(body string) (events []string) {
	kind := "response.output_text.delta"
	if formOf(body) == "tool" {
		kind = "response.function_call_arguments.delta"
		events = append(events, `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"readiness"}}`)
	}
	for _, p := range d.pieces(body) {
		events = append(events, fmt.Sprintf(`{"type":%q,"output_index":0,"delta":%q}`, kind, p))
	}
	return append(events, `{"type":"response.completed","response":{"status":"completed","output":[]`+d.usage(`,"usage":{"input_tokens":7,"output_tokens":3}`)+`}}`)
}

// refusal is the error of each API for a form.
const refusal = `{"type":"error","error":{"code":400,"status":"INVALID_ARGUMENT","type":"invalid_request_error","message":"%s is not supported: response schema, output_config, tools"}}`

// serve answers with events of text.
func (d doubled) serve(events func(body string) []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body := string(b)
		if form := formOf(body); form != "" && strings.Contains(d.refuses, form) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, refusal, form)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events(body) {
			_, _ = io.WriteString(w, "data: "+e+"\n\n")
		}
	}
}

// Each API is reported as it is: also where its server refuses forms, does not stream, or counts nothing.
func TestProviderTest_ReportsEachAPI(t *testing.T) {
	t.Setenv("BOX_KEY", "sk-secret-0001")
	for _, name := range []string{"AWS_EC2_METADATA_DISABLED", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(name, "/nonexistent")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	apis := map[string]struct {
		events func(doubled) func(string) []string
		entry  string
		forms  []string
	}{
		"openai-chat":      {func(d doubled) func(string) []string { return d.chat }, `{"baseUrl":%q,"key":{"env":"BOX_KEY"}}`, []string{"json_schema", "tool", "json_object", "words"}},
		"openai-responses": {func(d doubled) func(string) []string { return d.responses }, `{"api":"openai-responses","baseUrl":"%s/v1","key":{"env":"BOX_KEY"}}`, []string{"json_schema", "tool", "json_object", "words"}},
		"azure-openai":     {func(d doubled) func(string) []string { return d.chat }, `{"api":"azure-openai","baseUrl":%q,"query":{"api-version":"2024-10-21"},"key":{"env":"BOX_KEY"}}`, []string{"json_schema", "tool", "json_object", "words"}},
		"anthropic":        {func(d doubled) func(string) []string { return d.claude }, `{"api":"anthropic","baseUrl":%q,"key":{"env":"BOX_KEY"}}`, []string{"json_schema", "tool", "words"}},
		"gemini":           {func(d doubled) func(string) []string { return d.gemini }, `{"api":"gemini","baseUrl":%q,"key":{"env":"BOX_KEY"}}`, []string{"json_schema", "tool", "json_object", "words"}},
	}
	for api, tc := range apis {
		for name, row := range map[string]struct {
			doubled
			form    string
			refused []string
		}{
			"all":           {doubled{}, "json_schema", nil},
			"no format":     {doubled{refuses: "format"}, "tool", []string{"json_schema"}},
			"no tools":      {doubled{refuses: "tool"}, "json_schema", []string{"tool"}},
			"words alone":   {doubled{refuses: "format tool object"}, "words", []string{"json_schema", "tool", "json_object"}},
			"no stream":     {doubled{whole: true}, "json_schema", nil},
			"no usage":      {doubled{silent: true}, "json_schema", nil},
			"wrong answers": {doubled{wrong: true}, "", []string{"json_schema", "tool", "json_object", "words"}},
		} {
			t.Run(api+"/"+name, func(t *testing.T) {
				srv := httptest.NewServer(row.serve(tc.events(row.doubled)))
				t.Cleanup(srv.Close)
				r, text := reportOf(t, fmt.Sprintf(tc.entry, srv.URL), row.form != "")
				requireReport(t, r, row.doubled, row.form, tc.forms, row.refused)
				require.NotContains(t, text, "sk-secret")
			})
		}
	}
	t.Run("bedrock", func(t *testing.T) {
		d := doubled{}
		s := bedrock.New(func(r bedrock.Request) bedrock.Reply {
			return bedrock.Reply{Body: bedrock.Chunks(d.claude(string(r.Body))...)}
		})
		t.Cleanup(s.Close)
		t.Setenv("BOX_ID", bedrock.KeyID)
		t.Setenv("BOX_SECRET", bedrock.SecretKey)
		t.Setenv("BOX_SESSION", bedrock.Session)
		r, text := reportOf(t, fmt.Sprintf(`{"api":"bedrock","baseUrl":%q,"aws":{"region":%q,"accessKeyId":{"env":"BOX_ID"},"secretAccessKey":{"env":"BOX_SECRET"},"sessionToken":{"env":"BOX_SESSION"}}}`, s.URL, bedrock.Region), true)
		requireReport(t, r, d, "json_schema", []string{"json_schema", "tool", "words"}, nil)
		require.NotContains(t, text, bedrock.SecretKey)
	})
}

// reportOf tests a provider with settings, and returns both forms of its report.
func reportOf(t *testing.T, entry string, works bool) (r report, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"providers":{"box":`+entry+`}}`), 0o600))
	out, err := run(t, "box", "--provider-settings", file, "--model", "m", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(out), &r), "%s %v", out, err)
	require.Equal(t, works, err == nil, out)
	text, _ = run(t, "box", "--provider-settings", file, "--model", "m")
	require.Equal(t, !works, strings.Contains(text, "no answer of a schema in any form"), text)
	return r, text + out
}

func requireReport(t *testing.T, r report, d doubled, form string, forms, refused []string) {
	t.Helper()
	want := map[string]bool{"text": true, "stream": !d.whole, "usage": !d.silent}
	for _, f := range forms {
		want["schema as "+f] = true
	}
	for _, f := range refused {
		if _, ok := want["schema as "+f]; ok {
			want["schema as "+f] = false
		}
	}
	got := map[string]bool{}
	for _, c := range r.Checks {
		got[c.Name] = c.OK
		if !c.OK {
			require.NotEmpty(t, c.Detail, c.Name)
		}
	}
	require.Equal(t, want, got, "%+v", r)
	require.Equal(t, form, r.SchemaForm)
}
