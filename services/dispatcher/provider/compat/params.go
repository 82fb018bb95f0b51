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

// defaultSchemaName names a schema whose request gives it no name.
const defaultSchemaName = "answer"

// paramsOf says a checked request in the vendor's words.
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
	case len(req.Schema) > 0:
		setSchema(&p, req)
	case c.Dialect.answersInAudio(req.Model): // an answer that has a schema is text
		c.sound(&p)
	}
	return p, nil
}

// limit bounds the answer. OpenAI's models refuse the older name, at least those
// that think, whose thinking counts too; compatible servers may know no other.
func (c Config) limit(p *openai.ChatCompletionNewParams, tokens int64) {
	if c.Dialect == DialectOpenAI {
		p.MaxCompletionTokens = openai.Int(tokens)
		return
	}
	p.MaxTokens = openai.Int(tokens)
}

// sampling sets how the model chooses its words. Models that think choose by
// themselves: what only tunes the choice is left out for them, so that one request
// may go to any model. A stop sequence is no tuning: it changes the answer.
func (c Config) sampling(p *openai.ChatCompletionNewParams, req provider.Request) error {
	if c.isReasoning(req.Model) {
		if len(req.Stop) > 0 {
			return &provider.Error{Code: provider.CodeInvalidRequest, Message: fmt.Sprintf("stop: model %q takes no stop sequences; leave them out or choose another model", req.Model)}
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

// schemaName is what the vendor is told to call the request's schema.
func schemaName(req provider.Request) string {
	if req.SchemaName == "" {
		return defaultSchemaName
	}
	return req.SchemaName
}

// setSchema holds the answer to the request's schema, strictly, in the way it asks for.
func setSchema(p *openai.ChatCompletionNewParams, req provider.Request) {
	name := schemaName(req)
	if req.Via != provider.ViaTool {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: name, Strict: openai.Bool(true), Schema: req.Schema,
		}}
		return
	}
	// As raw JSON: the SDK's map would lose the order of the properties, which is
	// the order the model writes them in.
	type function struct {
		Name       string          `json:"name"`
		Strict     bool            `json:"strict"`
		Parameters json.RawMessage `json:"parameters"`
	}
	p.Tools = []openai.ChatCompletionToolUnionParam{param.Override[openai.ChatCompletionToolUnionParam](struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{name, true, req.Schema}})}
	p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: name})
	p.ParallelToolCalls = openai.Bool(false) // strictness does not hold for parallel calls
}

// sound asks for speech beside the text. Only raw samples can be streamed.
func (c Config) sound(p *openai.ChatCompletionNewParams) {
	voice := c.Voice
	if voice == "" {
		voice = DefaultVoice
	}
	p.Modalities = []string{"text", "audio"}
	p.Audio.Format = openai.ChatCompletionAudioParamFormatPcm16
	p.Audio.Voice.OfString = openai.String(voice)
}

// options make a repeated call recognizable to servers that look for it, let them
// join the trace of the run, and bill the tenant whose key it is.
func options(req provider.Request) []option.RequestOption {
	var out []option.RequestOption
	if req.InvocationID != "" {
		out = append(out, option.WithHeader("Idempotency-Key", outbound.HeaderValue(req.InvocationID)))
	}
	if req.Traceparent != "" {
		out = append(out, option.WithHeader("Traceparent", req.Traceparent))
	}
	if req.Credential != "" {
		out = append(out, option.WithAPIKey(string(req.Credential)))
	}
	return out
}
