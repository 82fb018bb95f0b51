package tools

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/redactor"
)

// A value that is not secret must not be redacted, because events of all tenants may contain it.
func TestToolOptions_HideOnlyVariablesThatAreSecrets(t *testing.T) { //nolint:paralleltest // sets the environment
	t.Setenv("WAYBILL_MCP_POSTGRES_ENV_PGUSER", "postgres")
	t.Setenv("WAYBILL_MCP_POSTGRES_ENV_NODE_ENV", "production")
	t.Setenv("WAYBILL_MCP_POSTGRES_ENV_PGPASSWORD", "hunter2-hunter2")
	t.Setenv("WAYBILL_MCP_POSTGRES_SECRET_DATABASE_URL", "postgres://u:hunter2@h")
	o := Options{MCPServers: []string{"other=http://h", "postgres=stdio:server"}}
	require.NoError(t, o.Validate())
	got := map[string]string{}
	for _, s := range o.Secrets() {
		got[s.ID] = s.Value.Reveal()
	}
	require.Equal(t, map[string]string{"mcp-2-env-1": "postgres://u:hunter2@h", "mcp-2-env-3": "hunter2-hunter2"}, got)
	cfg := redactor.DefaultConfig()
	cfg.HostSecrets = o.Secrets()
	_, err := redactor.New(cfg)
	require.NoError(t, err)

	servers, err := o.mcpConfigs(os.Environ())
	require.NoError(t, err)
	for _, want := range []string{
		"PGUSER=postgres", "NODE_ENV=production", "PGPASSWORD=hunter2-hunter2",
		"DATABASE_URL=postgres://u:hunter2@h",
	} {
		require.Contains(t, servers[1].Env, want)
	}
}

func TestHasSecretName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"TOKEN", "github_token", "API_KEY", "ApiKey", "CLIENT_SECRET", "PGPASSWORD", "DB_PASSWD",
		"AWS_CREDENTIALS", "PAT", "GITHUB_PAT", "SENTRY_DSN",
	} {
		require.True(t, hasSecretName(name), name)
	}
	for _, name := range []string{"PGUSER", "NODE_ENV", "COMPAT", "PATH", "TOKEN_COUNT", "KEYBOARD", "PASSWORD_FILE"} {
		require.False(t, hasSecretName(name), name)
	}
}

// Each error has the name of the variable and not its value.
func TestToolOptions_NameTheVariableThatIsWrong(t *testing.T) { //nolint:paralleltest // sets the environment
	t.Setenv("WAYBILL_MCP_MY_FAVOURITE_TOKEN", "my-favourite")
	t.Setenv("WAYBILL_MCP_LOCAL_ENV_KEY", "mcp-2-env")
	t.Setenv("WAYBILL_MCP_LOCAL_ENV_URL", "one-value")
	t.Setenv("WAYBILL_MCP_LOCAL_SECRET_URL", "other-value")
	t.Setenv("WAYBILL_MCP_LOCAL_SECRET_PIN", "1234")
	t.Setenv("WAYBILL_A2A_MY_FAVOURITE_TOKEN", "favourite")
	o := Options{
		MCPServers: []string{"my-favourite=http://h", "local=stdio:server"},
		A2AAgents:  []string{"my-favourite=http://h"},
	}
	err := o.Validate()
	for _, want := range []string{
		"WAYBILL_MCP_MY_FAVOURITE_TOKEN: its value is a part of the id",
		"WAYBILL_A2A_MY_FAVOURITE_TOKEN: its value is a part of the id",
		"WAYBILL_MCP_LOCAL_ENV_KEY: its value is a part of the id",
		"WAYBILL_MCP_LOCAL_ENV_URL and WAYBILL_MCP_LOCAL_SECRET_URL are both set; keep one of the two",
		"WAYBILL_MCP_LOCAL_SECRET_PIN: a secret of less than 8 bytes cannot be hidden",
	} {
		require.ErrorContains(t, err, want)
	}
	for _, value := range []string{"my-favourite", "favourite", "mcp-2-env", "one-value", "other-value", "1234"} {
		require.NotContains(t, err.Error(), value)
	}
}

// A variable for one server would be passed to another.
func TestToolOptions_RejectIDsWithOverlappingVariables(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		servers []string
		bad     bool
	}{
		"a token":                 {[]string{"a=stdio:server", "a-env=http://h"}, true},
		"in the other order":      {[]string{"a-env=http://h", "a=stdio:server"}, true},
		"a variable":              {[]string{"a=stdio:server", "a-env-b=stdio:server"}, true},
		"a secret":                {[]string{"a=stdio:server", "a-secret=http://h"}, true},
		"no program":              {[]string{"a=http://h", "a-env=http://h"}, false},
		"a longer word":           {[]string{"a=stdio:server", "a-environment=http://h"}, false},
		"another beginning":       {[]string{"a=stdio:server", "b-env=http://h"}, false},
		"an agent has other ones": {[]string{"a=stdio:server"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := (&Options{MCPServers: tc.servers, A2AAgents: []string{"a-env=http://h"}}).Validate()
			if !tc.bad {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, `"a" and "a-`)
			require.ErrorContains(t, err, "give one of them another id")
		})
	}
}
