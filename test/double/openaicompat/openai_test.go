package openaicompat_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/openaicompat"
)

func vendor(t *testing.T, o openaicompat.Options) *openaicompat.Server {
	t.Helper()
	o.OpenAI, o.Models = true, []string{"gpt-double", "gpt-5-double", "gpt-5-chat-double", "gpt-5.4-double", "o3-double", "gpt-audio-double"}
	return start(t, o)
}

// of is a request to this model.
func of(model, extra string) string { return strings.Replace(body(extra), "gpt-double", model, 1) }

// said is a request with one message of these parts.
func said(role, parts string) string {
	return `{"model":"gpt-double","messages":[{"role":"` + role + `","content":[` + parts + `]}]}`
}

func TestOpenAI_RejectsUnsupportedMembersOfItsModels(t *testing.T) {
	t.Parallel()
	s := vendor(t, openaicompat.Options{})
	for _, tc := range []struct{ body, param, code, phrase string }{
		{of("gpt-5-double", `,"max_tokens":5`), "max_tokens", "unsupported_parameter", "Use 'max_completion_tokens' instead"},
		{of("o3-double", `,"max_tokens":5`), "max_tokens", "unsupported_parameter", "not supported with this model"},
		{of("o3-double", `,"temperature":0`), "temperature", "unsupported_value", "does not support 0"},
		{of("gpt-5-double", `,"top_p":0.5`), "top_p", "unsupported_parameter", "'top_p'"},
		{of("gpt-5.4-double", `,"temperature":0,"reasoning_effort":"low"`), "temperature", "unsupported_value", "does not support 0"},
		{of("gpt-5-double", `,"stop":["x"]`), "stop", "unsupported_parameter", "'stop'"},
		{of("gpt-5-double", `,"reasoning_effort":"immense"`), "reasoning_effort", "invalid_value", "'immense'"},
		{body(`,"reasoning_effort":"low"`), "reasoning_effort", "unsupported_parameter", "'reasoning_effort'"},
		{body(`,"modalities":["text","audio"],"audio":{"voice":"alloy","format":"wav"}`), "modalities", "unsupported_value", "audio output"},
		{body(`,"modalities":"audio"`), "modalities", "", "array of strings"},
		{said("user", `{"type":"input_audio","input_audio":{"data":"AQI=","format":"wav"}}`), "messages", "unsupported_value", "input_audio"},
		{of("gpt-audio-double", ""), "model", "", "requires that either"},
		{of("gpt-audio-double", `,"modalities":["audio"]`), "audio", "", "'audio'"},
		{of("gpt-audio-double", `,"modalities":["audio"],"audio":{"format":"wav"}`), "audio.voice", "", "'audio.voice'"},
		{of("gpt-audio-double", `,"stream":true,"modalities":["audio"],"audio":{"voice":"alloy","format":"wav"}`), "audio.format", "unsupported_value", "pcm16"},
		{of("gpt-audio-double", `,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}}`), "response_format", "", "not supported with this model"},
		{said("assistant", `{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}`), "messages[0].content", "", "role 'assistant'"},
		{said("user", `{"type":"text"}`), "messages[0].content", "", "'text'"},
		{said("user", `{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AQI="}}`), "messages[0].content", "", "png, jpeg"},
		{said("user", `{"type":"input_audio","input_audio":{"data":"AQI=","format":"ogg"}}`), "messages[0].content", "", "wav or mp3"},
		{said("user", `{"type":"file","file":{"file_data":"data:application/pdf;base64,AQI="}}`), "messages[0].content", "", "'filename'"},
	} {
		res := post(t, s, tc.body)
		require.Equal(t, 400, res.StatusCode, tc.body)
		e := errorOf(t, res)
		require.Contains(t, e.Error.Message, tc.phrase, tc.body)
		require.Equal(t, tc.param, *e.Error.Param, tc.body)
		if tc.code != "" {
			require.Equal(t, tc.code, *e.Error.Code, tc.body)
		}
	}
	for _, b := range []string{
		of("gpt-5-double", `,"max_completion_tokens":5,"temperature":1,"reasoning_effort":"minimal"`),
		of("gpt-5.4-double", `,"temperature":0,"reasoning_effort":"none"`),
		of("gpt-5-chat-double", `,"max_tokens":5,"temperature":0,"stop":"x"`),
		of("gpt-audio-double", `,"stream":true,"modalities":["text","audio"],"audio":{"voice":"alloy","format":"pcm16"}`),
		said("user", `{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQI="}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AQI="}}`),
	} {
		require.Equal(t, 200, post(t, s, b).StatusCode, b)
	}
}

