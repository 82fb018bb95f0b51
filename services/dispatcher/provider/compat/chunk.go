package compat

import (
	"encoding/json"

	"github.com/openai/openai-go/v3"

	"waybill.dev/waybill/protocol/strictjson"
)

// chunk is what is read of a piece of an answer. The SDK's own type keeps every member that
// it finds, twice over: to read all pieces with it took a third of the memory that a call
// allocated.
type chunk struct {
	Model   string
	Usage   *usage // null in all chunks but one
	Choices []choice
	// Error stands where the server fails midway, and is null with servers that name it in
	// each piece.
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
	// Compatible servers show thinking in members of two names that are not in the
	// vendor's API.
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

// failed reports that the server tells of an error instead.
func (c chunk) failed() bool { return len(c.Error) > 0 && string(c.Error) != "null" }

// read reads a piece. One that is not quite as the vendor's API has it, such as with
// numbers for texts or a character that is cut in two, the SDK reads: it knows the ways of
// compatible servers.
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

// readFast reads a piece as the vendor writes it, in one pass; false: it is none.
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

// readText reads a text, or null, which is none.
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

// chunkOf takes what is read out of the SDK's own type.
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
			Content: o.Delta.Content, Refusal: o.Delta.Refusal, Audio: audioPiece{Data: o.Delta.Audio.Data, Transcript: o.Delta.Audio.Transcript},
			ReasoningContent: extra(o.Delta, "reasoning_content"), Reasoning: extra(o.Delta, "reasoning"),
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

// extra is a text that the vendor's API does not have; empty: it is none.
func extra(d openai.ChatCompletionChunkChoiceDelta, name string) (text string) {
	_ = json.Unmarshal([]byte(d.JSON.ExtraFields[name].Raw()), &text)
	return text
}
