package compat

import (
	"encoding/json"

	"github.com/openai/openai-go/v3"

	"waybill.dev/waybill/protocol/strictjson"
)

// chunk holds the members that are read of a chunk. The SDK's type keeps every member twice, and
// parsing all chunks with it used a third of the memory of a call.
type chunk struct {
	Model   string
	Usage   *usage // null in all chunks but one
	Choices []choice
	// Error is set if the server fails in the stream. Some servers send it as null in each chunk.
	Error json.RawMessage
}

type usage struct {
	PromptTokens        int64 `json:"prompt_tokens"`
	CompletionTokens    int64 `json:"completion_tokens"`
	TotalTokens         int64 `json:"total_tokens"`
	PromptTokensDetails struct {
		CachedTokens     int64 `json:"cached_tokens"`
		CacheWriteTokens int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
}

type choice struct {
	Index        int64
	FinishReason string
	Delta        delta
}

type delta struct {
	Content, Refusal string
	ToolCalls        []toolPiece
	Audio            audioPiece
	// Compatible servers send thinking in one of two members that are not in the vendor's API.
	ReasoningContent, Reasoning string
}

type toolPiece struct {
	Index    int64  `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type audioPiece struct {
	Data       string `json:"data"`
	Transcript string `json:"transcript"`
}

// failed reports whether the chunk is an error.
func (c chunk) failed() bool { return len(c.Error) > 0 && string(c.Error) != "null" }

// read parses a chunk. Chunks that deviate from the vendor's API, such as numbers for strings or
// split characters, are parsed by the SDK, which handles the variants of compatible servers.
func (c *chunk) read(data []byte) error {
	if c.readFast(data) {
		return nil
	}
	var own openai.ChatCompletionChunk
	if err := json.Unmarshal(data, &own); err != nil {
		return err
	}
	*c = chunkOf(own)
	return nil
}

// readFast parses a chunk in the vendor's form in one pass; false if it deviates.
func (c *chunk) readFast(data []byte) bool {
	r := strictjson.Reading(data)
	r.Object(func(name []byte) {
		switch string(name) {
		case "model":
			readText(&r, &c.Model)
		case "usage":
			r.Set(&c.Usage)
		case "choices":
			c.choices(&r)
		case "error":
			r.Set(&c.Error)
		}
	})
	return r.Sound()
}

// readText reads a string; null leaves it unchanged.
func readText(r *strictjson.Cursor, into *string) {
	if !r.Null() {
		*into = r.Text()
	}
}

func (c *chunk) choices(r *strictjson.Cursor) {
	if r.Null() {
		return
	}
	c.Choices = []choice{}
	r.Array(func() {
		c.Choices = append(c.Choices, choice{})
		one := &c.Choices[len(c.Choices)-1]
		r.Object(func(name []byte) {
			switch string(name) {
			case "index":
				r.Set(&one.Index)
			case "finish_reason":
				readText(r, &one.FinishReason)
			case "delta":
				one.Delta.read(r)
			}
		})
	})
}

func (d *delta) read(r *strictjson.Cursor) {
	if r.Null() {
		return
	}
	r.Object(func(name []byte) {
		switch string(name) {
		case "content":
			readText(r, &d.Content)
		case "refusal":
			readText(r, &d.Refusal)
		case "tool_calls":
			r.Set(&d.ToolCalls)
		case "audio":
			r.Set(&d.Audio)
		case "reasoning_content":
			readText(r, &d.ReasoningContent)
		case "reasoning":
			readText(r, &d.Reasoning)
		}
	})
}

// chunkOf converts the SDK's type.
func chunkOf(own openai.ChatCompletionChunk) chunk {
	c := chunk{Model: own.Model}
	if raw := own.JSON.ExtraFields["error"].Raw(); raw != "" {
		c.Error = json.RawMessage(raw)
	}
	if u := own.Usage; own.JSON.Usage.Valid() {
		c.Usage = &usage{PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens, TotalTokens: u.TotalTokens}
		c.Usage.PromptTokensDetails.CachedTokens = u.PromptTokensDetails.CachedTokens
		c.Usage.PromptTokensDetails.CacheWriteTokens = u.PromptTokensDetails.CacheWriteTokens
	}
	for _, o := range own.Choices {
		d := delta{
			Content:          o.Delta.Content,
			Refusal:          o.Delta.Refusal,
			Audio:            audioPiece{Data: o.Delta.Audio.Data, Transcript: o.Delta.Audio.Transcript},
			ReasoningContent: extra(o.Delta, "reasoning_content"),
			Reasoning:        extra(o.Delta, "reasoning"),
		}
		for _, t := range o.Delta.ToolCalls {
			p := toolPiece{Index: t.Index, ID: t.ID}
			p.Function.Name, p.Function.Arguments = t.Function.Name, t.Function.Arguments
			d.ToolCalls = append(d.ToolCalls, p)
		}
		c.Choices = append(c.Choices, choice{Index: o.Index, FinishReason: o.FinishReason, Delta: d})
	}
	return c
}

// extra returns a string member that is not in the vendor's API; empty if absent.
func extra(d openai.ChatCompletionChunkChoiceDelta, name string) (text string) {
	_ = json.Unmarshal([]byte(d.JSON.ExtraFields[name].Raw()), &text)
	return text
}
