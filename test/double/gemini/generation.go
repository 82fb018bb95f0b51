package gemini

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// ranges lists the numbers of a generation config with their bounds.
var ranges = map[string]struct {
	low, high float64
	whole     bool
}{
	"temperature": {0, 2, false}, "topP": {0, 1, false}, "topK": {1, math.MaxInt32, true}, "candidateCount": {1, 8, true},
	"maxOutputTokens": {1, math.MaxInt32, true}, "seed": {math.MinInt32, math.MaxInt32, true},
	"presencePenalty": {-2, 2, false}, "frequencyPenalty": {-2, 2, false},
}

func generationConfig(o object, r *request) *Reply {
	if len(o["generationConfig"]) == 0 {
		return nil
	}
	c, refusal := read(o["generationConfig"], "generation_config", "generation_config")
	if refusal != nil {
		return refusal
	}
	for name, bounds := range ranges {
		if refusal := within(c[name], name, bounds.low, bounds.high, bounds.whole); refusal != nil {
			return refusal
		}
	}
	_ = json.Unmarshal(c["maxOutputTokens"], &r.maxTokens) // checked above
	for _, check := range []func(object, *request) *Reply{stopSequences, modalities, thinking, format} {
		if refusal := check(c, r); refusal != nil {
			return refusal
		}
	}
	return nil
}

func within(raw json.RawMessage, name string, low, high float64, whole bool) *Reply {
	if len(raw) == 0 {
		return nil
	}
	var n float64
	if json.Unmarshal(raw, &n) != nil || whole && n != math.Trunc(n) {
		return violated("generation_config."+name, "Invalid value at 'generation_config.%s': %s", name, raw)
	}
	if n < low || n > high {
		return invalid("* GenerateContentRequest.generation_config.%s: %s must be in the range [%g, %g].\n", name, name, low, high)
	}
	return nil
}

func stopSequences(c object, _ *request) *Reply {
	var list []string
	if len(c["stopSequences"]) == 0 {
		return nil
	}
	if json.Unmarshal(c["stopSequences"], &list) != nil {
		return violated("generation_config.stop_sequences", "Invalid value at 'generation_config.stop_sequences': want a list of strings.")
	}
	if len(list) > 5 {
		return invalid("* GenerateContentRequest.generation_config.stop_sequences: the number of stop_sequences must not exceed 5.\n")
	}
	if slices.Contains(list, "") {
		return invalid("* GenerateContentRequest.generation_config.stop_sequences: stop_sequences must not be empty.\n")
	}
	return nil
}

// modalities checks the requested modalities against the model. Speech models return only audio,
// only image models return images.
func modalities(c object, r *request) *Reply {
	var list []string
	if len(c["responseModalities"]) > 0 && json.Unmarshal(c["responseModalities"], &list) != nil {
		return violated("generation_config.response_modalities", "Invalid value at 'generation_config.response_modalities'.")
	}
	allowed := []string{"TEXT"}
	switch {
	case strings.Contains(r.model, "-tts"):
		allowed = []string{"AUDIO"}
		if len(list) == 0 {
			list = []string{"TEXT"} // the default
		}
	case strings.Contains(r.model, "-image"):
		allowed = append(allowed, "IMAGE")
	}
	for _, m := range list {
		if !slices.Contains(allowed, m) {
			return invalid("The requested combination of response modalities (%s) is not supported by the model. models/%s accepts the following combination of response modalities:\n* %s\n", strings.Join(list, ", "), r.model, strings.Join(allowed, ", "))
		}
	}
	return nil
}

func thinking(c object, r *request) *Reply {
	if len(c["thinkingConfig"]) == 0 {
		return nil
	}
	t, refusal := read(c["thinkingConfig"], "thinking_config", "generation_config.thinking_config")
	if refusal != nil {
		return refusal
	}
	if strings.Contains(r.model, "2.0") || strings.Contains(r.model, "-tts") {
		return invalid("Thinking is not enabled for models/%s", r.model)
	}
	if len(t["thinkingBudget"]) > 0 && len(t["thinkingLevel"]) > 0 {
		return invalid("You can only set only one of thinking budget and thinking level.")
	}
	_ = json.Unmarshal(t["includeThoughts"], &r.thoughts) // ignored if it is not a boolean
	if len(t["thinkingBudget"]) == 0 {
		return nil
	}
	var budget int
	if json.Unmarshal(t["thinkingBudget"], &budget) != nil || budget < -1 || budget > 0 && budget < 512 || budget > 24576 {
		return invalid("The thinking budget %s is invalid. Please choose a value between 512 and 24576.", t["thinkingBudget"])
	}
	return nil
}

