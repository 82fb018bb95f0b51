package openaicompat

import (
	"encoding/json"
	"fmt"
	"slices"
)

// tool is one of the tools a request offers.
type tool struct {
	Type     string `json:"type"`
	Function *struct {
		Name       string          `json:"name"`
		Strict     bool            `json:"strict"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// choice is a tool choice that names a tool.
type choice struct {
	Type     string `json:"type"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

// tools checks the offered tools and the forced one.
func (s *Server) tools(members map[string]json.RawMessage) *Reply {
	var list []tool
	raw := members["tools"]
	if len(raw) > 0 && (json.Unmarshal(raw, &list) != nil || len(list) == 0) {
		return bad("tools", "Invalid 'tools': expected an array of objects with minimum length 1.")
	}
	for i, t := range list {
		if refusal := s.tool(t, fmt.Sprintf("tools[%d]", i)); refusal != nil {
			return refusal
		}
	}
	if len(list) > 0 {
		return toolChoice(members["tool_choice"], list)
	}
	for _, name := range []string{"tool_choice", "parallel_tool_calls"} {
		if len(members[name]) > 0 {
			return bad(name, "Invalid value for '%s': '%s' is only allowed when 'tools' are specified.", name, name)
		}
	}
	return nil
}

func (s *Server) tool(t tool, at string) *Reply {
	switch {
	case t.Type != "function":
		return bad(at+".type", "Invalid value: '%s'. Supported values are: 'function'.", t.Type)
	case t.Function == nil:
		return bad(at+".function", "Missing required parameter: '%s.function'.", at)
	case !schemaName.MatchString(t.Function.Name):
		return bad(at+".function.name", "Invalid '%s.function.name': string does not match pattern. Expected a string that matches the pattern '%s'.", at, schemaName)
	case !t.Function.Strict:
		return nil
	}
	if wrong := s.unfit(t.Function.Parameters); wrong != "" {
		r := bad(at+".function.parameters", "Invalid schema for function '%s': %s", t.Function.Name, wrong)
		r.Code = "invalid_function_parameters"
		return r
	}
	return nil
}

func toolChoice(raw json.RawMessage, list []tool) *Reply {
	var word string
	if len(raw) == 0 || json.Unmarshal(raw, &word) == nil && slices.Contains([]string{"none", "auto", "required"}, word) {
		return nil
	}
	var c choice
	if json.Unmarshal(raw, &c) != nil || c.Type != "function" {
		return bad("tool_choice", "Invalid value for 'tool_choice': expected 'none', 'auto', 'required' or a function.")
	}
	if !slices.ContainsFunc(list, func(t tool) bool { return t.Function.Name == c.Function.Name }) {
		return bad("tool_choice", "Invalid value for 'tool_choice': function '%s' is not among the tools.", c.Function.Name)
	}
	return nil
}

// schemaRequired enforces Options.RequireSchema.
func (o Options) schemaRequired(members map[string]json.RawMessage) *Reply {
	var format struct {
		JSONSchema struct {
			Strict bool `json:"strict"`
		} `json:"json_schema"`
	}
	var list []tool
	var c choice
	for name, into := range map[string]any{"response_format": &format, "tools": &list, "tool_choice": &c} {
		_ = json.Unmarshal(members[name], into) // an absent or string value forces nothing
	}
	forced := slices.ContainsFunc(list, func(t tool) bool { return t.Function.Strict && t.Function.Name == c.Function.Name })
	if !o.RequireSchema || format.JSONSchema.Strict || forced {
		return nil
	}
	r := bad("response_format", "The call has neither a strict response format nor a strict tool that is forced.")
	r.Code = "schema_required"
	return r
}
