package compat

import (
	"encoding/json"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// defaultSchemaName is the name of a schema without one.
const defaultSchemaName = "answer"

// paramsOf converts a validated request.
func (c Config) paramsOf(req provider.Request) (openai.ChatCompletionNewParams, error) {
	messages, err := c.Dialect.messagesOf(req)
	if err != nil {
		return openai.ChatCompletionNewParams{}, err
	}
	p := openai.ChatCompletionNewParams{
		Model: req.Model, Messages: messages,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	if req.MaxTokens > 0 {
		c.limit(&p, int64(req.MaxTokens))
	}
	if err := c.sampling(&p, req); err != nil {
		return p, err
	}
	if c.ReasoningEffort != "" && (c.Dialect == DialectCompatible || c.Dialect.canThink(req.Model)) {
		p.ReasoningEffort = shared.ReasoningEffort(c.ReasoningEffort)
	}
	switch {
	case req.Via == provider.ViaObject:
		p.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	case len(req.Schema) > 0:
		setSchema(&p, req)
	case c.Dialect.answersInAudio(req.Model): // answers with a schema are text
		c.sound(&p)
	}
	return p, nil
}

// limit sets the output limit. OpenAI's reasoning models reject the older name, and their reasoning
// counts too. Compatible servers may only support the older name.
func (c Config) limit(p *openai.ChatCompletionNewParams, tokens int64) {
	if c.Dialect.isOpenAI() {
		p.MaxCompletionTokens = openai.Int(tokens)
		return
	}
	p.MaxTokens = openai.Int(tokens)
}

// sampling sets the sampling parameters. Reasoning models reject them, so tuning parameters are
// dropped for these. Stop sequences change the answer, so they are an error.
func (c Config) sampling(p *openai.ChatCompletionNewParams, req provider.Request) error {
	if c.isReasoning(req.Model) {
		if len(req.Stop) > 0 {
			return &provider.Error{
				Code:    provider.CodeInvalidRequest,
				Message: fmt.Sprintf("stop: model %q takes no stop sequences; leave them out or choose another model", req.Model),
			}
		}
		return nil
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
	return nil
}

// schemaName returns the schema's name at the vendor.
func schemaName(req provider.Request) string {
	if req.SchemaName == "" {
		return defaultSchemaName
	}
	return req.SchemaName
}

// setSchema enforces the request's schema in the requested way. A schema as written may break the
// rules of strict modes, which servers with such a mode would reject.
func setSchema(p *openai.ChatCompletionNewParams, req provider.Request) {
	name := schemaName(req)
	if req.Via != provider.ViaTool {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: name, Strict: openai.Bool(!req.AsWritten), Schema: req.Schema,
		}}
		return
	}
	// As raw JSON: the SDK's map would lose the order of the properties, in which the model writes
	// them.
	type function struct {
		Name       string          `json:"name"`
		Strict     bool            `json:"strict"`
		Parameters json.RawMessage `json:"parameters"`
	}
	p.Tools = []openai.ChatCompletionToolUnionParam{param.Override[openai.ChatCompletionToolUnionParam](struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{name, !req.AsWritten, req.Schema}})}
	p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: name})
	p.ParallelToolCalls = openai.Bool(false) // strict mode does not support parallel calls
}

// sound requests speech in addition to text. Only raw samples can be streamed.
func (c Config) sound(p *openai.ChatCompletionNewParams) {
	voice := c.Voice
	if voice == "" {
		voice = DefaultVoice
	}
	p.Modalities = []string{"text", "audio"}
	p.Audio.Format = openai.ChatCompletionAudioParamFormatPcm16
	p.Audio.Voice.OfString = openai.String(voice)
}

// options sets the idempotency key, the trace context, the tenant's key, and the path of the model's
// deployment.
func (p *Provider) options(req provider.Request) []option.RequestOption {
	var out []option.RequestOption
	if p.cfg.Dialect == DialectAzure {
		out = append(out, option.WithBaseURL(deploymentURL(p.server.BaseURL, req.Model)))
	}
	if req.InvocationID != "" {
		out = append(out, option.WithHeader("Idempotency-Key", outbound.HeaderValue(req.InvocationID)))
	}
	if req.Traceparent != "" {
		out = append(out, option.WithHeader("Traceparent", req.Traceparent))
	}
	if req.Credential != "" {
		out = append(out, p.cfg.Dialect.withKey(req.Credential))
	}
	return out
}
