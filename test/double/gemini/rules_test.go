package gemini_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/gemini"
)

const (
	closed   = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	function = `{"name":"f","parametersJsonSchema":` + closed + `}`
	forced   = `{"mode":"ANY","allowedFunctionNames":["f"]}`
)

func TestServer_RejectsWhatTheVendorRejects(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{MaxInputTokens: 300})
	part := func(p string) string { return `{"contents":[{"role":"user","parts":[` + p + `]}]}` }
	for b, phrase := range map[string]string{
		`{`:                     "Invalid JSON payload",
		`[]`:                    "want an object",
		`{}`:                    "contents is not specified",
		`{"contents":[]}`:       "contents is not specified",
		body(`,"max_tokens":5`): `Unknown name "max_tokens": Cannot find field`,
		config(`"n":1`):         `Unknown name "n" at 'generation_config'`,
		`{"contents":[{"role":"assistant","parts":[{"text":"x"}]}]}`: "Please use a valid role: user, model.",
		`{"contents":[{"role":"system","parts":[{"text":"x"}]}]}`:    "Please use a valid role: user, model.",
		`{"contents":[{"role":"user","parts":[]}]}`:                  "must not be empty",
		`{"contents":[{"role":"user","content":"x"}]}`:               `Unknown name "content" at 'contents[0]'`,
		part(`{}`):                           "required oneof field 'data'",
		part(`{"text":"x","inlineData":{}}`): "required oneof field 'data'",
		part(`{"type":"text","text":"x"}`):   `Unknown name "type"`,
		part(`{"inlineData":{"mimeType":"image/gif","data":"AQI="}}`):                               "Unsupported MIME type: image/gif",
		part(`{"inlineData":{"mimeType":"image/png","data":"!"}}`):                                  "Base64 decoding failed",
		part(`{"fileData":{"mimeType":"image/png","fileUri":"http://x/a"}}`):                        "unsupported file uri",
		part(`{"fileData":{"mimeType":"image/bmp","fileUri":"https://x/a"}}`):                       "Unsupported MIME type",
		part(`{"text":"` + strings.Repeat("x", 1300) + `"}`):                                        "The input token count (325) exceeds the maximum number of tokens allowed (300).",
		body(`,"systemInstruction":{"parts":[]}`):                                                   "must not be empty",
		config(`"temperature":3`):                                                                   "range [0, 2]",
		config(`"topP":"x"`):                                                                        "Invalid value at 'generation_config.topP'",
		config(`"maxOutputTokens":0`):                                                               "range [1,",
		config(`"seed":1.5`):                                                                        "Invalid value at 'generation_config.seed'",
		config(`"seed":9999999999`):                                                                 "range",
		config(`"stopSequences":["1","2","3","4","5","6"]`):                                         "must not exceed 5",
		config(`"stopSequences":[""]`):                                                              "must not be empty",
		config(`"stopSequences":"x"`):                                                               "list of strings",
		config(`"responseMimeType":"text/html"`):                                                    "allowed mimetypes",
		config(`"responseJsonSchema":` + closed):                                                    "without response_mime_type",
		config(`"responseMimeType":"application/json","responseJsonSchema":{},"responseSchema":{}`): "Only one of",
		config(`"responseModalities":["IMAGE"]`):                                                    "response modalities (IMAGE) is not supported",
		config(`"thinkingConfig":{"thinkingBudget":100}`):                                           "thinking budget 100 is invalid",
		config(`"thinkingConfig":{"thinkingBudget":600,"thinkingLevel":"LOW"}`):                     "only set only one",
		config(`"thinkingConfig":{"effort":1}`):                                                     `Unknown name "effort" at 'generation_config.thinking_config'`,
		tool(`{"name":"9f"}`, `{"mode":"AUTO"}`):                                                    "Invalid function name",
		tool(`{"name":"f"},{"name":"f"}`, `{"mode":"AUTO"}`):                                        "Duplicate function",
		tool(`{"name":"f","strict":true}`, `{"mode":"AUTO"}`):                                       `Unknown name "strict"`,
		tool(`{"name":"f","parameters":{},"parametersJsonSchema":{}}`, forced):                      "only one of parameters",
		tool(`{"name":"f","parametersJsonSchema":[]}`, forced):                                      "Invalid schema at 'tools[0].function_declarations[0].parameters_json_schema'",
		tool(function, `{"mode":"REQUIRED"}`):                                                       "TYPE_ENUM",
		tool(function, `{"mode":"AUTO","allowedFunctionNames":["f"]}`):                              "only supported with mode ANY",
		tool(function, `{"mode":"ANY","allowedFunctionNames":["g"]}`):                               "not one of the declared",
		body(`,"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`):                              "no function_declarations",
		body(`,"tools":[{"functionDeclarations":[` + function + `]}],"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":` + closed + `}`): "Function calling with a response mime type",
	} {
		res := stream(t, s, b)
		require.Equal(t, 400, res.StatusCode, b)
		e := errorOf(t, res)
		require.Equal(t, "INVALID_ARGUMENT", e.Error.Status, b)
		require.Contains(t, e.Error.Message, phrase, b)
	}
	s.Enqueue(gemini.Reply{Pieces: []string{"still there"}})
	got, err := events(stream(t, s, body("")))
	require.NoError(t, err)
	require.Contains(t, got[0], "still there", "a rejected request consumes no reply")
}

