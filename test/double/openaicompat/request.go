package openaicompat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// request holds the request members that decide the answer.
type request struct {
	Model         string
	Stream        bool
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           int      `json:"max_tokens"`
	MaxCompletionTokens int      `json:"max_completion_tokens"`
	Modalities          []string `json:"modalities"`
	// forced is the function that the request forces, empty for none.
	forced string
}

func (r request) wantsUsage() bool { return r.Stream && r.StreamOptions.IncludeUsage }

func (r request) wantsSound() bool { return slices.Contains(r.Modalities, "audio") }

// room is the token limit of the answer; 0 means no limit.
func (r request) room() int { return max(r.MaxTokens, r.MaxCompletionTokens) }

// parameters lists the members of a request and how each is checked. nil means the double does not
// check it.
var parameters = map[string]func(json.RawMessage) string{
	"model": text, "messages": nil, "stream": boolean, "stream_options": nil, "response_format": nil,
	"temperature": between(0, 2), "top_p": between(0, 1), "presence_penalty": between(-2, 2), "frequency_penalty": between(-2, 2),
	"max_tokens": whole(1), "max_completion_tokens": whole(1), "n": whole(1), "seed": whole(-1 << 62), "stop": stops,
	"user": text, "store": boolean, "logprobs": boolean, "parallel_tool_calls": boolean,
	"audio": nil, "function_call": nil, "functions": nil, "logit_bias": nil, "metadata": nil, "modalities": words, "prediction": nil,
	"prompt_cache_key": text, "reasoning_effort": text, "safety_identifier": text, "service_tier": text, "tool_choice": nil, "tools": nil,
	"top_logprobs": whole(0), "verbosity": text, "web_search_options": nil,
}

// parse checks a body by the vendor's rules.
func (s *Server) parse(body []byte) (request, *Reply) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return request{}, bad("", "We could not parse the JSON body of your request.")
	}
	for _, check := range []func(map[string]json.RawMessage) *Reply{knownMembers, requiredMembers, s.options.messages, streamOptions, s.responseFormat, s.tools, s.options.schemaRequired} {
		if refusal := check(members); refusal != nil {
			return request{}, refusal
		}
	}
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		return request{}, bad("", "We could not parse the JSON body of your request.")
	}
	var c choice
	_ = json.Unmarshal(members["tool_choice"], &c) // a tool_choice that is a string forces no function
	r.forced = c.Function.Name
	if !slices.Contains(s.options.Models, r.Model) {
		return r, &Reply{Status: http.StatusNotFound, Code: "model_not_found", Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", r.Model)}
	}
	if !s.options.OpenAI {
		return r, nil
	}
	if refusal := modelRules(r.Model, members); refusal != nil {
		return r, refusal
	}
	return r, soundRules(r.Model, members)
}

func bad(param, format string, args ...any) *Reply {
	return &Reply{Status: http.StatusBadRequest, Param: param, Message: fmt.Sprintf(format, args...)}
}

func knownMembers(members map[string]json.RawMessage) *Reply {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		check, known := parameters[name]
		if !known {
			r := bad(name, "Unknown parameter: '%s'.", name)
			r.Code = "unknown_parameter"
			return r
		}
		if check == nil || string(members[name]) == "null" {
			continue
		}
		if want := check(members[name]); want != "" {
			r := bad(name, "Invalid value for '%s': expected %s.", name, want)
			r.Code = "invalid_value"
			return r
		}
	}
	return nil
}