// format checks the response's type and schema.
func format(c object, r *request) *Reply {
	var kind string
	if len(c["responseMimeType"]) > 0 && json.Unmarshal(c["responseMimeType"], &kind) != nil {
		return violated("generation_config.response_mime_type", "Invalid value at 'generation_config.response_mime_type' (TYPE_STRING)")
	}
	if !slices.Contains([]string{"", "text/plain", "application/json", "text/x.enum"}, kind) {
		return invalid("* GenerateContentRequest.generation_config.response_mime_type: allowed mimetypes are `text/plain`, `application/json`, `application/xml`, `application/yaml` and `text/x.enum`.\n")
	}
	schema := c["responseJsonSchema"]
	switch {
	case len(schema) > 0 && len(c["responseSchema"]) > 0:
		return invalid("Only one of response_schema and response_json_schema can be set.")
	case len(schema)+len(c["responseSchema"]) > 0 && kind != "application/json":
		return invalid("Unable to submit request because response_schema is set without response_mime_type 'application/json'.")
	case len(schema)+len(c["responseSchema"]) > 0 && strings.Contains(r.model, "-image"), kind == "application/json" && strings.Contains(r.model, "-tts"):
		return invalid("JSON mode is not enabled for models/%s", r.model)
	case len(schema) == 0:
		return nil
	}
	if wrong := checkSchema(schema); wrong != "" {
		return violated("generation_config.response_json_schema", "Invalid schema at 'generation_config.response_json_schema': %s", wrong)
	}
	r.format = true
	return nil
}

var functionName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

// tools checks the declarations and the functions that the request forces.
func tools(o object, r *request) *Reply {
	var list []json.RawMessage
	if len(o["tools"]) > 0 && json.Unmarshal(o["tools"], &list) != nil {
		return violated("tools", "Invalid value at 'tools': want a list.")
	}
	schemas := map[string]bool{} // by declared function: has it a JSON Schema
	for i, raw := range list {
		t, refusal := read(raw, "tool", index("tools", i))
		if refusal != nil {
			return refusal
		}
		var declared []json.RawMessage
		_ = json.Unmarshal(t["functionDeclarations"], &declared) // a tool of another kind declares none
		for j, d := range declared {
			if refusal := function(d, index(index("tools", i)+".function_declarations", j), schemas); refusal != nil {
				return refusal
			}
		}
	}
	return toolConfig(o, schemas, r)
}

func function(raw json.RawMessage, path string, schemas map[string]bool) *Reply {
	f, refusal := read(raw, "function", path)
	if refusal != nil {
		return refusal
	}
	var name string
	_ = json.Unmarshal(f["name"], &name) // not a name if it is not a string
	at := "GenerateContentRequest." + path
	if !functionName.MatchString(name) {
		return invalid("* %s.name: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.\n", at)
	}
	if _, twice := schemas[name]; twice {
		return invalid("Duplicate function declaration found: %s", name)
	}
	schema := f["parametersJsonSchema"]
	if len(schema) > 0 && len(f["parameters"]) > 0 {
		return invalid("* %s: only one of parameters and parameters_json_schema can be set.\n", at)
	}
	if len(schema) > 0 {
		if wrong := checkSchema(schema); wrong != "" {
			return violated(path+".parameters_json_schema", "Invalid schema at '%s.parameters_json_schema': %s", path, wrong)
		}
	}
	schemas[name] = len(schema) > 0
	return nil
}

func toolConfig(o object, schemas map[string]bool, r *request) *Reply {
	if len(o["toolConfig"]) == 0 {
		return nil
	}
	t, refusal := read(o["toolConfig"], "tool_config", "tool_config")
	if refusal != nil || len(t["functionCallingConfig"]) == 0 {
		return refusal
	}
	c, refusal := read(t["functionCallingConfig"], "calling_config", "tool_config.function_calling_config")
	if refusal != nil {
		return refusal
	}
	var mode string
	var names []string
	if json.Unmarshal(c["mode"], &mode) != nil || !slices.Contains([]string{"AUTO", "ANY", "NONE", "VALIDATED"}, mode) {
		return violated("tool_config.function_calling_config.mode", "Invalid value at 'tool_config.function_calling_config.mode' (TYPE_ENUM): %s", c["mode"])
	}
	if len(c["allowedFunctionNames"]) > 0 && json.Unmarshal(c["allowedFunctionNames"], &names) != nil {
		return violated("tool_config.function_calling_config.allowed_function_names", "Invalid value at 'tool_config.function_calling_config.allowed_function_names'.")
	}
	switch {
	case mode != "ANY" && mode != "VALIDATED" && len(names) > 0:
		return invalid("Function calling config with allowed_function_names is only supported with mode ANY or VALIDATED.")
	case mode == "ANY" && len(schemas) == 0:
		return invalid("Function calling mode is set to ANY and no function_declarations are specified.")
	}
	for _, n := range names {
		if _, ok := schemas[n]; !ok {
			return invalid("%s", fmt.Sprintf("allowed_function_names: %q is not one of the declared functions.", n))
		}
	}
	r.tool = mode == "ANY" && len(names) == 1 && schemas[names[0]]
	return nil
}
