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

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/session"
)

// server is a model's server that refuses forms of schemas, or everything with a status.
type server struct {
	refuses []string
	status  int
	usage   bool
}

func (s server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form := ""
	for _, f := range []string{`"tools"`, `"json_schema"`, `"json_object"`} {
		if form == "" && strings.Contains(string(body), f) {
			form = strings.Trim(f, `"`)
		}
	}
	status := s.status
	for _, f := range s.refuses {
		if f == form {
			status = http.StatusBadRequest
		}
	}
	if status != 0 {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"no %s for %s"}}`, form, r.Header.Get("Authorization"))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta string) {
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
	}
	switch {
	case form == "tools":
		send(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"readiness","arguments":"{\"ready\":true}"}}]}`)
	case form != "" || strings.Contains(string(body), "JSON Schema"):
		send(`{"content":"{\"ready\":true}"}`)
	default:
		send(`{"content":"one two "}`)
		send(`{"content":"three"}`)
	}
	end := `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]`
	if s.usage {
		end += `,"usage":{"prompt_tokens":7,"completion_tokens":3}`
	}
	_, _ = io.WriteString(w, "data: "+end+"}\n\ndata: [DONE]\n\n")
}

// run runs `waybill provider test`.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	group := &cobra.Command{Use: "provider"}
	group.AddCommand(Test(session.New()))
	return clitest.Run(t, group, "", append([]string{"provider", "test"}, args...)...)
}

func TestProviderTest_ReportsWhatWorks(t *testing.T) {
	t.Setenv("WAYBILL_PROVIDER_BOX_KEY", "sk-secret-0001")
	for name, tc := range map[string]struct {
		server server
		works  bool
		form   string
		checks map[string]bool
	}{
		"all": {server{usage: true}, true, "json_schema", map[string]bool{
			"text": true, "stream": true, "usage": true, "schema as json_schema": true, "schema as tool": true, "schema as json_object": true, "schema as words": true,
		}},
		"no json_schema, no usage": {server{refuses: []string{"json_schema"}}, true, "tool", map[string]bool{
			"text": true, "stream": true, "usage": false, "schema as json_schema": false, "schema as tool": true, "schema as json_object": true, "schema as words": true,
		}},
		"words only": {server{refuses: []string{"json_schema", "tools", "json_object"}, usage: true}, true, "words", map[string]bool{
			"text": true, "stream": true, "usage": true, "schema as json_schema": false, "schema as tool": false, "schema as json_object": false, "schema as words": true,
		}},
		"a wrong key": {server{status: 401}, false, "", map[string]bool{"text": false}},
		"an outage":   {server{status: 500}, false, "", map[string]bool{"text": false}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(tc.server)
			t.Cleanup(srv.Close)
			file := filepath.Join(t.TempDir(), "settings.json")
			require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"providers":{"box":{"baseUrl":%q,"maxConcurrent":3}}}`, srv.URL), 0o600))
			out, err := run(t, "box", "--provider-settings", file, "--model", "m", "-o", "json")
			require.Equal(t, tc.works, err == nil)
			if !tc.works {
				require.Equal(t, exit.Failed, exit.Status(err))
			}
			var r report
			require.NoError(t, json.Unmarshal([]byte(out), &r), out)
			require.Equal(t, tc.works, r.Works)
			require.Equal(t, tc.form, r.SchemaForm)
			got := map[string]bool{}
			for _, c := range r.Checks {
				got[c.Name] = c.OK
			}
			require.Equal(t, tc.checks, got)
			require.Equal(t, 3, r.Limits.MaxConcurrent)
			require.NotContains(t, out, "sk-secret", "the server's message repeats the key")

			text, _ := run(t, "box", "--provider-settings", file, "--model", "m")
			require.NotContains(t, text, "sk-secret")
			require.Equal(t, !tc.works, strings.Contains(text, "The provider does not work."))
			require.Equal(t, tc.form == "words", strings.Contains(text, "It does not enforce schemas"))
		})
	}
}

// responses is a server of OpenAI's Responses API.
func responses(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	send := func(kind, members string) {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, members)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	switch {
	case r.URL.Path != "/v1/responses":
		w.WriteHeader(http.StatusNotFound)
		return
	case strings.Contains(string(body), `"tools"`):
		send("response.output_item.added", `"output_index":0,"item":{"type":"function_call","call_id":"c","name":"readiness"}`)
		send("response.function_call_arguments.delta", `"output_index":0,"delta":"{\"ready\":true}"`)
	case strings.Contains(string(body), `"json_schema"`), strings.Contains(string(body), "JSON Schema"):
		send("response.output_text.delta", `"output_index":0,"delta":"{\"ready\":true}"`)
	default:
		send("response.output_text.delta", `"output_index":0,"delta":"one two "`)
		send("response.output_text.delta", `"output_index":0,"delta":"three"`)
	}
	send("response.completed", `"response":{"status":"completed","output":[],"usage":{"input_tokens":7,"output_tokens":3}}`)
}

func TestProviderTest_ReportsTheResponsesAPI(t *testing.T) {
	t.Setenv("WAYBILL_PROVIDER_BOX_KEY", "")
	srv := httptest.NewServer(http.HandlerFunc(responses))
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"providers":{"box":{"api":"openai-responses","baseUrl":%q}}}`, srv.URL+"/v1"), 0o600))
	out, err := run(t, "box", "--provider-settings", file, "--model", "m", "-o", "json")
	require.NoError(t, err, out)
	var r report
	require.NoError(t, json.Unmarshal([]byte(out), &r), out)
	require.Equal(t, "json_schema", r.SchemaForm)
	for _, c := range r.Checks {
		require.True(t, c.OK, "%+v", c)
	}
	require.Len(t, r.Checks, 7)
}

func TestProviderTest_TheSampleWorks(t *testing.T) {
	out, err := run(t, "sample")
	require.NoError(t, err)
	require.Contains(t, out, "sample/sample-1")
	require.Contains(t, out, "The provider works and enforces schemas (json_schema).")
}

func TestProviderTest_UsageErrors(t *testing.T) {
	for _, v := range []string{"OPENAI", "ANTHROPIC", "GEMINI"} {
		t.Setenv(v+"_API_KEY", "")
	}
	for want, args := range map[string][]string{
		`no provider "ghost"; configured are sample`: {"ghost"},
		`--model: name a model of provider "box"`:    {"box", "--provider", "box=http://127.0.0.1:1/v1"},
		"no such file":                  {"box", "--provider-settings", "/none"},
		`want ID=URL, or one of openai`: {"box", "--provider", "box"},
	} {
		_, err := run(t, args...)
		require.ErrorContains(t, err, want)
		require.Equal(t, exit.Usage, exit.Status(err))
	}
}