func requiredMembers(members map[string]json.RawMessage) *Reply {
	for _, name := range []string{"model", "messages"} {
		if len(members[name]) == 0 {
			r := bad(name, "Missing required parameter: '%s'.", name)
			r.Code = "missing_required_parameter"
			return r
		}
	}
	if members["max_tokens"] != nil && members["max_completion_tokens"] != nil {
		return bad("max_tokens", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	return nil
}

// message is one of the messages.
type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  json.RawMessage `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

func (o Options) messages(members map[string]json.RawMessage) *Reply {
	var list []message
	if json.Unmarshal(members["messages"], &list) != nil {
		return bad("messages", "Invalid type for 'messages': expected an array of objects.")
	}
	if len(list) == 0 {
		return bad("messages", "Invalid 'messages': empty array. Expected an array with minimum length 1.")
	}
	for i, m := range list {
		at := fmt.Sprintf("messages[%d]", i)
		if !slices.Contains([]string{"system", "developer", "user", "assistant", "tool", "function"}, m.Role) {
			return bad(at+".role", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
		}
		if m.Role == "tool" && m.ToolCallID == "" {
			return bad(at+".tool_call_id", "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.")
		}
		if m.Role == "assistant" && len(m.ToolCalls) > 0 && len(m.Content) == 0 {
			continue
		}
		if want := o.content(m.Role, m.Content); want != "" {
			return bad(at+".content", "Invalid value for 'content': expected %s.", want)
		}
	}
	return nil
}

func streamOptions(members map[string]json.RawMessage) *Reply {
	raw := members["stream_options"]
	if len(raw) == 0 {
		return nil
	}
	if string(members["stream"]) != "true" {
		return bad("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var o struct {
		IncludeUsage       bool `json:"include_usage"`
		IncludeObfuscation bool `json:"include_obfuscation"`
	}
	if d.Decode(&o) != nil {
		return bad("stream_options", "Invalid value for 'stream_options'.")
	}
	return nil
}

var schemaName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (s *Server) responseFormat(members map[string]json.RawMessage) *Reply {
	raw := members["response_format"]
	if len(raw) == 0 {
		return nil
	}
	var f struct {
		Type       string `json:"type"`
		JSONSchema *struct {
			Name   string          `json:"name"`
			Strict bool            `json:"strict"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	switch err := json.Unmarshal(raw, &f); {
	case err != nil || !slices.Contains([]string{"text", "json_object", "json_schema"}, f.Type):
		return bad("response_format.type", "Invalid value: '%s'. Supported values are: 'json_object', 'json_schema', and 'text'.", f.Type)
	case f.Type != "json_schema":
		return nil
	case f.JSONSchema == nil:
		return bad("response_format.json_schema", "Missing required parameter: 'response_format.json_schema'.")
	case !schemaName.MatchString(f.JSONSchema.Name):
		return bad("response_format.json_schema.name", "Invalid 'response_format.json_schema.name': string does not match pattern. Expected a string that matches the pattern '%s'.", schemaName)
	case !f.JSONSchema.Strict:
		return nil
	}
	if wrong := s.unfit(f.JSONSchema.Schema); wrong != "" {
		return bad("response_format", "Invalid schema for response_format '%s': %s", f.JSONSchema.Name, wrong)
	}
	return nil
}

// The checks of single parameters return what was expected, empty if the value is valid.

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "a string"
	}
	return ""
}

func words(raw json.RawMessage) string {
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		return "an array of strings"
	}
	return ""
}

func boolean(raw json.RawMessage) string {
	var b bool
	if json.Unmarshal(raw, &b) != nil {
		return "a boolean"
	}
	return ""
}

func whole(low int64) func(json.RawMessage) string {
	return func(raw json.RawMessage) string {
		var n int64
		if json.Unmarshal(raw, &n) != nil || n < low {
			return fmt.Sprintf("an integer of at least %d", low)
		}
		return ""
	}
}

func between(low, high float64) func(json.RawMessage) string {
	return func(raw json.RawMessage) string {
		var n float64
		if json.Unmarshal(raw, &n) != nil || n < low || n > high {
			return fmt.Sprintf("a number from %g to %g", low, high)
		}
		return ""
	}
}

func stops(raw json.RawMessage) string {
	var list []string
	if strings.HasPrefix(string(raw), `"`) {
		return text(raw)
	}
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 || len(list) > 4 {
		return "a string or an array of 1 to 4 strings"
	}
	return ""
}
