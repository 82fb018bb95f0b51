package compat

import (
	"encoding/json"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"
)

// Whatever a server sends is read as the SDK reads it.
func TestChunk_IsReadAsTheSDKReadsIt(t *testing.T) {
	t.Parallel()
	for _, piece := range pieces {
		own, err := ofSDK(piece)
		var c chunk
		got := json.Unmarshal([]byte(piece), &c)
		require.Equal(t, err == nil, got == nil, "%s: %v, %v", piece, err, got)
		if err == nil {
			require.Equal(t, own, c, "%q", piece)
		}
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

var pieces = []string{
	`{}`, `[]`, `"x"`, `7`, `null`, `{`, "{\"choices\":[{\"delta\":{\"content\":\"\xe2\x82\"}}]}",
	`{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a\u00fc\n","refusal":null},"finish_reason":null}],"usage":null}`,
	`{"choices":[{"index":0,"delta":{"content":7,"refusal":["no"],"reasoning":"hm","reasoning_content":5},"finish_reason":"stop"}]}`,
	`{"choices":[{"index":"1","delta":{"content":"a"},"finish_reason":["stop"]},{"index":1.0,"delta":{}}]}`,
	`{"choices":[{"delta":{"tool_calls":[{"index":1.0,"id":7,"function":{"name":"f","arguments":{"a":1}}},{"index":"1"},{"index":2e0}]}}]}`,
	`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":"}}]}}]}`,
	`{"choices":[{"index":0,"delta":{"audio":{"data":"AA==","transcript":7}}}]}`, `{"choices":[{"delta":{"audio":"x","reasoning_content":"why"}}]}`,
	`{"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":1}},"choices":[]}`,
	`{"usage":{"prompt_tokens":9.0,"completion_tokens":"3","total_tokens":-1}}`, `{"usage":[]}`, `{"usage":0}`, `{"usage":""}`, `{"usage":false}`,
	`{"choices":{}}`, `{"choices":[7,null]}`, `{"model":7,"choices":null}`,
}

func FuzzChunk(f *testing.F) {
	for _, piece := range pieces {
		f.Add(piece)
	}
	f.Fuzz(func(t *testing.T, piece string) {
		if !json.Valid([]byte(piece)) {
			return
		}
		_, err := ofSDK(piece)
		if err == nil {
			require.NoError(t, json.Unmarshal([]byte(piece), &chunk{}))
		}
	})
}
