package compat

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

// Whatever a server sends is read as the SDK reads it.
func TestChunk_IsReadAsTheSDKReadsIt(t *testing.T) {
	t.Parallel()
	for _, piece := range samples {
		own, err := ofSDK(piece)
		var c chunk
		got := c.read([]byte(piece))
		require.Equal(t, err == nil, got == nil, "%s: %v, %v", piece, err, got)
		if err == nil {
			require.Equal(t, own, c, "%q", piece)
		}
	}
}

// What the vendor's API does not have is taken for what it means.
func TestChunk_OfACompatibleServerIsReadForWhatItMeans(t *testing.T) {
	t.Parallel()
	call := func(index int64, id, name, arguments string) (p toolPiece) {
		p.Index, p.ID, p.Function.Name, p.Function.Arguments = index, id, name, arguments
		return p
	}
	for piece, want := range map[string]chunk{
		`{"choices":[{"index":0,"delta":{"content":7,"refusal":["no"],"reasoning":"hm","reasoning_content":5},"finish_reason":"stop"}]}`: {
			Choices: []choice{{FinishReason: "stop", Delta: delta{Content: "7", Refusal: `["no"]`, Reasoning: "hm"}}},
		},
		`{"choices":[{"index":"1","delta":{"content":"a"}},{"index":2.0,"delta":{}}]}`: {
			Choices: []choice{{Index: 1, Delta: delta{Content: "a"}}, {Index: 2}},
		},
		`{"choices":[{"delta":{"tool_calls":[{"index":1.0,"id":7,"function":{"name":"f","arguments":{"a":1}}},{"index":"2"}]}}]}`: {
			Choices: []choice{{Delta: delta{ToolCalls: []toolPiece{call(1, "7", "f", `{"a":1}`), call(2, "", "", "")}}}},
		},
		`{"model":"m","usage":{"prompt_tokens":9.0,"completion_tokens":"3","total_tokens":12}}`: {
			Model: "m", Usage: &usage{PromptTokens: 9, CompletionTokens: 3, TotalTokens: 12},
		},
		// A server that escapes what is not ASCII may cut a character in two.
		`{"choices":[{"index":0,"delta":{"content":"\ud83d\u0041b"}}]}`: {
			Choices: []choice{{Delta: delta{Content: "\ufffdAb"}}},
		},
		`{"choices":[{"index":0,"delta":{"audio":{"data":"AA==","transcript":7}}}]}`: {
			Choices: []choice{{Delta: delta{Audio: audioPiece{Data: "AA==", Transcript: "7"}}}},
		},
	} {
		var c chunk
		require.NoError(t, c.read([]byte(piece)), piece)
		require.Equal(t, want, c, piece)
	}
}

func ofSDK(piece string) (chunk, error) {
	var own openai.ChatCompletionChunk
	err := json.Unmarshal([]byte(piece), &own)
	c := chunkOf(own)
	if c.Choices == nil && own.Choices != nil {
		c.Choices = []choice{}
	}
	return c, err
}

var samples = []string{
	`{"model":nul"abc"}`, `{"choices":[{"delta":n{"content":"x"}}]}`, `{}`, `[]`, `"x"`, `7`, `null`,
	`{`, "{\"choices\":[{\"delta\":{\"content\":\"\xe2\x82\"}}]}",
	`{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a\u00fc\n","refusal":null},"finish_reason":null}],"usage":null}`,
	`{"choices":[{"index":0,"delta":{"content":7,"refusal":["no"],"reasoning":"hm","reasoning_content":5},"finish_reason":"stop"}]}`,
	`{"choices":[{"index":"1","delta":{"content":"a"},"finish_reason":["stop"]},{"index":1.0,"delta":{}}]}`,
	`{"choices":[{"delta":{"tool_calls":[{"index":1.0,"id":7,"function":{"name":"f","arguments":{"a":1}}},{"index":"1"},{"index":2e0}]}}]}`,
	`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":"}}]}}]}`,
	`{"choices":[{"index":0,"delta":{"audio":{"data":"AA==","transcript":7}}}]}`,
	`{"choices":[{"delta":{"audio":"x","reasoning_content":"why"}}]}`,
	`{"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":1}},"choices":[]}`,
	`{"usage":{"prompt_tokens":9.0,"completion_tokens":"3","total_tokens":-1}}`, `{"usage":[]}`,
	`{"usage":0}`, `{"usage":""}`, `{"usage":false}`,
	`{"choices":{}}`, `{"choices":[7,null]}`, `{"model":7,"choices":null}`,
	`{"error":{"code":429}}`, `{"error":null,"model":"m"}`, `{"error":"no","model":7}`,
	`{"error":null,"model":7}`,
}

func FuzzChunk(f *testing.F) {
	for _, piece := range samples {
		f.Add(piece)
	}
	f.Fuzz(func(t *testing.T, piece string) {
		if !json.Valid([]byte(piece)) {
			require.False(t, new(chunk).readFast([]byte(piece)), "%q", piece)
			return
		}
		own, err := ofSDK(piece)
		if err != nil {
			return
		}
		var c chunk
		require.NoError(t, c.read([]byte(piece)))
		// Of a name twice, or of one in another case, either may count.
		if strictjson.Check([]byte(piece), strictjson.Default) != nil || piece != strings.ToLower(piece) {
			return
		}
		for i, o := range c.Choices {
			if len(o.Delta.ToolCalls) == 0 {
				c.Choices[i].Delta.ToolCalls = nil
			}
		}
		require.Equal(t, own, c)
	})
}
