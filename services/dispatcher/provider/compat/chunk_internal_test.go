package compat

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func textOf(text string) textPiece { return textPiece{text: text} }

// Chunks are read for what they mean, in the forms of the vendor and of compatible servers.
func TestChunk_IsReadForWhatItMeans(t *testing.T) {
	t.Parallel()
	five, nine, three, twelve, four, one := int64(5), int64(9), int64(3), int64(12), int64(4), int64(1)
	for piece, want := range map[string]chunk{
		`{}`:   {},
		`null`: {},
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a\u00fc\n","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}`: {
			Model: "m", Choices: []choice{{Delta: delta{Role: "assistant", Content: textOf("aü\n")}}},
		},
		`{"choices":[{"index":0,"delta":{"content":7,"refusal":["no"],"reasoning":"hm","reasoning_content":null},"finish_reason":"stop"}]}`: {
			Choices: []choice{{FinishReason: "stop", Delta: delta{Content: textOf("7"), Refusal: `["no"]`, Thought: "hm"}}},
		},
		`{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"reference","reference_ids":[1]},{"type":"text","text":"b"}]}}]}`: {
			Choices: []choice{{Delta: delta{Content: textOf("ab"), Thought: "hm"}}},
		},
		`{"choices":[{"index":"1","delta":{"content":"a"}},{"index":2.0,"delta":{}},{"delta":null}]}`: {
			Choices: []choice{{Index: 1, Delta: delta{Content: textOf("a")}}, {Index: 2}, {}},
		},
		`{"choices":[{"delta":{"tool_calls":[{"index":1.0,"id":7,"function":{"name":"f","arguments":{"a":1}}},{"index":"2"},{}]}}]}`: {
			Choices: []choice{{Delta: delta{ToolCalls: []toolPiece{
				{Index: 1, ID: "7", Name: "f", Arguments: textOf(`{"a":1}`)},
				{Index: 2},
			}}}},
		},
		`{"choices":[{"delta":{"function_call":{"name":"f","arguments":"{}"}}}]}`: {
			Choices: []choice{{Delta: delta{ToolCalls: []toolPiece{{Name: "f", Arguments: textOf("{}")}}}}},
		},
		`{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}]}`: {
			Choices: []choice{{FinishReason: "stop", Delta: delta{Role: "assistant", Content: textOf("whole")}, Whole: true}},
		},
		`{"choices":[{"index":0,"delta":{"content":"b"},"message":{"content":"ab"}}]}`: {Choices: []choice{{Delta: delta{Content: textOf("b")}}}},
		`{"model":"m","usage":{"prompt_tokens":9.0,"completion_tokens":"3","total_tokens":12,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":1}}}`: {
			Model: "m", Usage: &usage{prompt: &nine, completion: &three, total: &twelve, cacheRead: &four, cacheWrite: &one},
		},
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":9,"completion_tokens":5}}]}`: {
			Choices: []choice{{FinishReason: "stop"}}, Usage: &usage{prompt: &nine, completion: &five},
		},
		`{"x_groq":{"usage":{"prompt_tokens":9}}}`:                  {Usage: &usage{prompt: &nine}},
		`{"usage":{"prompt_tokens":9,"prompt_cache_hit_tokens":4}}`: {Usage: &usage{prompt: &nine, cacheRead: &four}},
		`{"usage":{"prompt_tokens":-9,"completion_tokens":5}}`:      {Usage: &usage{completion: &five}},
		`{"usage":{}}`:           {},
		`{"choices":[7]}`:        {},
		`{"choices":"x"}`:        {},
		`{"usage":[7]}`:          {},
		`{"error":{"code":429}}`: {Error: json.RawMessage(`{"code":429}`)},
		`{"error":"no"}`:         {Error: json.RawMessage(`"no"`)},
		`{"object":"error","message":"no","code":400}`: {Error: json.RawMessage(`{"object":"error","message":"no","code":400}`)},
		`{"choices":[{"index":0,"delta":{"audio":{"data":"AA==","transcript":7}}}]}`: {
			Choices: []choice{{Delta: delta{Audio: audioPiece{Data: "AA==", Transcript: "7"}}}},
		},
	} {
		var c chunk
		require.NoError(t, c.read([]byte(piece)), piece)
		if !c.failed() {
			c.Error = nil
		}
		if len(c.Choices) == 0 {
			c.Choices = nil
		}
		require.Equal(t, want, c, piece)
	}
	for _, piece := range []string{``, `{`, `[`, `7`, `"x"`} {
		require.Error(t, new(chunk).read([]byte(piece)), piece)
	}
}

// The quick reading of usual chunks means what the loose one does.
func FuzzChunk(f *testing.F) {
	for _, piece := range []string{
		`{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a\u00fc\n","refusal":null},"finish_reason":null}],"usage":null}`,
		`{"choices":[{"index":0,"delta":{"content":"\ud83d"}}]}`,
		`{"choices":[],"usage":{"prompt_tokens":1}}`, `{"model":7}`, `{"choices":null}`, `{"error":null}`,
	} {
		f.Add(piece)
	}
	f.Fuzz(func(t *testing.T, piece string) {
		var quick, loose chunk
		if !quick.readFast([]byte(piece)) {
			return
		}
		require.NoError(t, loose.readLoosely([]byte(piece)), "%q", piece)
		if len(quick.Choices) == 0 {
			quick.Choices = loose.Choices
		}
		require.Equal(t, loose, quick, "%q", piece)
	})
}

// A character whose escapes are in two pieces is one character.
func TestJoiner_JoinsSplitCharacters(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pieces []string
		want   string
	}{
		"split":                 {[]string{`"a\ud83d"`, `"\ude00b"`}, "a😀b"},
		"in capitals":           {[]string{`"\uD83D"`, `"\uDE00"`}, "😀"},
		"whole":                 {[]string{`"\ud83d\ude00"`}, "😀"},
		"an empty piece within": {[]string{`"\ud83d"`, `"\ude00\ud83d"`, `"\ude01"`}, "😀😁"},
		"never completed":       {[]string{`"a\ud83d"`}, "a\ufffd"},
		"followed by text":      {[]string{`"\ud83d"`, `"b\ud83d\ude00"`}, "\ufffdb😀"},
		"a second half alone":   {[]string{`"\ude00"`}, "\ufffd"},
		"a backslash before it": {[]string{`"\\ud83d"`, `"\\\ud83d"`, `"\ude00"`}, `\ud83d\😀`},
	} {
		var j joiner
		var got string
		for _, p := range tc.pieces {
			got += j.add(pieceOf(json.RawMessage(p)))
		}
		require.Equal(t, tc.want, got+j.flush(), name)
	}
	var j joiner
	require.Equal(t, "a", j.add(textPiece{raw: json.RawMessage(`"a\ud83d"`)}))
	require.Equal(t, "\ufffdb", j.add(textOf("b")))
}
