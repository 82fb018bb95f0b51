package compat

import (
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// defaultSchemaName names a schema whose request gives it no name.
const defaultSchemaName = "answer"

// paramsOf says a checked request in the vendor's words.
func paramsOf(req provider.Request) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model: req.Model, Messages: messagesOf(req),
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	if req.MaxTokens > 0 {
		// Not max_completion_tokens: compatible servers know the older name.
		p.MaxTokens = openai.Int(int64(req.MaxTokens))
	}
	if req.Temperature != nil {
		p.Temperature = openai.Float(*req.Temperature)
	}
	if req.TopP != nil {
		p.TopP = openai.Float(*req.TopP)
	}
	if req.Seed != nil {
		p.Seed = openai.Int(*req.Seed)
	}
	if len(req.Stop) > 0 {
		p.Stop = openai.ChatCompletionNewParamsStopUnion{OfStringArray: req.Stop}
	}
	if len(req.Schema) > 0 {
		p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: schemaOf(req)}
	}
	return p
}

func messagesOf(req provider.Request) []openai.ChatCompletionMessageParamUnion {
	var list []openai.ChatCompletionMessageParamUnion
	if req.System != "" {
		list = append(list, openai.SystemMessage(req.System))
	}
	for _, m := range req.Messages {
		// As raw JSON, because the content is the author's, verbatim.
		list = append(list, param.Override[openai.ChatCompletionMessageParamUnion](struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}{m.Role, m.Content}))
	}
	return list
}

func schemaOf(req provider.Request) *shared.ResponseFormatJSONSchemaParam {
	name := req.SchemaName
	if name == "" {
		name = defaultSchemaName
	}
	return &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
		Name: name, Strict: openai.Bool(true), Schema: req.Schema,
	}}
}

// headers make a repeated call recognizable to servers that look for it, and let
// them join the trace of the run.
func headers(req provider.Request) []option.RequestOption {
	var out []option.RequestOption
	if req.InvocationID != "" {
		out = append(out, option.WithHeader("Idempotency-Key", outbound.HeaderValue(req.InvocationID)))
	}
	if req.Traceparent != "" {
		out = append(out, option.WithHeader("Traceparent", req.Traceparent))
	}
	return out
}
