package lint_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/lint"
	"waybill.dev/waybill/services/dispatcher/node"
)

func TestLacking_FindsWhatARunLeavesOut(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ typ, config, more, defaults, want string }{
		"nothing":            {"core.noop", `{}`, "", "", ""},
		"an agent":           {"core.noop", `{}`, `,"agent":{"agentId":"core.x"}`, "", "/nodes/0/agent"},
		"a tool for a model": {"core.ai.callPrompt", `{"prompt":"p","mcp":{"tool":"echo"}}`, "", "", "/nodes/0/config/mcp"},
		"no tool":            {"core.ai.callPrompt", `{"prompt":"p","mcp":null}`, "", "", ""},
		"memory":             {"core.identity", `{"memoryAction":"write-then-read"}`, "", "", "/nodes/0/config/memoryAction"},
		"defaults":           {"core.noop", `{}`, "", `,"defaults":{"promptRefs":{"system":"prompt:x"}}`, "/defaults/promptRefs"},
		"an unknown type":    {"vendor.acme.x", `{"mcp":{}}`, `,"agent":{"agentId":"core.x"}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			def, problems := workflow.Parse(fmt.Appendf(nil, `{"id":"wf","name":"n","version":"1","nodes":[{"id":"n","typeId":%q,"name":"n","position":{"x":0,"y":0},"config":%s,"inputs":{}%s}],
				"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}%s}`, tc.typ, tc.config, tc.more, tc.defaults))
			require.Empty(t, problems)
			var paths string
			for _, p := range lint.Lacking(def, node.Builtin()) {
				require.Equal(t, lint.RuleNoEffect, p.Rule)
				paths += p.Path
			}
			require.Equal(t, tc.want, paths)
		})
	}
}
