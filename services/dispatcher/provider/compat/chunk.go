package compat

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// chunk is what is read of a piece of an answer. The SDK's own type keeps every member that
// it finds, twice over: to read one took a fourth of all memory that a call allocated.
type chunk struct {
	Model   string                  `json:"model"`
	Usage   *openai.CompletionUsage `json:"usage"` // null in all chunks but one
	Choices []choice                `json:"choices"`
}

type choice struct {
	Index        int    `json:"index"`
	FinishReason string `json:"finish_reason"`
	Delta        delta  `json:"delta"`
}

type delta struct {
	Content   words       `json:"content"`
	Refusal   words       `json:"refusal"`
	ToolCalls []toolPiece `json:"tool_calls"`
	Audio     audioPiece  `json:"audio"`
	// Compatible servers show thinking in members of two names that are not in the
	// vendor's API.
	ReasoningContent string `json:"reasoning_content"`
	Reasoning        string `json:"reasoning"`
}

type toolPiece struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments words  `json:"arguments"`
	} `json:"function"`
}

type audioPiece struct {
	Data       string `json:"data"`
	Transcript string `json:"transcript"`
}

// words are a text. Where a compatible server sends something else, such as arguments as an
// object, they are its JSON: nothing of an answer is lost.
type words string

// UnmarshalJSON reads any value.
func (w *words) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, (*string)(w))
	case 'n': // null
		return nil
	default:
		*w = words(data)
		return nil
	}
}

// UnmarshalJSON leaves out a member of another type than it should have, other than words:
// compatible servers are not that alike.
func (c *chunk) UnmarshalJSON(data []byte) error {
	type plain chunk
	err := json.Unmarshal(data, (*plain)(c))
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// stream asks, and gives the pieces of the answer. All but their reading is the SDK's.
func (p *Provider) stream(ctx context.Context, params openai.ChatCompletionNewParams, opts []option.RequestOption) *ssestream.Stream[chunk] {
	var res *http.Response
	s := p.chat.NewStreaming(ctx, params, append(opts, option.WithResponseInto(&res))...)
	if err := s.Err(); err != nil {
		return ssestream.NewStream[chunk](nil, err)
	}
	return ssestream.NewStream[chunk](ssestream.NewDecoder(res), nil)
}
