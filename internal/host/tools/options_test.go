package tools

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/services/dispatcher/node"
)

func TestToolOptions_ReportEveryProblem(t *testing.T) { //nolint:paralleltest // sets the environment
	t.Setenv("WAYBILL_MCP_FILES_TOKEN", "hunter2 hunter2")
	t.Setenv("WAYBILL_MCP_LOCAL_TOKEN", "hunter2-hunter2")
	o := Options{
		MCPServers: []string{"files=http://h", "local=stdio:server", "Big=http://h"},
		A2AAgents:  []string{"desk", "desk=http://u:hunter2@h"},
	}
	err := o.Validate()
	for _, want := range []string{
		"WAYBILL_MCP_FILES_TOKEN: has a space",
		"WAYBILL_MCP_LOCAL_TOKEN: a command takes no bearer token; give it a variable with WAYBILL_MCP_LOCAL_ENV_NAME",
		`--mcp-server: id "Big"`, "--a2a-agent: agent desk: want http(s)", "give the token apart",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "hunter2")
}

func TestToolOptions_KnowTheirSecrets(t *testing.T) { //nolint:paralleltest // sets the environment
	t.Setenv("WAYBILL_MCP_MY_FILES_TOKEN", "token-of-files")
	t.Setenv("WAYBILL_MCP_LOCAL_ENV_API_KEY", "key-of-local")
	t.Setenv("WAYBILL_A2A_DESK_TOKEN", "token-of-desk")
	o := Options{MCPServers: []string{"my-files=http://h", "local=stdio:server"}, A2AAgents: []string{"desk=http://h"}}
	got := map[string]string{}
	for _, s := range o.Secrets() {
		require.NoError(t, s.Validate())
		got[s.ID] = s.Value.Reveal()
	}
	require.Equal(t, map[string]string{
		"mcp-my-files": "token-of-files",
		"mcp-2-env-1":  "key-of-local",
		"a2a-desk":     "token-of-desk",
	}, got)
}

func TestToolOptions_CreateTheConfiguredTypes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		options Options
		types   []string
	}{
		{Options{}, nil},
		{Options{MCPServers: []string{"a=http://h"}}, []string{node.TypeMCPCallTool}},
		{Options{A2AAgents: []string{"a=http://h"}}, []string{node.TypeA2ASendMessage}},
	} {
		var closers []func()
		r, err := tc.options.Runners(func(f func()) { closers = append(closers, f) })
		require.NoError(t, err)
		var ids []string
		for _, typ := range r.Types() {
			ids = append(ids, typ.ID)
		}
		require.Equal(t, tc.types, ids)
		require.Len(t, closers, len(tc.types))
		for _, f := range closers {
			f()
		}
	}
	_, err := (&Options{MCPServers: []string{"a=http://h", "a=http://i"}}).Runners(func(func()) {})
	require.ErrorIs(t, err, exit.ErrUsage)
}

func TestCommandEnv_HasOnlyTheToolsVariables(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"PATH=/bin", "KEY=1=2"}, commandEnv("my-files", []string{
		"PATH=/bin", "OPENAI_API_KEY=x", "WAYBILL_MCP_MY_FILES_ENV_KEY=1=2",
		"WAYBILL_MCP_OTHER_ENV_KEY=3", "WAYBILL_API_KEY=k", "PATHS=no",
	}))
}

func TestToolOptions_MarkIdempotentTools(t *testing.T) {
	t.Parallel()
	o := Options{MCPServers: []string{"a=http://h", "b=http://h"}, Idempotent: []string{"b/look/up", "b/list"}}
	servers, err := o.mcpConfigs(os.Environ())
	require.NoError(t, err)
	require.Empty(t, servers[0].Idempotent)
	require.Equal(t, []string{"look/up", "list"}, servers[1].Idempotent)
	o.Idempotent = []string{"b", "c/list"}
	err = o.Validate()
	require.ErrorContains(t, err, `--idempotent-tool "b": want SERVER/TOOL`)
	require.ErrorContains(t, err, `--idempotent-tool "c/list": no --mcp-server has the id "c"`)
}
