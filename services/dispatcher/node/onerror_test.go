package node_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/node"
)

// The config of a model node is checked when its workflow is registered.
func TestLint_ChecksTheOtherModels(t *testing.T) {
	t.Parallel()
	for config, path := range map[string]string{
		`{"onError":{"models":["openai/gpt-6","box/org/model:7b"]}}`: "",
		`{"onError":{}}`:                       "",
		`{"timeouts":{"callMs":0}}`:            "/timeouts/callMs",
		`{"onError":{"models":["gpt"]}}`:       "/onError/models/0",
		`{"onError":{"models":["a/b","a/b"]}}`: "/onError/models",
		`{"onError":{"models":"a/b"}}`:         "/onError/models",
		`{"onError":{"model":["a/b"]}}`:        "/onError/model",
		`{"onError":["a/b"]}`:                  "/onError",
		`{"onError":{"models":["A/b"]}}`:       "/onError/models/0",
		`{"onError":{"models":["a/1","a/2","a/3","a/4","a/5","a/6","a/7","a/8","a/9"]}}`: "/onError/models",
	} {
		for _, id := range []string{node.TypeCallPrompt, node.TypeStructuredOutput} {
			found := node.Builtin()[id].LintConfig(json.RawMessage(config))
			if path == "" {
				require.Empty(t, found, config)
				continue
			}
			require.Len(t, found, 1, config)
			require.Equal(t, path, found[0].Path, config)
			require.NotEmpty(t, found[0].Message)
		}
	}
}
