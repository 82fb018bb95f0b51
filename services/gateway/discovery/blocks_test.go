package discovery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/gateway/discovery"
)

func full(_ *discovery.Config, d *dispatcher) {
	d.can.Byok = []string{"local"}
	d.can.GatesModels, d.can.ModelCapabilities = true, []string{"reasoning"}
	d.can.RuntimeCapabilities, d.can.MaskingMode = []string{"net.outbound"}, "mask"
}

// OpenWOP envelope contract §21: the blocks of the model's work, at the root, each with
// its members and no others.
func TestDocument_EveryBlock(t *testing.T) {
	t.Parallel()
	root := newRig(seamed, full).root(t)
	for name, want := range map[string]any{
		"envelopeStrictness": "warn",
		"envelopeContracts":  map[string]any{"advertised": true},
		"modelCapabilities": map[string]any{
			"supported":             true,
			"advertised":            []any{"reasoning"},
			"substitutionSupported": true,
		},
		"aiProviders": map[string]any{
			"policies":   policies,
			"supported":  []any{"local", "sample"},
			"selfHosted": []any{"local"},
			"byok":       []any{"local"},
		},
		"compliance":    map[string]any{"defaultMode": "mask"},
		"providerUsage": map[string]any{"supported": true, "costEstimates": true, "currency": "USD"},
		"secrets":       map[string]any{"supported": true, "scopes": []any{"tenant"}, "resolution": "host-managed"},
		"observability": map[string]any{"testSeams": map[string]any{"otelScrape": true, "debugBundleExport": true}},
		"limits": map[string]any{
			"clarificationRounds": 3.0, "schemaRounds": 2.0, "envelopesPerTurn": 5.0,
			"maxNodeExecutions": 100.0, "maxRunDurationMs": 86400000.0, "maxRequestBodyBytes": 1048576.0,
		},
		"envelopes": map[string]any{
			"reasoning": map[string]any{"supported": true, "promptDirective": "advisory"}, "tierOneSubsetCompliance": "warn",
			"reliability": map[string]any{
				"supported":        true,
				"maxRetryAttempts": 3.0,
				"completion":       map[string]any{"distinguishesTruncation": true, "truncationBudgetMultiplier": 2.0},
				"events": []any{
					"envelope.retry.attempted", "envelope.retry.exhausted", "envelope.refusal",
					"envelope.truncated", "envelope.nlToFormat.engaged", "envelope.recovery.applied",
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, want, root[name])
		})
	}
	require.Equal(t, []any{"net.outbound"}, root["runtimeCapabilities"])
	require.NotContains(t, root, "prompts", "not built, hence not advertised")
	require.NotContains(t, root, "a2uiSurface")
	require.NotContains(t, root, "capabilities", "no mirror")
}

// A family that is off is not there, and neither are its members elsewhere.
func TestDocument_HasNoBlockOfADisabledFamily(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*discovery.Config, *dispatcher)
		absent []string
	}{
		"no seams":           {full, []string{"observability", "testing", "fixtures"}},
		"nothing required":   {seamed, []string{"modelCapabilities"}},
		"nothing provided":   {seamed, []string{"runtimeCapabilities"}},
		"nothing masked":     {seamed, []string{"compliance"}},
		"no keys of tenants": {seamed, []string{"secrets"}},
		"no providers": {
			func(_ *discovery.Config, d *dispatcher) { d.can.Providers = nil },
			[]string{"aiProviders", "secrets"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := newRig(tc.change).root(t)
			for _, family := range tc.absent {
				require.NotContains(t, root, family)
			}
			if p, ok := root["aiProviders"].(map[string]any); ok && name == "no keys of tenants" {
				require.NotContains(t, p, "byok")
			}
		})
	}
}

// The document has the effective N (OpenWOP envelope contract §24, C28).
func TestDocument_HasTheSmallerOfAttemptsAndSchemaRounds(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int32]float64{1: 1, 2: 2, 3: 3, 16: 3} {
		r := newRig(func(_ *discovery.Config, d *dispatcher) { d.can.MaxRetryAttempts = attempts })
		family, _ := r.root(t)["envelopes"].(map[string]any)
		reliability, _ := family["reliability"].(map[string]any)
		require.InDelta(t, want, reliability["maxRetryAttempts"], 0)
	}
}