func TestServer_ChecksTools(t *testing.T) {
	t.Parallel()
	const object = `{"type":"object","properties":{},"required":[],"additionalProperties":false}`
	tool := func(name, schema string) string {
		return `,"tools":[{"type":"function","function":{"name":"` + name + `","strict":true,"parameters":` + schema + `}}]`
	}
	s := start(t, openaicompat.Options{})
	for _, tc := range []struct{ extra, param, phrase string }{
		{`,"tools":[]`, "tools", "minimum length 1"},
		{`,"tools":{}`, "tools", "array of objects"},
		{`,"tools":[{"type":"custom"}]`, "tools[0].type", "'custom'"},
		{`,"tools":[{"type":"function"}]`, "tools[0].function", "Missing"},
		{tool("a b", object), "tools[0].function.name", "pattern"},
		{tool("n", `{"type":"string"}`), "tools[0].function.parameters", "Invalid schema for function 'n'"},
		{tool("n", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`), "tools[0].function.parameters", "additionalProperties"},
		{tool("n", object) + `,"tool_choice":"always"`, "tool_choice", "'required' or a function"},
		{tool("n", object) + `,"tool_choice":{"type":"function","function":{"name":"m"}}`, "tool_choice", "'m' is not among"},
		{`,"tool_choice":"auto"`, "tool_choice", "only allowed when 'tools'"},
		{`,"parallel_tool_calls":false`, "parallel_tool_calls", "only allowed when 'tools'"},
	} {
		res := post(t, s, body(tc.extra))
		require.Equal(t, 400, res.StatusCode, tc.extra)
		e := errorOf(t, res)
		require.Contains(t, e.Error.Message, tc.phrase, tc.extra)
		require.Equal(t, tc.param, *e.Error.Param, tc.extra)
	}
	s.Enqueue(openaicompat.Reply{}, openaicompat.Reply{Pieces: []string{`{`, `}`}})
	require.Equal(t, 200, post(t, s, body(tool("n", object)+`,"tool_choice":"auto","parallel_tool_calls":false`)).StatusCode)
	got, err := events(post(t, s, body(tool("n", object)+`,"stream":true,"tool_choice":{"type":"function","function":{"name":"n"}}`)))
	require.NoError(t, err)
	all := strings.Join(got, "\n")
	require.Contains(t, all, `"tool_calls":[{"index":0,"id":"call_double","type":"function","function":{"name":"n","arguments":""}}]`)
	require.Contains(t, all, `"tool_calls":[{"index":0,"function":{"arguments":"}"}}]`)
	require.Contains(t, all, `"finish_reason":"stop"`, "the vendor's word after a forced function")
}

func TestServer_RequiresTheSchema(t *testing.T) {
	t.Parallel()
	const object = `{"type":"object","properties":{},"required":[],"additionalProperties":false}`
	s := start(t, openaicompat.Options{RequireSchema: true})
	tool := func(strict, choice string) string {
		return `,"tools":[{"type":"function","function":{"name":"n","strict":` + strict + `,"parameters":` + object + `}}],"tool_choice":` + choice
	}
	const forced = `{"type":"function","function":{"name":"n"}}`
	for extra, want := range map[string]int{
		"": 400, `,"response_format":{"type":"json_object"}`: 400,
		`,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":` + object + `}}`:               400,
		`,"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":` + object + `}}`: 200,
		tool("true", forced): 200, tool("false", forced): 400, tool("true", `"auto"`): 400,
	} {
		res := post(t, s, body(extra))
		require.Equal(t, want, res.StatusCode, extra)
		if want == 400 {
			require.Equal(t, "schema_required", *errorOf(t, res).Error.Code)
		}
	}
}

// OpenAI's current rules of structured outputs.
func TestOpenAI_ChecksStrictSchemas(t *testing.T) {
	t.Parallel()
	s := vendor(t, openaicompat.Options{})
	object := func(props, required string) string {
		return `{"type":"object","properties":{` + props + `},"required":[` + required + `],"additionalProperties":false}`
	}
	nested := func(levels int) string {
		inner := `{"type":"string"}`
		for range levels {
			inner = object(`"a":`+inner, `"a"`)
		}
		return inner
	}
	wide := func(n int) string {
		var props, names []string
		for i := range n {
			props, names = append(props, fmt.Sprintf(`"p%d":{"type":"string"}`, i)), append(names, fmt.Sprintf(`"p%d"`, i))
		}
		return object(strings.Join(props, ","), strings.Join(names, ","))
	}
	enum := func(n, length int) string {
		var values []string
		for i := range n {
			values = append(values, fmt.Sprintf(`"%0*d"`, length, i))
		}
		return object(`"a":{"type":"string","enum":[`+strings.Join(values, ",")+`]}`, `"a"`)
	}
	for _, tc := range []struct{ name, schema, want string }{
		{"10 objects in each other", nested(10), ""},
		{"11 objects in each other", nested(11), "deeper than 10"},
		{"5000 properties", wide(5000), ""},
		{"5001 properties", wide(5001), "at most 5000"},
		{"1000 values", enum(1000, 4), ""},
		{"1001 values", enum(1001, 4), "at most 1000"},
		{"a long enum", enum(300, 60), "at most 15000"},
		{"long names", object(`"`+strings.Repeat("n", 120_001)+`":{"type":"string"}`, `"`+strings.Repeat("n", 120_001)+`"`), "at most 120000"},
		{"learned constraints", object(`"a":{"type":"array","minItems":1,"items":{"type":"string","pattern":"^x","format":"date"}},"n":{"type":"integer","minimum":1}`, `"a","n"`), ""},
		{"an unknown format", object(`"a":{"type":"string","format":"uri"}`, `"a"`), "'uri' is not a valid format"},
		{"a length", object(`"a":{"type":"string","maxLength":3}`, `"a"`), "'maxLength' is not permitted"},
		{"oneOf", object(`"a":{"oneOf":[{"type":"string"}]}`, `"a"`), "'oneOf' is not permitted"},
		{"an open object", `{"type":"object","properties":{},"required":[]}`, "additionalProperties"},
		{"an optional property", object(`"a":{"type":"string"}`, ``), "Missing 'a'"},
		{"a root of branches", `{"type":"object","anyOf":[],"properties":{},"required":[],"additionalProperties":false}`, "top level"},
	} {
		res := post(t, s, body(`,"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":`+tc.schema+`}}`))
		if tc.want == "" {
			require.Equal(t, 200, res.StatusCode, tc.name)
			continue
		}
		require.Equal(t, 400, res.StatusCode, tc.name)
		require.Contains(t, errorOf(t, res).Error.Message, tc.want, tc.name)
	}
}

func TestOpenAI_StreamsItsOwnMembers(t *testing.T) {
	t.Parallel()
	s := vendor(t, openaicompat.Options{})
	s.Enqueue(openaicompat.Reply{Pieces: []string{"a"}, Usage: &openaicompat.Usage{Prompt: 7, Completion: 5, Cached: 3, Reasoning: 4}})
	res := post(t, s, body(`,"stream":true,"stream_options":{"include_usage":true}`))
	require.Equal(t, "2020-10-01", res.Header.Get("Openai-Version"))
	require.Equal(t, "499", res.Header.Get("X-Ratelimit-Remaining-Requests"))
	require.NotEmpty(t, res.Header.Get("X-Request-Id"))
	got, err := events(res)
	require.NoError(t, err)
	const head = `{"id":"chatcmpl-double","object":"chat.completion.chunk","created":1767225600,"model":"gpt-double","service_tier":"default","system_fingerprint":"fp_double","choices":`
	require.Equal(t, []string{
		head + `[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"k3Q"}`,
		head + `[{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"k3Q"}`,
		head + `[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null,"obfuscation":"k3Q"}`,
		head + `[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":4}}}`,
		"[DONE]",
	}, got)
}

func TestOpenAI_RejectsRequestsOverTheLimit(t *testing.T) {
	t.Parallel()
	s := vendor(t, openaicompat.Options{RateLimit: 2})
	for i, want := range []int{200, 200, 429} {
		res := post(t, s, body(""))
		require.Equal(t, want, res.StatusCode)
		require.Equal(t, fmt.Sprint(max(1-i, 0)), res.Header.Get("X-Ratelimit-Remaining-Requests"))
		require.Equal(t, want, s.Requests()[i].Status)
		if want == 429 {
			require.Equal(t, "rate_limit_exceeded", *errorOf(t, res).Error.Code)
		}
	}
}

func TestOpenAI_CutsAnswersAtTheMostTokens(t *testing.T) {
	t.Parallel()
	s := vendor(t, openaicompat.Options{})
	for _, tc := range []struct {
		reply        openaicompat.Reply
		text, finish string
		spent        int
	}{
		{openaicompat.Reply{Pieces: []string{"12345", "678"}}, "12345678", "stop", 2},
		{openaicompat.Reply{Pieces: []string{"12345", "6789"}}, "12345678", "length", 2},
		{openaicompat.Reply{Pieces: []string{"123456ü", "9"}}, "123456ü", "length", 2},
		{openaicompat.Reply{Pieces: []string{"1234567ü"}}, "1234567", "length", 2},
		{openaicompat.Reply{Pieces: []string{"12345"}, Usage: &openaicompat.Usage{Reasoning: 1}}, "1234", "length", 2},
		{openaicompat.Reply{Pieces: []string{"1"}, Usage: &openaicompat.Usage{Reasoning: 9}}, "", "length", 2},
	} {
		s.Enqueue(tc.reply)
		var got struct {
			Choices []struct {
				Message struct{ Content string }
				Finish  string `json:"finish_reason"`
			}
			Usage struct {
				Completion int `json:"completion_tokens"`
			}
		}
		require.NoError(t, json.NewDecoder(post(t, s, body(`,"max_completion_tokens":2`)).Body).Decode(&got))
		require.Equal(t, tc.text, got.Choices[0].Message.Content)
		require.Equal(t, tc.finish, got.Choices[0].Finish)
		require.Equal(t, tc.spent, got.Usage.Completion)
	}
}

func TestServer_CutsTheBodyAtTheGivenByte(t *testing.T) {
	t.Parallel()
	s := start(t, openaicompat.Options{})
	s.Enqueue(openaicompat.Reply{Pieces: []string{"a"}})
	whole, err := io.ReadAll(post(t, s, body(`,"stream":true`)).Body)
	require.NoError(t, err)
	for at := range len(whole) + 1 {
		for _, clean := range []bool{true, false} {
			s.Enqueue(openaicompat.Reply{Pieces: []string{"a"}, Cut: &openaicompat.Cut{At: at, Clean: clean}})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(body(`,"stream":true`)))
			require.NoError(t, err)
			req.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(req)
			if err != nil { // closed before the first byte
				require.Zero(t, at)
				continue
			}
			got, err := io.ReadAll(res.Body)
			require.NoError(t, res.Body.Close())
			require.Equal(t, string(whole[:at]), string(got))
			require.Equal(t, clean, err == nil, "at %d: %v", at, err)
		}
	}
}

func TestServer_LetsChunksOutStepByStep(t *testing.T) {
	t.Parallel()
	step := make(chan struct{})
	s := start(t, openaicompat.Options{})
	s.Enqueue(openaicompat.Reply{Pieces: []string{"a", "b"}, Step: step, Noise: ": ping\n\n"})
	res := post(t, s, body(`,"stream":true`))
	read := func(want string) {
		var got string
		for buf := make([]byte, 1); !strings.HasSuffix(got, want); {
			_, err := res.Body.Read(buf)
			require.NoError(t, err)
			got += string(buf)
		}
		require.Equal(t, 1, strings.Count(got, "content"))
	}
	read(`"finish_reason":null}]}` + "\n\n")
	step <- struct{}{}
	read(`"content":"a"},"finish_reason":null}]}` + "\n\n")
	step <- struct{}{}
	rest, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(rest), ": ping\n\ndata: ")
	require.Contains(t, string(rest), `"content":"b"`)
}
