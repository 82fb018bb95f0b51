package anthropic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/anthropic"
)

func TestServer_RequiresKeyVersionPathAndType(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{Key: "k", Keys: []string{"k2"}})
	for _, tc := range []struct {
		edit   func(*http.Request)
		status int
		kind   string
		want   string
	}{
		{func(*http.Request) {}, 200, "", ""},
		{func(r *http.Request) { r.Header.Set("X-Api-Key", "k2") }, 200, "", ""},
		{func(r *http.Request) { r.Header.Del("X-Api-Key") }, 401, "authentication_error", "x-api-key header is required"},
		{func(r *http.Request) { r.Header.Set("X-Api-Key", "other") }, 401, "authentication_error", "invalid x-api-key"},
		{func(r *http.Request) { r.Header.Del("X-Api-Key"); r.Header.Set("Authorization", "Bearer k") }, 401, "authentication_error", "required"},
		{func(r *http.Request) { r.Header.Del("Anthropic-Version") }, 400, "invalid_request_error", "anthropic-version: header is required"},
		{func(r *http.Request) { r.Header.Set("Anthropic-Version", "2020-01-01") }, 400, "invalid_request_error", `"2020-01-01" is not a valid version`},
		{func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 400, "invalid_request_error", "content-type"},
		{func(r *http.Request) { r.URL.Path = "/messages" }, 404, "not_found_error", "Not found"},
		{func(r *http.Request) { r.Method = http.MethodPut }, 405, "invalid_request_error", "Method Not Allowed"},
	} {
		req := newRequest(t, s, body(""))
		tc.edit(req)
		res := do(t, req)
		require.Equal(t, tc.status, res.StatusCode, tc.want)
		if tc.status != 200 {
			e := errorOf(t, res)
			require.Equal(t, tc.kind, e.Error.Type)
			require.Contains(t, e.Error.Message, tc.want)
		}
	}
}

func TestServer_RefusesBodiesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{Context: 1 << 30})
	res := post(t, s, body(`,"system":"`+strings.Repeat("x", 32<<20)+`"`))
	require.Equal(t, 413, res.StatusCode)
	require.Equal(t, "request_too_large", errorOf(t, res).Error.Type)
}

// turns is a body with these messages.
func turns(messages string) string {
	return `{"model":"claude-opus-4-6","max_tokens":100,"messages":[` + messages + `]}`
}

func user(block string) string { return turns(`{"role":"user","content":[` + block + `]}`) }

