package model_test

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

func underPolicies(t *testing.T, rules string, keys model.Keys) *model.Loop {
	t.Helper()
	reg, err := provider.NewRegistry(mock.New(newScripts()))
	require.NoError(t, err)
	p, err := model.ParsePolicies([]byte(`{"tenants":{"acme":`+rules+`}}`), nil)
	require.NoError(t, err)
	return model.New(model.Config{Defaults: model.Defaults{Provider: "mock", Model: "m"}},
		model.Deps{Models: reg, Keys: keys, Policies: p, Logger: slog.New(slog.DiscardHandler)})
}

// OpenWOP host contract §5.8: the policy applies to the model of this dispatch and the tenant of
// the run.
func TestPolicy_IsAboutTheActiveModel(t *testing.T) {
	t.Parallel()
	const some = `{"mock":{"mode":"restricted","allowedModels":["m","n*"]},"openai":{"mode":"required"}}`
	for name, tc := range map[string]struct {
		tenant, ref, config, configurable string
		want                              string
	}{
		"the default":               {"acme", "", `{}`, `{}`, ""},
		"the node's":                {"acme", "", `{"provider":"mock","model":"o"}`, `{}`, `{"provider":"mock","reason":"model_not_allowed","model":"o","allowed":["m","n*"]}`},
		"the run's":                 {"acme", "", `{}`, `{"model":"o"}`, `{"provider":"mock","reason":"model_not_allowed","model":"o","allowed":["m","n*"]}`},
		"the node's over the run's": {"acme", "", `{"model":"nice"}`, `{"model":"o"}`, ""},
		"another tenant's":          {"other", "", `{"provider":"mock","model":"o"}`, `{}`, ""},
		"no key":                    {"acme", "", `{"provider":"openai","model":"o"}`, `{}`, `{"provider":"openai","reason":"byok_required"}`},
		"a key that is not there":   {"acme", "spare", `{"provider":"openai","model":"o"}`, `{}`, `{"provider":"openai","reason":"byok_required_but_unresolved"}`},
		"a key":                     {"acme", "main", `{"provider":"openai","model":"o"}`, `{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := underPolicies(t, some, keyring{"openai": "sk-1"})
			bad := l.Policy(&wire.RunRecord{Owner: wire.Owner{Tenant: tc.tenant}, CredentialRef: tc.ref},
				node.Input{Config: json.RawMessage(tc.config), Configurable: json.RawMessage(tc.configurable)})
			if tc.want == "" {
				require.Nil(t, bad)
				return
			}
			require.NotNil(t, bad)
			require.Equal(t, "provider_policy_denied", bad.Code)
			details, err := json.Marshal(bad.Details)
			require.NoError(t, err)
			require.JSONEq(t, tc.want, string(details))
			require.False(t, bad.Retryable)
		})
	}
}

// The gate refuses a substitution by a model that the policy denies.
func TestGate_LooksAtThePolicyOfAFallback(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]modelgate.Route{
		`{"mode":"optional"}`: modelgate.Substitute, `{"mode":"disabled"}`: modelgate.Refuse,
		`{"mode":"restricted","allowedModels":["other"]}`: modelgate.Refuse, `{"mode":"restricted","allowedModels":["spare"]}`: modelgate.Substitute,
	} {
		l := underPolicies(t, `{"mock":`+rule+`}`, nil)
		_, o := l.Gate("acme", "", modelgate.Needs{
			Required: []string{"reasoning"},
			Fallback: &modelgate.Model{Provider: "mock", Model: "spare"},
		},
			node.Input{Config: json.RawMessage(`{"provider":"unknown","model":"m"}`)})
		require.Equal(t, want, o.Route, rule)
		require.Equal(t, want == modelgate.Refuse, o.FallbackAttempted, rule)
	}
}

// A tenant is offered the models with a capability that it may call, without those that a policy or
// --hide-fallback hides.
func TestCapable_ListsModelsThatTheTenantMayAsk(t *testing.T) {
	t.Parallel()
	fallback := modelgate.Model{Provider: "mock", Model: "bigger"}
	m := model.Offer{Model: modelgate.Model{Provider: "mock", Model: "m"}}
	rule := modelgate.Model{Provider: "mock", Model: "*"} // a rule of the catalogue
	all := []model.Offer{m, {Model: fallback}, {Model: rule}}
	for name, tc := range map[string]struct {
		rules, tenant string
		id            modelgate.Capability
		want          []model.Offer
	}{
		"no rule":           {`{}`, "acme", "reasoning", all},
		"not had":           {`{}`, "acme", "vision-input", nil},
		"unknown":           {`{}`, "acme", "x-host-acme-dance", nil},
		"restricted":        {`{"mock":{"mode":"restricted","allowedModels":["m"]}}`, "acme", "reasoning", all[:1]},
		"disabled":          {`{"mock":{"mode":"disabled"}}`, "acme", "reasoning", nil},
		"required":          {`{"mock":{"mode":"required"}}`, "acme", "reasoning", []model.Offer{{Model: m.Model, OwnKey: true}, {Model: fallback, OwnKey: true}, {Model: rule, OwnKey: true}}},
		"another's rule":    {`{"mock":{"mode":"disabled"}}`, "other", "reasoning", all},
		"fallback withheld": {`{}`, "hushed", "reasoning", []model.Offer{m, {Model: rule}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg, err := provider.NewRegistry(mock.New(newScripts()))
			require.NoError(t, err)
			p, err := model.ParsePolicies([]byte(`{"tenants":{"acme":`+tc.rules+`}}`), nil)
			require.NoError(t, err)
			l := model.New(model.Config{
				Defaults:      model.Defaults{Provider: "mock", Model: "m"},
				HidesFallback: func(tenant string) bool { return tenant == "hushed" },
			}, model.Deps{Models: reg, Policies: p, Logger: slog.New(slog.DiscardHandler)})
			require.Equal(t, tc.want, l.Capable(tc.tenant, tc.id, []modelgate.Model{fallback, fallback}))
		})
	}
}
