package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// request holds the request members that decide the answer.
type request struct {
	Model        string       `json:"model"`
	MaxTokens    int          `json:"max_tokens"`
	Stream       bool         `json:"stream"`
	Temperature  *float64     `json:"temperature"`
	TopP         *float64     `json:"top_p"`
	TopK         *int         `json:"top_k"`
	Thinking     *thinking    `json:"thinking"`
	Tools        []tool       `json:"tools"`
	ToolChoice   *toolChoice  `json:"tool_choice"`
	OutputConfig outputConfig `json:"output_config"`

	prompt int // tokens
}

type thinking struct {
	Type    string `json:"type"`
	Budget  *int   `json:"budget_tokens"`
	Display string `json:"display"`
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Strict      bool            `json:"strict"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type toolChoice struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

type outputConfig struct {
	Effort string `json:"effort"`
	Format *struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"`
	} `json:"format"`
}

// thinks reports whether the request enables thinking.
func (r request) thinks() bool {
	return r.Thinking != nil && (r.Thinking.Type == "enabled" || r.Thinking.Type == "adaptive")
}

// forced returns the name of the tool the request forces.
func (r request) forced() string {
	switch {
	case r.ToolChoice == nil:
		return ""
	case r.ToolChoice.Type == "tool":
		return r.ToolChoice.Name
	case r.ToolChoice.Type == "any" && len(r.Tools) > 0:
		return r.Tools[0].Name
	default:
		return ""
	}
}

// schema returns the strict schema of the answer.
func (r request) schema() json.RawMessage {
	if r.OutputConfig.Format != nil {
		return r.OutputConfig.Format.Schema
	}
	for _, t := range r.Tools {
		if t.Strict && t.Name == r.forced() {
			return t.InputSchema
		}
	}
	return nil
}

// parameters are the allowed members of a request.
var parameters = []string{
	"model", "messages", "max_tokens", "system", "stream", "stop_sequences", "temperature", "top_p", "top_k", "metadata",
	"thinking", "tools", "tool_choice", "output_config", "cache_control", "container", "diagnostics", "inference_geo", "service_tier", "speed",
}

func bad(format string, args ...any) *Reply {
	return &Reply{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// parse checks a body by the vendor's rules.
func (s *Server) parse(body []byte) (request, *Reply) {
	var r request
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return r, bad("The request body is not valid JSON")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(parameters, name) {
			return r, bad("%s: Extra inputs are not permitted", name)
		}
	}
	for _, name := range []string{"model", "max_tokens", "messages"} {
		if len(members[name]) == 0 {
			return r, bad("%s: Field required", name)
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, bad("%s: Input should be of another type", memberOf(err))
	}
	if !slices.Contains(s.options.Models, r.Model) {
		return r, &Reply{Status: http.StatusNotFound, Message: "model: " + r.Model}
	}
	c := conversation{}
	for _, check := range []func() *Reply{
		func() *Reply { return s.sampling(r) },
		func() *Reply { return stopSequences(members["stop_sequences"]) },
		func() *Reply { return c.system(members["system"]) },
		func() *Reply { return c.messages(members["messages"]) },
		func() *Reply { return r.tools() },
		func() *Reply { return r.thoughts() },
		func() *Reply { return r.format(c.last == "assistant") },
		func() *Reply { return s.required(r) },
		func() *Reply { return s.fits(&r, c.size) },
	} {
		if refusal := check(); refusal != nil {
			return r, refusal
		}
	}
	return r, nil
}

// memberOf returns the name of the member that failed to parse.
func memberOf(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return e.Field
	}
	return "body"
}

// fits checks prompt and answer against the context window.
func (s *Server) fits(r *request, size int) *Reply {
	r.prompt = (size + tokenRunes - 1) / tokenRunes
	switch {
	case r.prompt > s.options.Context:
		return bad("prompt is too long: %d tokens > %d maximum", r.prompt, s.options.Context)
	case r.prompt+r.MaxTokens > s.options.Context:
		return bad("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again", r.prompt, r.MaxTokens, s.options.Context)
	default:
		return nil
	}
}

func (s *Server) sampling(r request) *Reply {
	switch {
	case r.MaxTokens < 1:
		return bad("max_tokens: Input should be greater than or equal to 1")
	case r.MaxTokens > s.options.MaxOutput:
		return bad("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s", r.MaxTokens, s.options.MaxOutput, r.Model)
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 1):
		return bad("temperature: range: 0..1")
	case r.TopP != nil && (*r.TopP < 0 || *r.TopP > 1):
		return bad("top_p: range: 0..1")
	case r.TopK != nil && *r.TopK < 0:
		return bad("top_k: Input should be greater than or equal to 0")
	default:
		return nil
	}
}

