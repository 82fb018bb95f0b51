package gemini

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// request holds the request members that decide the answer.
type request struct {
	model          string
	stream, listed bool
	maxTokens      int
	thoughts       bool
	prompt         int // tokens
	format, tool   bool
}

// hasSchema reports whether the answer must match a JSON Schema.
func (r request) hasSchema() bool { return r.format || r.tool }

// object is a JSON object whose members are checked one by one.
type object map[string]json.RawMessage

// members lists the members that the server checks, by message. Any other member is an error,
// because the vendor's JSON is that of protocol buffers.
var members = map[string][]string{
	"": {
		"contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "generationConfig", "cachedContent", "serviceTier", "store", "model", "labels",
	},
	"generation_config": {
		"stopSequences", "responseMimeType", "responseSchema", "responseJsonSchema", "_responseJsonSchema", "responseModalities", "candidateCount", "maxOutputTokens", "temperature", "topP",
		"topK", "seed", "presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs", "enableEnhancedCivicAnswers", "speechConfig", "thinkingConfig", "imageConfig", "mediaResolution",
	},
	"content":         {"role", "parts"},
	"part":            {"text", "inlineData", "functionCall", "functionResponse", "fileData", "executableCode", "codeExecutionResult", "thought", "thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution"},
	"thinking_config": {"includeThoughts", "thinkingBudget", "thinkingLevel"},
	"tool":            {"functionDeclarations", "googleSearchRetrieval", "codeExecution", "googleSearch", "urlContext", "computerUse", "fileSearch", "googleMaps"},
	"function":        {"name", "description", "behavior", "parameters", "parametersJsonSchema", "response", "responseJsonSchema"},
	"tool_config":     {"functionCallingConfig", "retrievalConfig", "includeServerSideToolInvocations"},
	"calling_config":  {"mode", "allowedFunctionNames"},
}

// read parses an object of a message, at a path.
func read(raw json.RawMessage, message, path string) (object, *Reply) {
	var o object
	if json.Unmarshal(raw, &o) != nil || o == nil {
		return nil, violated(path, "Invalid JSON payload received. Invalid value at '%s': want an object.", path)
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if slices.Contains(members[message], name) || slices.Contains(members[message], camel(name)) {
			continue
		}
		at := ""
		if path != "" {
			at = " at '" + path + "'"
		}
		return nil, violated(path, "Invalid JSON payload received. Unknown name \"%s\"%s: Cannot find field.", name, at)
	}
	return o, nil
}

// camel converts a member name from snake case, which protocol buffers also accept.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

// parse checks a body by the vendor's rules.
func parse(body []byte, model string) (request, *Reply) {
	r := request{model: model}
	var shape any
	if json.Unmarshal(body, &shape) != nil {
		return r, invalid("Invalid JSON payload received. Unexpected token.")
	}
	o, refusal := read(body, "", "")
	if refusal != nil {
		return r, refusal
	}
	for _, check := range []func(object, *request) *Reply{contents, systemInstruction, generationConfig, tools} {
		if refusal := check(o, &r); refusal != nil {
			return r, refusal
		}
	}
	if r.format && len(o["tools"]) > 0 {
		return r, invalid("Function calling with a response mime type: 'application/json' is unsupported")
	}
	return r, nil
}

func contents(o object, r *request) *Reply {
	var list []json.RawMessage
	if json.Unmarshal(o["contents"], &list) != nil || len(list) == 0 {
		return invalid("* GenerateContentRequest.contents: contents is not specified\n")
	}
	for i, raw := range list {
		role, refusal := content(raw, index("contents", i), r)
		if refusal != nil {
			return refusal
		}
		if !slices.Contains([]string{"", "user", "model", "function"}, role) {
			return invalid("Please use a valid role: user, model.")
		}
	}
	return nil
}

func systemInstruction(o object, r *request) *Reply {
	if len(o["systemInstruction"]) == 0 {
		return nil
	}
	_, refusal := content(o["systemInstruction"], "system_instruction", r)
	return refusal
}

// content checks a turn and returns its role.
func content(raw json.RawMessage, path string, r *request) (string, *Reply) {
	o, refusal := read(raw, "content", path)
	if refusal != nil {
		return "", refusal
	}
	var role string
	var parts []json.RawMessage
	_ = json.Unmarshal(o["role"], &role) // not a valid role if it is not a string
	if json.Unmarshal(o["parts"], &parts) != nil || len(parts) == 0 {
		return "", invalid("* GenerateContentRequest.%s.parts: contents.parts must not be empty.\n", path)
	}
	for i, p := range parts {
		if refusal := part(p, index(path+".parts", i), r); refusal != nil {
			return "", refusal
		}
	}
	return role, nil
}

// part checks that a part has exactly one kind of data.
func part(raw json.RawMessage, path string, r *request) *Reply {
	o, refusal := read(raw, "part", path)
	if refusal != nil {
		return refusal
	}
	held := 0
	for _, name := range []string{"text", "inlineData", "functionCall", "functionResponse", "fileData", "executableCode", "codeExecutionResult"} {
		if len(o[name]) > 0 {
			held++
		}
	}
	if held != 1 {
		return invalid("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field\n", path)
	}
	var text string
	if json.Unmarshal(o["text"], &text) == nil {
		r.prompt += tokens(text)
	}
	if len(o["inlineData"]) > 0 {
		r.prompt += mediaTokens
		return inline(o["inlineData"], path)
	}
	if len(o["fileData"]) > 0 {
		r.prompt += mediaTokens
		return file(o["fileData"], path)
	}
	return nil
}

// mediaTokens is the token count of an image.
const mediaTokens = 258

// types matches the media types that the models accept.
var types = regexp.MustCompile(`^(image/(png|jpeg|webp|heic|heif)|(audio|video|text)/[a-z0-9.+-]+|application/(pdf|json|rtf|x-javascript|x-python))$`)

func inline(raw json.RawMessage, path string) *Reply {
	var b struct {
		MIME string `json:"mimeType"`
		Data []byte `json:"data"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return violated(path+".inline_data.data", "Invalid value at '%s.inline_data.data' (TYPE_BYTES), Base64 decoding failed.", path)
	}
	if !types.MatchString(b.MIME) {
		return invalid("Unsupported MIME type: %s", b.MIME)
	}
	return nil
}

func file(raw json.RawMessage, path string) *Reply {
	var f struct {
		MIME string `json:"mimeType"`
		URI  string `json:"fileUri"`
	}
	if json.Unmarshal(raw, &f) != nil || !strings.HasPrefix(f.URI, "https://") {
		return violated(path+".file_data.file_uri", "Invalid or unsupported file uri.")
	}
	if f.MIME != "" && !types.MatchString(f.MIME) {
		return invalid("Unsupported MIME type: %s", f.MIME)
	}
	return nil
}
