package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// defaultSchemaName is the name of a schema without one.
const defaultSchemaName = "answer"

// DefaultMaxTokens is the output limit of requests without one, because the vendor requires a
// limit. Every model with strict output supports it.
const DefaultMaxTokens = 16_384

// paramsOf converts a validated request.
func paramsOf(req provider.Request) (anthropic.MessageNewParams, error) {
	var p anthropic.MessageNewParams
	if err := checkSampling(req); err != nil {
		return p, err
	}
	talk, err := conversationOf(req)
	if err != nil {
		return p, err
	}
	if talk.endsWithAssistant() && len(req.Schema) > 0 && !viaTool(req) {
		return p, invalid("messages: the last one is the assistant's; this provider goes on from no beginning where the answer has a schema")
	}
	p = anthropic.MessageNewParams{
		Model: req.Model, MaxTokens: maxTokens(req), Messages: talk.messages, System: talk.system,
		StopSequences: req.Stop, Thinking: thinkingOf(req),
	}
	if req.Temperature != nil {
		p.Temperature = anthropic.Float(*req.Temperature)
	}
	if req.TopP != nil {
		p.TopP = anthropic.Float(*req.TopP)
	}
	setSchema(&p, req)
	return p, nil
}

func maxTokens(req provider.Request) int64 {
	if req.MaxTokens == 0 {
		return DefaultMaxTokens
	}
	return int64(req.MaxTokens)
}

// checkSampling rejects what the vendor would reject, to name the member: the vendor's message must
// not be repeated.
func checkSampling(req provider.Request) error {
	switch {
	case req.Temperature != nil && (*req.Temperature < 0 || *req.Temperature > 1):
		return invalid("temperature: %g; this provider takes 0 to 1", *req.Temperature)
	case req.TopP != nil && (*req.TopP < 0 || *req.TopP > 1):
		return invalid("topP: %g; want 0 to 1", *req.TopP)
	}
	for i, s := range req.Stop {
		if strings.TrimSpace(s) == "" {
			return invalid("stop[%d]: has nothing but white space, which this provider does not stop at", i)
		}
	}
	return nil
}

// setSchema requests an answer of the schema, in strict mode either way.
func setSchema(p *anthropic.MessageNewParams, req provider.Request) {
	switch {
	case len(req.Schema) == 0:
	case req.Via == provider.ViaTool:
		p.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: schemaName(req), Strict: anthropic.Bool(true),
			// As raw JSON, to keep the author's order of properties.
			InputSchema: param.Override[anthropic.ToolInputSchemaParam](req.Schema),
		}}}
		p.ToolChoice = anthropic.ToolChoiceUnionParam{OfTool: &anthropic.ToolChoiceToolParam{
			Name: schemaName(req), DisableParallelToolUse: anthropic.Bool(true),
		}}
	default:
		p.OutputConfig.Format = param.Override[anthropic.JSONOutputFormatParam](struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		}{"json_schema", req.Schema})
	}
}

// viaTool reports whether the answer is the input of the forced tool.
func viaTool(req provider.Request) bool {
	return len(req.Schema) > 0 && req.Via == provider.ViaTool
}

func schemaName(req provider.Request) string {
	if req.SchemaName == "" {
		return defaultSchemaName
	}
	return req.SchemaName
}