func TestServer_AcceptsWhatTheVendorAccepts(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{})
	for _, b := range []string{
		config(`"temperature":2,"topP":0.5,"topK":3,"seed":-1,"maxOutputTokens":5,"stopSequences":["a"],"candidateCount":1`),
		config(`"max_output_tokens":5`),
		config(`"responseMimeType":"application/json"`),
		`{"contents":[{"parts":[{"text":"x"}]},{"role":"user","parts":[{"fileData":{"fileUri":"https://x/a"}},{"inlineData":{"mimeType":"audio/wav","data":"AQI="}}]},{"role":"model","parts":[{"text":""}]}]}`,
		tool(function, forced), tool(`{"name":"f"}`, `{"mode":"ANY"}`), format(closed),
	} {
		require.Equal(t, 200, stream(t, s, b).StatusCode, b)
	}
}

func TestServer_ChecksTheModelsModalities(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{Models: []string{"gemini-2.0", "m-image", "m-tts"}})
	for _, tc := range []struct {
		model, body string
		status      int
	}{
		{"m-image", body(""), 200},
		{"m-image", config(`"responseModalities":["TEXT","IMAGE"]`), 200},
		{"m-image", format(closed), 400},
		{"m-tts", body(`,"generationConfig":{}`), 400},
		{"m-tts", config(`"responseModalities":["AUDIO"]`), 200},
		{"m-tts", config(`"responseModalities":["AUDIO"],"thinkingConfig":{"includeThoughts":true}`), 400},
		{"gemini-2.0", config(`"thinkingConfig":{"includeThoughts":true}`), 400},
		{"gemini-2.0", config(`"responseModalities":["AUDIO"]`), 400},
	} {
		require.Equal(t, tc.status, do(t, request(t, s, tc.model, "generateContent", tc.body)).StatusCode, "%+v", tc)
	}
}

// OpenWOP envelope contract §20, column "Gemini": most keywords are ignored.
func TestServer_ChecksSchemas(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{})
	deep := `{"type":"string"}`
	for range 33 {
		deep = `{"type":"array","items":` + deep + `}`
	}
	for schema, want := range map[string]string{
		closed: "",
		`{"type":"object","properties":{"a":{"oneOf":7,"not":1,"minLength":"x","propertyNames":[]}},"allOf":"x"}`:                                    "",
		`{"type":["object","null"],"properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}}}`: "",
		`{"anyOf":[{"type":"string"},{"type":"array","prefixItems":[{"type":"null"}],"items":false}]}`:                                               "",
		`[]`:                                 "must be an object",
		`null`:                               "must be an object",
		deep:                                 "nesting depth",
		`{"type":"text"}`:                    "'text' is no type",
		`{"enum":[]}`:                        "enum must be",
		`{"type":"object","required":["b"]}`: "property 'b' is not defined",
		`{"properties":{"a":{"items":"x"}}}`: "#/properties/a/items: schema must be an object",
		`{"anyOf":[{"type":"x"}]}`:           "#/anyOf/0",
		`{"$ref":"#/$defs/x"}`:               "is not found",
		`{"$ref":"https://example.com/x"}`:   "is not found",
		`{"properties":{"a":{"$ref":"#","description":"x"}},"required":["a"]}`:                                                                "must not be set beside",
		`{"properties":{"a":{"$ref":"#"}},"required":["a"]}`:                                                                                  "cyclic",
		`{"properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"],"$defs":{"n":{"properties":{"n":{"$ref":"#/$defs/n"}},"required":["n"]}}}`: "cyclic",
	} {
		for _, b := range []string{format(schema), tool(`{"name":"f","parametersJsonSchema":`+schema+`}`, forced)} {
			res := stream(t, s, b)
			if want == "" {
				require.Equal(t, 200, res.StatusCode, b)
				continue
			}
			require.Equal(t, 400, res.StatusCode, b)
			e := errorOf(t, res)
			require.Contains(t, e.Error.Message, want)
			require.Contains(t, e.Error.Details[0]["@type"], "BadRequest")
		}
	}
}

func TestServer_RequiresASchemaWithEveryCall(t *testing.T) {
	t.Parallel()
	s := start(t, gemini.Options{RequireSchema: true})
	for b, status := range map[string]int{
		format(closed):         200,
		tool(function, forced): 200,
		body(""):               400,
		config(`"responseMimeType":"application/json"`):                     400,
		config(`"responseMimeType":"application/json","responseSchema":{}`): 400,
		tool(`{"name":"f"}`, forced):                                        400,
		tool(function, `{"mode":"ANY"}`):                                    400,
		tool(function, `{"mode":"AUTO"}`):                                   400,
	} {
		require.Equal(t, status, stream(t, s, b).StatusCode, b)
	}
}
