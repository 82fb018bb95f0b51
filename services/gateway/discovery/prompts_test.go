package discovery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/services/gateway/discovery"
)

// templated is a host with prompt templates.
func templated(_ *discovery.Config, d *dispatcher) {
	d.can.Prompts = &dispatcherv1.PromptSupport{
		TemplateKinds:    []string{"system", "user", "few-shot", "schema-hint"},
		VariableSources:  []string{"input", "variable", "context"},
		MaxTemplateBytes: 65536,
		Observability:    "hashed",
	}
}

// OpenWOP envelope contract §19.2, §21: the family is advertised if there are templates.
func TestDocument_AdvertisesPromptsWithTemplates(t *testing.T) {
	t.Parallel()
	require.NotContains(t, newRig().root(t), "prompts")
	r := newRig(templated)
	require.Equal(t, map[string]any{
		"supported": true, "endpointsSupported": false, "templateKinds": []any{"system", "user", "few-shot", "schema-hint"},
		"variableSources": []any{"input", "variable", "context"}, "maxTemplateBytes": 65536.0, "observability": "hashed",
	}, r.root(t)["prompts"])
}