func TestServer_RejectsWhatTheVendorRejects(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{Models: []string{"claude-opus-4-6", "claude-opus-4-8", "claude-haiku-4-5"}, Context: 1000})
	const open = `{"role":"user","content":"x"}`
	const toolX = `,"tools":[{"name":"x","input_schema":{"type":"object"}}]`
	marked := strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 5)
	for _, tc := range []struct{ body, want string }{
		{"{", "not valid JSON"},
		{"null", "not valid JSON"},
		{`{"model":"m","max_tokens":1}`, "messages: Field required"},
		{`{"messages":[],"max_tokens":1}`, "model: Field required"},
		{`{"messages":[],"model":"m"}`, "max_tokens: Field required"},
		{body(`,"seed":1`), "seed: Extra inputs are not permitted"},
		{body(`,"response_format":{}`), "response_format: Extra inputs"},
		{body(`,"stream":"yes"`), "stream: Input should be"},
		{strings.Replace(body(""), `"max_tokens":100`, `"max_tokens":0`, 1), "max_tokens: Input should be greater"},
		{strings.Replace(body(""), `"max_tokens":100`, `"max_tokens":64001`, 1), "64001 > 64000, which is the maximum allowed number of output tokens for claude-opus-4-6"},
		{strings.Replace(body(""), `"max_tokens":100`, `"max_tokens":1000`, 1), "input length and `max_tokens` exceed context limit: 1 + 1000 > 1000"},
		{user(`{"type":"text","text":"` + strings.Repeat("x", 4001) + `"}`), "prompt is too long: 1001 tokens > 1000 maximum"},
		{body(`,"temperature":1.1`), "temperature: range: 0..1"},
		{body(`,"top_p":-0.1`), "top_p: range"},
		{body(`,"top_k":-1`), "top_k: Input"},
		{body(`,"stop_sequences":"x"`), "stop_sequences: Input"},
		{body(`,"stop_sequences":[" "]`), "must contain non-whitespace"},

		{turns(""), "at least one message is required"},
		{`{"model":"claude-opus-4-6","max_tokens":1,"messages":7}`, "messages: Input should be a valid list"},
		{turns(`{"role":"system","content":"x"}`), `Unexpected role "system"`},
		{turns(`{"role":"tool","content":"x"}`), "messages.0.role: Input should be 'user' or 'assistant'"},
		{turns(`{"role":"assistant","content":"x"}`), `first message must use the "user" role`},
		{turns(`{"role":"user","content":""}`), "must have non-empty content"},
		{turns(`{"role":"user","content":[]}`), "must have non-empty content"},
		{turns(`{"role":"user","content":7}`), "messages.0.content: Input should be a valid list"},
		{turns(open + `,{"role":"assistant","content":"x "}`), "cannot end with trailing whitespace"},
		{user(`{"type":"text","text":""}`), "text content blocks must be non-empty"},
		{user(`{"type":"text"}`), "messages.0.content.0.text.text: Field required"},
		{user(`{"type":"image_url"}`), "Input tag 'image_url'"},
		{user(`{"type":"image"}`), "messages.0.content.0.image.source: Field required"},
		{user(`{"type":"image","source":{"type":"base64","media_type":"image/tiff","data":"AQI="}}`), "media_type: Input should be 'image/jpeg'"},
		{user(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"!"}}`), "invalid base64"},
		{user(`{"type":"image","source":{"type":"url"}}`), "url: Field required"},
		{user(`{"type":"image","source":{"type":"text","media_type":"text/plain","data":"x"}}`), "Input tag 'text'"},
		{user(`{"type":"document","source":{"type":"base64","media_type":"text/csv","data":"AQI="}}`), "Input should be 'application/pdf'"},
		{turns(open + `,{"role":"assistant","content":[{"type":"image","source":{"type":"url","url":"https://x.example"}}]}`), "only permitted within user turns"},
		{user(`{"type":"tool_result","tool_use_id":"t"}`), "unexpected `tool_use_id`"},
		{turns(open + `,{"role":"assistant","content":[{"type":"tool_use","id":"t"}]}`), "id, name and input are required"},
		{turns(open + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x"}]}`), "signature: Field required"},
		{user(strings.TrimSuffix(marked, ",")), "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{user(`{"type":"text","text":"x","cache_control":{"type":"permanent"}}`), "cache_control.type"},
		{user(`{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"9m"}}`), "ttl: Input should be '5m' or '1h'"},
		{user(`{"type":"text","text":"","cache_control":{"type":"ephemeral"}}`), "cannot be set for empty text blocks"},
		{body(`,"system":7`), "system: Input"},
		{body(`,"system":[{"type":"image"}]`), "system.0.type: Input should be 'text'"},

		{body(`,"tool_choice":{"type":"auto"}`), "while providing tools"},
		{body(toolX + `,"tool_choice":{"type":"function"}`), "Input tag 'function'"},
		{body(toolX + `,"tool_choice":{"type":"tool","name":"y"}`), "Tool 'y' not found"},
		{body(`,"tools":[{"name":"a b","input_schema":{"type":"object"}}]`), "tools.0.custom.name: String should match"},
		{body(`,"tools":[{"name":"x"}]`), "input_schema: Field required"},
		{body(`,"tools":[{"name":"x","input_schema":{"type":"string"}}]`), "input_schema.type: Input should be 'object'"},
		{body(`,"tools":[{"name":"x","input_schema":{"type":"object"}},{"name":"x","input_schema":{"type":"object"}}]`), "must be unique"},
		{body(`,"tools":[{"name":"x","strict":true,"input_schema":{"type":"object"}}]`), "tools.0.custom: For 'object' type, 'additionalProperties'"},

		{body(`,"thinking":{"type":"on"}`), "Input tag 'on'"},
		{body(`,"thinking":{"type":"enabled"}`), "budget_tokens: Field required"},
		{body(`,"thinking":{"type":"enabled","budget_tokens":10}`), "greater than or equal to 1024"},
		{body(`,"thinking":{"type":"enabled","budget_tokens":2000}`), "`max_tokens` must be greater than"},
		{body(`,"thinking":{"type":"adaptive","budget_tokens":2000}`), "Extra inputs"},
		{body(`,"thinking":{"type":"adaptive","display":"loud"}`), "display"},
		{body(`,"thinking":{"type":"adaptive"},"temperature":0.5`), "`temperature` may only be set to 1"},
		{body(`,"thinking":{"type":"adaptive"},"top_p":0.5`), "`top_p` must be"},
		{body(`,"thinking":{"type":"adaptive"},"top_k":5`), "`top_k` must be unset"},
		{body(toolX + `,"thinking":{"type":"adaptive"},"tool_choice":{"type":"tool","name":"x"}`), "may not be enabled when tool_choice forces"},
		{strings.Replace(body(`,"thinking":{"type":"adaptive"}`), "opus-4-6", "haiku-4-5", 1), "adaptive thinking is not supported"},
		{strings.Replace(body(`,"thinking":{"type":"enabled","budget_tokens":1024}`), "opus-4-6", "opus-4-8", 1), "not supported for this model"},

		{body(`,"output_config":{"effort":"huge"}`), "effort"},
		{body(`,"output_config":{"format":{"type":"json_object"}}`), "format.type"},
		{body(`,"output_config":{"format":{"type":"json_schema"}}`), "schema: Field required"},
		{strings.Replace(turns(open+`,{"role":"assistant","content":"{"}`), `]}`, `],"output_config":{"format":{"type":"json_schema","schema":{"type":"object","additionalProperties":false}}}}`, 1), "Prefilling"},
	} {
		res := post(t, s, tc.body)
		require.Equal(t, 400, res.StatusCode, tc.want)
		e := errorOf(t, res)
		require.Equal(t, "invalid_request_error", e.Error.Type)
		require.Contains(t, e.Error.Message, tc.want)
	}
	res := post(t, s, strings.Replace(body(""), "opus-4-6", "none", 1))
	require.Equal(t, 404, res.StatusCode)
	require.Equal(t, "model: claude-none", errorOf(t, res).Error.Message)
	require.Equal(t, 200, post(t, s, body("")).StatusCode, "a rejected request consumes no reply")
}

