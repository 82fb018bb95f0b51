package mcp

import (
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// A result that is accepted has content blocks with the values that the server sent, and texts.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"content":[{"type":"text","text":"a"}]}`, `{"content":[{"type":"x","y":1e400}],"structuredContent":[9007199254740993]}`,
		`{"content":null,"isError":true}`, `{"content":[{"type":"text","text":"\ud800"}],"content":[]}`, `{"_meta":{"waybill.dev/result":"{}"}}`,
		`{"content":[{"type":"text"},{"type":7}]}`, `[]`, `{"structuredContent":{"a":1,"a":2}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, err := tool.Normalize(b)
		if err != nil {
			return
		}
		var res sdk.CallToolResult
		if json.Unmarshal(keepResult(doc, strictjson.Object(doc)), &res) != nil {
			return
		}
		got, err := newAnswer(&res)
		if err != nil {
			return
		}
		var blocks []map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(got.Blocks, &blocks))
		require.True(t, json.Valid(got.rendered()))
		require.LessOrEqual(t, len(got.Texts), len(blocks))
		if sent := strictjson.Object(doc)["content"]; sent != nil && string(sent) != "null" {
			require.Equal(t, string(sent), string(got.Blocks))
		}
	})
}
