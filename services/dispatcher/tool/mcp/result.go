package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// Ports of a node's result.
const (
	portOutput  = "output"
	portContent = "content"
	portIsError = "isError"
)

// newResult converts a tool result to the node's result.
func (c config) newResult(s *server, res *mcp.CallToolResult) model.Result {
	switch {
	case res.NeedsInput():
		return tool.NewFailure(&wire.NodeError{
			Code:    string(fault.PeerInputRequired),
			Message: s.peer().Name + " asks for input before it answers; a workflow cannot give it",
		})
	case res.IsError && !c.AllowToolError:
		return tool.NewFailure(&wire.NodeError{
			Code:    string(fault.ToolFailed),
			Message: fmt.Sprintf("a tool of %s says that it failed; allowToolError lets the workflow read what it says", s.peer().Name),
			Details: map[string]any{"server": s.cfg.ID},
		})
	}
	content, err := blocks(res)
	if err != nil {
		return tool.NewFailure(resultError(s))
	}
	output, err := outputOf(res, content)
	if err != nil {
		return tool.NewFailure(resultError(s))
	}
	return tool.NewSuccess(map[string]json.RawMessage{
		portOutput: output, portContent: content, portIsError: json.RawMessage(fmt.Sprint(res.IsError)),
	})
}

func resultError(s *server) *wire.NodeError {
	return &wire.NodeError{
		Code:    string(fault.ToolFailed),
		Message: s.peer().Name + " answered with something that is no result of a tool",
	}
}

// outputOf returns the structured content, else the joined texts, else the blocks.
func outputOf(res *mcp.CallToolResult, content json.RawMessage) (json.RawMessage, error) {
	var texts []string
	for _, b := range res.Content {
		if t, ok := b.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	if res.StructuredContent != nil {
		return renderStructured(res.StructuredContent, texts)
	}
	if len(texts) == 0 {
		return content, nil
	}
	return wire.AppendString(nil, strings.Join(texts, "\n")), nil
}

// renderStructured renders the structured content. The library decodes numbers as floats. Servers
// repeat the document as text, which keeps the exact numbers.
func renderStructured(v any, texts []string) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil || len(texts) != 1 {
		return b, err
	}
	var structuredValue, textValue any
	if json.Unmarshal(b, &structuredValue) == nil && json.Unmarshal([]byte(texts[0]), &textValue) == nil && reflect.DeepEqual(structuredValue, textValue) {
		return json.RawMessage(strings.TrimSpace(texts[0])), nil
	}
	return b, nil
}