func TestServer_AcceptsWhatTheVendorAccepts(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{Models: []string{"claude-opus-4-6", "claude-haiku-4-5"}})
	for _, b := range []string{
		body(`,"temperature":1,"top_p":0.5,"top_k":3,"stop_sequences":["x"],"metadata":{"user_id":"u"},"system":"be kind","output_config":{"effort":"low"}`),
		body(`,"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]`),
		turns(`{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"}`),
		turns(`{"role":"user","content":"a"},{"role":"assistant","content":""}`),
		turns(`{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"},{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}`),
		user(`{"type":"image","source":{"type":"url","url":"https://x.example/a"}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AQI="}}`),
		body(`,"tools":[{"name":"x","input_schema":{"type":"object","oneOf":[]}}],"tool_choice":{"type":"auto"}`),
		body(`,"thinking":{"type":"disabled"},"temperature":0`),
		strings.Replace(strings.Replace(body(`,"thinking":{"type":"enabled","budget_tokens":1024}`), "opus-4-6", "haiku-4-5", 1), "100", "2000", 1),
	} {
		require.Equal(t, 200, post(t, s, b).StatusCode, b)
	}
}

// OpenWOP envelope contract §20, column "Anthropic strict".
func TestServer_ChecksStrictSchemas(t *testing.T) {
	t.Parallel()
	s := start(t, anthropic.Options{})
	object := func(props, required string) string {
		return `{"type":"object","properties":{` + props + `},"required":[` + required + `],"additionalProperties":false}`
	}
	many := func(n int, schema string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"p%d":%s`, i, schema))
		}
		return strings.Join(list, ",")
	}
	type row struct{ schema, want string }
	rows := []row{
		{object(`"a":{"type":["string","null"]},"b":{"type":"array","items":{"enum":[1,"x",null]}}`, `"a"`), ""},
		{object(`"not":{"type":"string"},"format":{"type":"number"}`, `"not","format"`), ""},
		{object(`"a":{"anyOf":[{"type":"null"},`+object(`"k":{"const":"x"}`, `"k"`)+`]}`, `"a"`), ""},
		{`{"type":"object","properties":{"n":{"$ref":"#/$defs/d"},"m":{"$ref":"#/$defs/d"}},"required":["n"],"additionalProperties":false,"$defs":{"d":{"type":"string"}}}`, ""},
		{object(many(24, `{"type":"string"}`), ``), ""},
		{`{"type":"object","properties":{` + many(20, `{"$ref":"#/$defs/d"}`) + `},"additionalProperties":false,"$defs":{"d":{"type":["string","null"]}}}`, ""},
		{object(`"a":{"type":"array","minItems":1,"items":{"type":"string","format":"date"}}`, `"a"`), ""},
		{object(`"a":{"type":"array","minItems":2,"items":{"type":"string"}}`, `"a"`), "'minItems' values other than 0 or 1"},
		{object(`"a":{"type":"string","format":"regex"}`, `"a"`), "'format' value 'regex'"},
		{`[]`, "valid dictionary"},
		{`{"anyOf":[{"type":"object"}]}`, "root must be of type 'object'"},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, "'additionalProperties' must be explicitly set to false"},
		{`{"type":"object","properties":{},"additionalProperties":true}`, "'additionalProperties'"},
		{object(`"a":{"type":"array","items":{"type":"object"}}`, `"a"`), "'additionalProperties'"},
		{object(``, `"a"`), "Required property 'a' is not defined"},
		{object(`"a":{}`, `"a"`), "must have a 'type'"},
		{object(`"a":true`, `"a"`), "must be an object"},
		{object(`"a":{"enum":[{}]}`, `"a"`), "Enum values"},
		{object(`"a":{"$ref":"https://example.com/x"}`, `"a"`), "External reference"},
		{object(`"a":{"$ref":"#/$defs/none"}`, `"a"`), "points to nothing"},
		{object(`"a":{"$ref":"#"}`, `"a"`), "Circular reference"},
		{`{"type":"object","properties":{"n":{"$ref":"#/$defs/d"}},"additionalProperties":false,"$defs":{"d":{"type":"array","items":{"$ref":"#/$defs/d"}}}}`, "Circular reference"},
		{object(many(25, `{"type":"string"}`), ``), "too many optional parameters (25)"},
		{object(many(17, `{"type":["string","null"]}`), ``), "too many parameters with union types (17"},
	}
	for _, keyword := range []string{"oneOf", "allOf", "not", "if", "prefixItems", "propertyNames", "minLength", "maximum", "maxItems", "uniqueItems", "pattern"} {
		rows = append(rows, row{object(`"a":{"type":"string","`+keyword+`":1}`, `"a"`), "For 'string' type, property '" + keyword + "' is not supported"})
	}
	for _, r := range rows {
		for _, way := range []string{
			`,"output_config":{"format":{"type":"json_schema","schema":` + r.schema + `}}`,
			`,"tools":[{"name":"x","strict":true,"input_schema":` + r.schema + `}]`,
		} {
			res := post(t, s, body(way))
			if r.want == "" {
				require.Equal(t, 200, res.StatusCode, r.schema)
				continue
			}
			require.Equal(t, 400, res.StatusCode, r.schema)
			if !strings.HasPrefix(r.want, "valid") && !strings.HasPrefix(r.want, "root") { // a tool's root has its own rule
				require.Contains(t, errorOf(t, res).Error.Message, r.want)
			}
		}
	}
	strictTool := func(i int) string {
		return fmt.Sprintf(`{"name":"t%d","strict":true,"input_schema":{"type":"object","additionalProperties":false}}`, i)
	}
	var all []string
	for i := range 21 {
		all = append(all, strictTool(i))
	}
	require.Contains(t, errorOf(t, post(t, s, body(`,"tools":[`+strings.Join(all, ",")+`]`))).Error.Message, "Too many strict tools (21)")
}
