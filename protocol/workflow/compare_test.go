package workflow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
)

func TestCompare_NamesElementsByTheirIDs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ before, after, want string }{
		"equal, in another order": {
			`{"id":"w","nodes":[{"id":"a","config":{"x":1,"y":2}},{"id":"b"}]}`,
			`{ "nodes": [ {"id":"b"}, {"config":{"y":2,"x":1},"id":"a"} ], "id": "w" }`, `[]`,
		},
		"a member": {
			`{"nodes":[{"id":"a","config":{"maxTokens":4}}]}`, `{"nodes":[{"id":"a","config":{"maxTokens":5}}]}`,
			`[{"op":"replace","path":"/nodes/a/config/maxTokens","old":4,"new":5}]`,
		},
		"a node and a variable": {
			`{"nodes":[{"id":"a"}],"variables":[{"name":"v"}]}`, `{"nodes":[{"id":"a"},{"id":"b"}],"variables":[]}`,
			`[{"op":"add","path":"/nodes/b","new":{"id":"b"}},{"op":"remove","path":"/variables/v","old":{"name":"v"}}]`,
		},
		"another type":         {`{"a":[1]}`, `{"a":{"0":2}}`, `[{"op":"replace","path":"/a/0","old":1,"new":2}]`},
		"null and nothing":     {`{"a":null}`, `{}`, `[{"op":"remove","path":"/a","old":null}]`},
		"an escaped name":      {`{"a/b~c":1}`, `{}`, `[{"op":"remove","path":"/a~1b~0c","old":1}]`},
		"two of one id":        {`{"n":[{"id":"a"},{"id":"a","x":1}]}`, `{"n":[{"id":"a"},{"id":"a","x":2}]}`, `[{"op":"replace","path":"/n/1/x","old":1,"new":2}]`},
		"the whole document":   {`1`, `2`, `[{"op":"replace","path":"","old":1,"new":2}]`},
		"a list of plain text": {`{"tags":["a","b"]}`, `{"tags":["a"]}`, `[{"op":"remove","path":"/tags/1","old":"b"}]`},
	} {
		got, err := json.Marshal(append([]workflow.Change{}, workflow.Compare(json.RawMessage(tc.before), json.RawMessage(tc.after))...))
		require.NoError(t, err)
		require.JSONEq(t, tc.want, string(got), name)
	}
}
