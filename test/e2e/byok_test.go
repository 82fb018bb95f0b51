package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// OpenWOP envelope contract §21: which tenants may bring keys, and for which of the configured
// providers. Both are absent without a key directory.
func TestDiscovery_ListsProvidersWithTenantKeys(t *testing.T) {
	t.Parallel()
	harness.InOneProcess(t, "the launcher gives --provider to the redactor as well, which needs the key that here only tenants have")
	needsHost(t)
	type document struct {
		Providers struct{ Supported, BYOK []string } `json:"aiProviders"`
		Secrets   map[string]any
	}
	keys := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.MkdirAll(keys, 0o700))
	schemas := harness.LoadSchemas(t)
	discover := func(flags ...string) (d document) {
		a := get(t, harness.Start(t, flags...).Client("dev-key"), "/.well-known/openwop")
		require.NoError(t, a.JSON(&d))
		if len(d.Providers.BYOK) == 0 { // the published schema lacks selfHosted, the id of private servers
			require.NoError(t, schemas.Validate("capabilities.schema.json", a.Body))
		}
		return d
	}
	d := discover("--credentials", keys, "--provider", "openai", "--provider", "box=http://127.0.0.1:1/v1")
	require.Equal(t, []string{"box", "openai"}, d.Providers.BYOK, "the stand-in wants no key")
	require.Subset(t, d.Providers.Supported, d.Providers.BYOK)
	require.Contains(t, d.Providers.Supported, "sample")
	require.Equal(t, map[string]any{"supported": true, "scopes": []any{"tenant"}, "resolution": "host-managed"}, d.Secrets)

	d = discover()
	require.Empty(t, d.Providers.BYOK)
	require.Nil(t, d.Secrets)
}
