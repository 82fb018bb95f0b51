package discovery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/services/gateway/discovery"
)

// OpenWOP envelope contract §16.4: only capabilities that a node requires and a model has, at the root
// (C17); no family if no node requires one.
func TestDocument_AdvertisesRequiredModelCapabilities(t *testing.T) {
	t.Parallel()
	gating := func(caps ...string) func(*discovery.Config, *dispatcher) {
		return func(_ *discovery.Config, d *dispatcher) { d.can.GatesModels, d.can.ModelCapabilities = true, caps }
	}
	require.NotContains(t, newRig().root(t), "modelCapabilities")
	unasked := func(_ *discovery.Config, d *dispatcher) {
		d.can.NodeTypes = []*dispatcherv1.NodeType{{TypeId: "core.noop"}}
	}
	require.NotContains(t, newRig(unasked).root(t), "modelCapabilities")
	require.Equal(t, map[string]any{"supported": true, "advertised": []any{}, "substitutionSupported": true},
		newRig(gating()).root(t)["modelCapabilities"])
	root := newRig(gating("structured-output")).root(t)
	require.Equal(t, map[string]any{
		"supported":             true,
		"advertised":            []any{"structured-output"},
		"substitutionSupported": true,
	}, root["modelCapabilities"])
	require.NotContains(t, root["aiProviders"], "modelCapabilities")
	refusing := func(_ *discovery.Config, d *dispatcher) { d.can.RefusesSubstitution = true }
	require.Equal(t, false, newRig(gating(), refusing).root(t)["modelCapabilities"].(map[string]any)["substitutionSupported"])
}
