package compat

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// responseParams converts a validated request for the Responses API. The server stores nothing: each
// request has the whole conversation.
func (c Config) responseParams(req provider.Request) (responses.ResponseNewParams, error) {
	input, err := c.Dialect.inputOf(req)
	if err != nil {
		return responses.ResponseNewParams{}, err
	}
	if len(req.Stop) > 0 {
		return responses.ResponseNewParams{}, &provider.Error{
			Code:    provider.CodeInvalidRequest,
			Message: "stop: the Responses API takes no stop sequences; leave them out, or use a provider with the interface openai-chat",
		}
	}
	p := responses.ResponseNewParams{
		Model: req.Model,
		Input: param.Override[responses.ResponseNewParamsInputUnion](input),
		Store: openai.Bool(false),
	}
	if req.MaxTokens > 0 {
		p.MaxOutputTokens = openai.Int(int64(req.MaxTokens))
	}
	if !c.isReasoning(req.Model) {
		if req.Temperature != nil {
			p.Temperature = openai.Float(*req.Temperature)
		}
		if req.TopP != nil {
			p.TopP = openai.Float(*req.TopP)
		}
	}
	if c.ReasoningEffort != "" && (c.Dialect == DialectCompatible || c.Dialect.canThink(req.Model)) {
		p.Reasoning.Effort = shared.ReasoningEffort(c.ReasoningEffort)
	}
	if req.Thoughts && c.isReasoning(req.Model) { // other servers send thoughts unasked, or reject this
		p.Reasoning.Summary = shared.ReasoningSummaryAuto
	}
	switch {
	case req.Via == provider.ViaObject:
		p.Text.Format.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	case len(req.Schema) > 0:
		setResponseSchema(&p, req)
	}
	return p, nil
}

// namedSchema is a schema as the Responses API takes it. It is raw JSON, because the SDK's map would
// lose the order of the properties, in which the model writes them.
type namedSchema struct {
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Strict     bool            `json:"strict"`
	Schema     json.RawMessage `json:"schema,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// setResponseSchema enforces the request's schema in the requested way; see setSchema.
func setResponseSchema(p *responses.ResponseNewParams, req provider.Request) {
	s := namedSchema{Type: "json_schema", Name: schemaName(req), Strict: !req.AsWritten, Schema: req.Schema}
	if req.Via != provider.ViaTool {
		p.Text.Format = param.Override[responses.ResponseFormatTextConfigUnionParam](s)
		return
	}
	s.Type, s.Schema, s.Parameters = "function", nil, req.Schema
	p.Tools = []responses.ToolUnionParam{param.Override[responses.ToolUnionParam](s)}
	p.ToolChoice.OfFunctionTool = &responses.ToolChoiceFunctionParam{Name: s.Name}
	p.ParallelToolCalls = openai.Bool(false)
}

// inputMessage is a message of the Responses API. Content is a string or an array of blocks.
type inputMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// inputOf converts the conversation. The system text is a message: a server that wants the word JSON
// in the prompt looks for it in messages only.
func (d Dialect) inputOf(req provider.Request) ([]inputMessage, error) {
	var list []inputMessage
	if req.System != "" {
		list = append(list, inputMessage{"system", strictjson.Render(req.System)})
	}
	for i, m := range req.Messages {
		if m.Role == "tool" {
			return nil, &provider.Error{
				Code:    provider.CodeInvalidRequest,
				Message: fmt.Sprintf("messages[%d].role: the Responses API takes a tool's result only with the id of the call it answers, which a message does not have; give it as user", i),
			}
		}
		content, err := d.inputContent(m)
		if err != nil {
			err.Message = fmt.Sprintf("messages[%d].%s", i, err.Message)
			return nil, err
		}
		list = append(list, inputMessage{m.Role, content})
	}
	return list, nil
}

// inputContent converts a message's content.
func (d Dialect) inputContent(m provider.Message) (json.RawMessage, *provider.Error) {
	var raw []json.RawMessage
	if json.Unmarshal(m.Content, &raw) != nil { // a string
		return m.Content, nil
	}
	parts, err := m.Parts()
	if err != nil {
		return nil, invalidPart(err)
	}
	for i, p := range parts {
		said, wrong := d.inputPart(m.Role, p)
		if wrong != "" {
			return nil, &provider.Error{
				Code:    provider.CodeUnsupportedModality,
				Message: fmt.Sprintf("content[%d]: %s", i, wrong),
			}
		}
		raw[i] = strictjson.Render(withDetail(said, raw[i]))
	}
	return strictjson.Render(raw), nil
}

// inputPart converts one part, or returns why the vendor rejects it.
func (d Dialect) inputPart(role string, p provider.Part) (said map[string]any, wrong string) {
	switch {
	case p.Kind == provider.PartText && role == "assistant":
		return map[string]any{"type": "output_text", "text": p.Text, "annotations": []any{}}, ""
	case p.Kind == provider.PartText:
		return map[string]any{"type": "input_text", "text": p.Text}, ""
	case role != "user":
		return nil, fmt.Sprintf("the Responses API takes %s parts from the user alone, not in a message of role %s", p.Kind, role)
	case p.Kind == provider.PartImage:
		if _, wrong := d.image(p); wrong != "" {
			return nil, wrong
		}
		return map[string]any{"type": "input_image", "image_url": address(p), "detail": "auto"}, ""
	case p.Kind == provider.PartFile && p.URL != "":
		return map[string]any{"type": "input_file", "file_url": p.URL}, ""
	case p.Kind == provider.PartFile:
		name := p.Name
		if name == "" {
			name = "file" // the vendor requires a name
		}
		data := "data:" + p.MIME + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
		return map[string]any{"type": "input_file", "filename": name, "file_data": data}, ""
	default:
		return nil, "the Responses API takes no sound; use a provider with the interface openai-chat"
	}
}

// withDetail keeps the author's detail of an image.
func withDetail(said map[string]any, block json.RawMessage) map[string]any {
	var image struct {
		URL struct {
			Detail string `json:"detail"`
		} `json:"image_url"`
	}
	_ = strictjson.Read(block, &image) // other blocks have none
	if said["type"] == "input_image" && slices.Contains([]string{"low", "high", "original"}, image.URL.Detail) {
		said["detail"] = image.URL.Detail
	}
	return said
}
