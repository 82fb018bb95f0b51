package host

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTenantLimits_AreReadAtStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits.json")
	log := slog.New(slog.DiscardHandler)
	o := Execution{TenantLimits: file}
	_, err := o.openTenantLimits(log)
	require.ErrorContains(t, err, "--tenant-limits "+file)
	require.NoError(t, os.WriteFile(file, []byte(`{"tenants":{"acme":{"weight":0.5}}}`), 0o600))
	_, err = o.openTenantLimits(log)
	require.ErrorContains(t, err, "/tenants/acme/weight")
	require.NoError(t, os.WriteFile(file, []byte(`{"tenants":{"acme":{"weight":2}}}`), 0o600))
	limits, err := o.openTenantLimits(log)
	require.NoError(t, err)
	require.Equal(t, 2, limits.Current().For("acme").Weight)
	limits, err = (&Execution{}).openTenantLimits(log)
	require.NoError(t, err)
	require.Nil(t, limits)
}

func TestToolLimits_AreReadAtStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits.json")
	log := slog.New(slog.DiscardHandler)
	o := Execution{ToolLimits: file}
	o.Tools.MCPServers, o.Tools.A2AAgents = []string{"bank=http://127.0.0.1:1"}, []string{"planner=http://127.0.0.1:2"}
	require.NoError(t, os.WriteFile(file, []byte(`{"mcpServers":{"planner":{}}}`), 0o600))
	_, err := o.openToolLimits(log)
	require.ErrorContains(t, err, "--tool-limits "+file)
	require.ErrorContains(t, err, "there are bank")
	require.NoError(t, os.WriteFile(file, []byte(`{"mcpServers":{"bank":{"concurrency":{"limit":1}}},"a2aAgents":{"planner":{}}}`), 0o600))
	limits, err := o.openToolLimits(log)
	require.NoError(t, err)
	require.NotNil(t, limits.Current())
	limits, err = (&Execution{}).openToolLimits(log)
	require.NoError(t, err)
	require.Nil(t, limits.Current())
}