func stopSequences(raw json.RawMessage) *Reply {
	if len(raw) == 0 {
		return nil
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		return bad("stop_sequences: Input should be a valid list")
	}
	for _, s := range list {
		if strings.TrimSpace(s) == "" {
			return bad("stop_sequences: each stop sequence must contain non-whitespace")
		}
	}
	return nil
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

// maxStrictTools is the limit of strict tools in one request.
const maxStrictTools = 20

func (r request) tools() *Reply {
	strictOnes, names := 0, map[string]bool{}
	for i, t := range r.Tools {
		at := fmt.Sprintf("tools.%d.custom", i)
		switch {
		case !toolName.MatchString(t.Name):
			return bad("%s.name: String should match pattern '%s'", at, toolName)
		case names[t.Name]:
			return bad("tools: Tool names must be unique.")
		case len(t.InputSchema) == 0:
			return bad("%s.input_schema: Field required", at)
		}
		names[t.Name] = true
		var root struct{ Type any }
		if json.Unmarshal(t.InputSchema, &root) != nil || root.Type != "object" {
			return bad("%s.input_schema.type: Input should be 'object'", at)
		}
		if !t.Strict {
			continue
		}
		strictOnes++
		if wrong := strict(t.InputSchema); wrong != "" {
			return bad("%s: %s", at, wrong)
		}
	}
	if strictOnes > maxStrictTools {
		return bad("Too many strict tools (%d). The maximum number of strict tools is %d.", strictOnes, maxStrictTools)
	}
	return r.choice(names)
}

func (r request) choice(names map[string]bool) *Reply {
	switch c := r.ToolChoice; {
	case c == nil:
		return nil
	case !slices.Contains([]string{"auto", "any", "tool", "none"}, c.Type):
		return bad("tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags: 'any', 'auto', 'none', 'tool'", c.Type)
	case len(r.Tools) == 0:
		return bad("tool_choice: may only be specified while providing tools.")
	case c.Type == "tool" && !names[c.Name]:
		return bad("Tool '%s' not found in provided tools", c.Name)
	default:
		return nil
	}
}

// format checks the schema of the output.
func (r request) format(prefilled bool) *Reply {
	if e := r.OutputConfig.Effort; e != "" && !slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, e) {
		return bad("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
	}
	f := r.OutputConfig.Format
	switch {
	case f == nil:
		return nil
	case f.Type != "json_schema":
		return bad("output_config.format.type: Input should be 'json_schema'")
	case len(f.Schema) == 0:
		return bad("output_config.format.schema: Field required")
	case prefilled:
		return bad("output_config.format: Prefilling assistant messages is not supported with structured outputs.")
	}
	if wrong := strict(f.Schema); wrong != "" {
		return bad("output_config.format.schema: %s", wrong)
	}
	return nil
}

// required enforces Options.RequireSchema.
func (s *Server) required(r request) *Reply {
	if s.options.RequireSchema && len(r.schema()) == 0 {
		return bad("double: this test wants a strict schema with every call")
	}
	return nil
}
