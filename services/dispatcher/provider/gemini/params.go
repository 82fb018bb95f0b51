package gemini

import (
	"math"
	"net/http"

	"google.golang.org/genai"

	"waybill.dev/waybill/services/dispatcher/provider"
)

const (
	// defaultSchemaName is the name of a schema without one.
	defaultSchemaName = "answer"
	// maxStops is the vendor's limit of stop sequences.
	maxStops = 5
)

// params is a converted request.
type params struct {
	contents []*genai.Content
	config   *genai.GenerateContentConfig
}

// paramsOf converts a validated request.
func paramsOf(req provider.Request) (params, error) {
	system, contents, err := contentsOf(req)
	if err != nil {
		return params{}, err
	}
	once := false // disables the SDK's continuation
	c := &genai.GenerateContentConfig{
		SystemInstruction: system, StopSequences: req.Stop, AutomaticContinuation: &once,
		ResponseModalities: modalitiesOf(req), ThinkingConfig: thinkingOf(req),
		Temperature: single(req.Temperature), TopP: single(req.TopP),
		HTTPOptions: &genai.HTTPOptions{Headers: headers(req), ExtrasRequestProvider: schemaInto(req)},
		// 0 uses the model's limit.
		MaxOutputTokens: int32(min(req.MaxTokens, math.MaxInt32)), //nolint:gosec // bounded in the line
	}
	if req.Seed != nil {
		c.Seed = genai.Ptr(fold(*req.Seed))
	}
	switch {
	case req.Via == provider.ViaObject:
		c.ResponseMIMEType = "application/json"
	case len(req.Schema) == 0:
	case isTool(req):
		c.ToolConfig = &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{
			Mode: genai.FunctionCallingConfigModeAny, AllowedFunctionNames: []string{toolName(req)},
		}}
	default:
		c.ResponseMIMEType = "application/json"
	}
	return params{contents: contents, config: c}, nil
}

func single(f *float64) *float32 {
	if f == nil {
		return nil
	}
	return genai.Ptr(float32(*f))
}

// fold reduces a seed to the vendor's range, deterministically.
func fold(seed int64) int32 {
	if seed >= math.MinInt32 && seed <= math.MaxInt32 {
		return int32(seed)
	}
	return int32(seed ^ seed>>32) //nolint:gosec // the low half of a mix
}

func isTool(req provider.Request) bool {
	return len(req.Schema) > 0 && req.Via == provider.ViaTool
}

func schemaName(req provider.Request) string {
	if req.SchemaName == "" {
		return defaultSchemaName
	}
	return req.SchemaName
}

// toolName returns the schema's name as a function name, which begins with a letter or an
// underscore.
func toolName(req provider.Request) string {
	name := schemaName(req)
	if c := name[0] | 0x20; c >= 'a' && c <= 'z' || name[0] == '_' {
		return name
	}
	const most = 64
	return ("_" + name)[:min(len(name)+1, most)]
}

// schemaInto adds the schema to the body. The SDK would sort its members and round its numbers, and
// the model writes in the order of the schema.
func schemaInto(req provider.Request) genai.ExtrasRequestProvider {
	if len(req.Schema) == 0 {
		return nil
	}
	return func(body map[string]any) map[string]any {
		if isTool(req) {
			body["tools"] = []any{map[string]any{"functionDeclarations": []any{map[string]any{
				"name": toolName(req), "description": "Gives the answer.", "parametersJsonSchema": req.Schema,
			}}}}
			return body
		}
		generation, ok := body["generationConfig"].(map[string]any)
		if !ok {
			generation = map[string]any{}
			body["generationConfig"] = generation
		}
		generation["responseJsonSchema"] = req.Schema
		return body
	}
}

// Limits of the thinking budget that all thinking models support.
const (
	leastThinking = 512
	mostThinking  = 24576
)

// thinkingOf enables thoughts. They count as output, so half of a limited answer is reserved for
// the answer. Without room for both there are no thoughts.
func thinkingOf(req provider.Request) *genai.ThinkingConfig {
	if !req.Thoughts || !thinks(req.Model) {
		return nil
	}
	t := &genai.ThinkingConfig{IncludeThoughts: true}
	if req.MaxTokens > 0 {
		budget := min(max(req.MaxTokens/2, leastThinking), mostThinking)
		if budget >= req.MaxTokens {
			return nil
		}
		t.ThinkingBudget = genai.Ptr(int32(budget)) //nolint:gosec // bounded above
	}
	return t
}

// headers sets the trace context.
func headers(req provider.Request) http.Header {
	h := http.Header{}
	if req.Traceparent != "" {
		h.Set("Traceparent", req.Traceparent)
	}
	return h
}
