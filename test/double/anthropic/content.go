package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// conversation checks the roles and blocks of the messages and counts their size.
type conversation struct {
	size   int    // runes of text
	last   string // role of the last message
	marked int    // number of cache breakpoints
	called []string
}

// maxMarked is the limit of cache breakpoints in one request.
const maxMarked = 4

type block struct {
	Type         string          `json:"type"`
	Text         *string         `json:"text"`
	Source       *source         `json:"source"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Signature    string          `json:"signature"`
	CacheControl *struct {
		Type string `json:"type"`
		TTL  string `json:"ttl"`
	} `json:"cache_control"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

// system checks the system prompt: a text, or blocks of text.
func (c *conversation) system(raw json.RawMessage) *Reply {
	if len(raw) == 0 {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		c.size += utf8.RuneCountInString(text)
		return nil
	}
	var blocks []block
	if json.Unmarshal(raw, &blocks) != nil {
		return bad("system: Input should be a valid list")
	}
	for i, b := range blocks {
		at := fmt.Sprintf("system.%d", i)
		if b.Type != "text" {
			return bad("%s.type: Input should be 'text'", at)
		}
		if refusal := c.block(at, "system", b); refusal != nil {
			return refusal
		}
	}
	return nil
}

func (c *conversation) messages(raw json.RawMessage) *Reply {
	var list []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return bad("messages: Input should be a valid list")
	}
	if len(list) == 0 {
		return bad("messages: at least one message is required")
	}
	for i, m := range list {
		at := fmt.Sprintf("messages.%d", i)
		switch {
		case m.Role == "system":
			return bad("messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.")
		case m.Role != "user" && m.Role != "assistant":
			return bad("%s.role: Input should be 'user' or 'assistant'", at)
		case i == 0 && m.Role != "user":
			return bad("messages: first message must use the \"user\" role")
		}
		if refusal := c.content(at, m.Role, m.Content, i == len(list)-1); refusal != nil {
			return refusal
		}
		c.last = m.Role
	}
	return nil
}

// content checks a message's content: a text, or blocks.
func (c *conversation) content(at, role string, raw json.RawMessage, final bool) *Reply {
	var text string
	var blocks []block
	switch {
	case json.Unmarshal(raw, &text) == nil:
		if text != "" {
			blocks = []block{{Type: "text", Text: &text}}
		}
	case json.Unmarshal(raw, &blocks) != nil:
		return bad("%s.content: Input should be a valid list", at)
	}
	final = final && role == "assistant"
	if !final && len(blocks) == 0 {
		return bad("%s: all messages must have non-empty content except for the optional final assistant message", at)
	}
	for j, b := range blocks {
		if refusal := c.block(fmt.Sprintf("%s.content.%d", at, j), role, b); refusal != nil {
			return refusal
		}
	}
	if n := len(blocks); final && n > 0 && blocks[n-1].Text != nil && strings.TrimRight(*blocks[n-1].Text, " \t\r\n") != *blocks[n-1].Text {
		return bad("messages: final assistant content cannot end with trailing whitespace")
	}
	return nil
}

func (c *conversation) block(at, role string, b block) *Reply {
	if refusal := c.mark(at, b); refusal != nil {
		return refusal
	}
	switch b.Type {
	case "text":
		switch {
		case b.Text == nil:
			return bad("%s.text.text: Field required", at)
		case *b.Text == "":
			return bad("messages: text content blocks must be non-empty")
		}
		c.size += utf8.RuneCountInString(*b.Text)
		return nil
	case "image", "document":
		if role != "user" {
			return bad("%s: '%s' blocks are only permitted within user turns", at, b.Type)
		}
		return b.media(at)
	default:
		return c.tool(at, role, b)
	}
}

// tool checks tool calls, tool results and thinking blocks that are sent back.
func (c *conversation) tool(at, role string, b block) *Reply {
	switch {
	case b.Type == "tool_use" && role == "assistant":
		if b.ID == "" || b.Name == "" || len(b.Input) == 0 || b.Input[0] != '{' {
			return bad("%s.tool_use: id, name and input are required", at)
		}
		c.called = append(c.called, b.ID)
		return nil
	case b.Type == "tool_result" && role == "user":
		if !slices.Contains(c.called, b.ToolUseID) {
			return bad("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", at, b.ToolUseID)
		}
		return nil
	case b.Type == "thinking" && role == "assistant":
		if b.Signature == "" {
			return bad("%s.thinking.signature: Field required", at)
		}
		return nil
	default:
		return bad("%s: Input tag '%s' found using 'type' does not match any of the expected tags: 'document', 'image', 'text', 'thinking', 'tool_result', 'tool_use'", at, b.Type)
	}
}

func (c *conversation) mark(at string, b block) *Reply {
	m := b.CacheControl
	if m == nil {
		return nil
	}
	c.marked++
	switch {
	case m.Type != "ephemeral":
		return bad("%s.cache_control.type: Input should be 'ephemeral'", at)
	case m.TTL != "" && m.TTL != "5m" && m.TTL != "1h":
		return bad("%s.cache_control.ephemeral.ttl: Input should be '5m' or '1h'", at)
	case b.Type == "text" && b.Text != nil && *b.Text == "":
		return bad("%s: cache_control cannot be set for empty text blocks", at)
	case c.marked > maxMarked:
		return bad("A maximum of %d blocks with cache_control may be provided. Found %d.", maxMarked, c.marked)
	default:
		return nil
	}
}

// media checks the source of an image or a document.
func (b block) media(at string) *Reply {
	s := b.Source
	if s == nil {
		return bad("%s.%s.source: Field required", at, b.Type)
	}
	types := []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
	if b.Type == "document" {
		types = []string{"application/pdf"}
	}
	switch {
	case s.Type == "url" && s.URL == "":
		return bad("%s.%s.source.url.url: Field required", at, b.Type)
	case s.Type == "url":
		return nil
	case s.Type == "text" && b.Type == "document" && s.MediaType == "text/plain" && s.Data != "":
		return nil
	case s.Type != "base64":
		return bad("%s.%s.source: Input tag '%s' found using 'type' does not match any of the expected tags", at, b.Type, s.Type)
	case !slices.Contains(types, s.MediaType):
		return bad("%s.%s.source.base64.media_type: Input should be '%s'", at, b.Type, strings.Join(types, "', '"))
	}
	if data, err := base64.StdEncoding.DecodeString(s.Data); err != nil || len(data) == 0 {
		return bad("%s.%s.source.base64: invalid base64 data", at, b.Type)
	}
	return nil
}
