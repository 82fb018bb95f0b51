package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
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

// result is a tool's result as the server sent it, with exact numbers and all content blocks.
type result struct {
	Blocks     json.RawMessage // an array of objects with a type
	Texts      []string
	Structured json.RawMessage // nil for none
	IsError    bool
	NeedsInput bool
}

// answer is a tool's result and what the server says about such results.
type answer struct {
	result

	output output
}

var errNoResult = errors.New("the answer is no result of a tool")

// newAnswer reads a result. Blocks of any type are kept.
func newAnswer(res *mcp.CallToolResult) (*answer, error) {
	got := &answer{result: result{Blocks: json.RawMessage("[]"), IsError: res.IsError, NeedsInput: res.NeedsInput()}}
	doc := keptResult(res)
	if len(doc) == 0 {
		return got, nil
	}
	members := strictjson.Object(doc)
	if members == nil {
		return nil, errNoResult
	}
	if v := members["structuredContent"]; v != nil && string(v) != "null" {
		got.Structured = v
	}
	if v := members["content"]; v != nil && string(v) != "null" {
		got.Blocks = v
	}
	var err error
	got.Texts, err = textsOf(got.Blocks)
	return got, err
}

// textsOf returns the texts of content blocks.
func textsOf(doc json.RawMessage) ([]string, error) {
	var (
		blocks []struct {
			Type *string `json:"type"`
			Text any     `json:"text"`
		}
		texts []string
	)
	if json.Unmarshal(doc, &blocks) != nil {
		return nil, errNoResult
	}
	for _, b := range blocks {
		text, isText := b.Text.(string)
		switch {
		case b.Type == nil, *b.Type == "text" && !isText && b.Text != nil:
			return nil, errNoResult
		case *b.Type == "text":
			texts = append(texts, text)
		}
	}
	return texts, nil
}

// newResult converts a tool's result to the node's.
func (c config) newResult(s *server, got *answer) model.Result {
	switch {
	case got.NeedsInput:
		return tool.NewFailure(&wire.NodeError{
			Code:    string(fault.PeerInputRequired),
			Message: s.peer().Name + " asks for input before it answers; a workflow cannot give it",
		})
	case got.IsError && !c.AllowToolError:
		return tool.NewFailure(&wire.NodeError{
			Code:    string(fault.ToolFailed),
			Message: fmt.Sprintf("a tool of %s says that it failed; allowToolError lets the workflow read what it says", s.peer().Name),
			Details: map[string]any{"server": s.cfg.ID},
		})
	}
	if keyword := got.output.violation(got.result); keyword != "" {
		return tool.NewFailure(&wire.NodeError{
			Code:    string(fault.ToolFailed),
			Message: fmt.Sprintf("the result of a tool of %s does not match the outputSchema that the server gives for it: %s", s.peer().Name, keyword),
			Details: map[string]any{"server": s.cfg.ID, "tool": c.Tool, "keyword": keyword},
		})
	}
	return tool.NewSuccess(map[string]json.RawMessage{
		portOutput: got.rendered(), portContent: got.Blocks, portIsError: json.RawMessage(fmt.Sprint(got.IsError)),
	})
}

func resultError(s *server) *wire.NodeError {
	return &wire.NodeError{
		Code:    string(fault.ToolFailed),
		Message: s.peer().Name + " answered with something that is no result of a tool",
	}
}

// rendered returns the structured content, else the joined texts, else the blocks.
func (r result) rendered() json.RawMessage {
	switch {
	case r.Structured != nil:
		return r.Structured
	case len(r.Texts) == 0:
		return r.Blocks
	default:
		return wire.AppendString(nil, strings.Join(r.Texts, "\n"))
	}
}
