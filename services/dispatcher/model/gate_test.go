package model_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
)

// The active model is the node's, else the run's, else the host's. The model of a missing provider
// has no capabilities (OpenWOP envelope contract §16.3).
func TestGate_EvaluatesTheActiveModel(t *testing.T) {
	t.Parallel()
	reg, err := provider.NewRegistry(sample.New(0), mock.New(newScripts()), mute{})
	require.NoError(t, err)
	loop := model.New(model.Config{
		Timeout:  time.Second,
		Defaults: model.Defaults{Provider: "sample", Model: "sample-1"},
	}, model.Deps{Models: reg})
	for name, tc := range map[string]struct {
		config, configurable, requires string
		active                         modelgate.Model
		route                          modelgate.Route
	}{
		"the host's":                            {`{}`, ``, "structured-output", modelgate.Model{Provider: "sample", Model: "sample-1"}, modelgate.Dispatch},
		"the host's lacks it":                   {`{}`, ``, "reasoning", modelgate.Model{Provider: "sample", Model: "sample-1"}, modelgate.Substitute},
		"the run's":                             {`{}`, `{"ai.provider":"mock","ai.model":"x"}`, "reasoning", modelgate.Model{Provider: "mock", Model: "x"}, modelgate.Dispatch},
		"the run's, nested":                     {`{}`, `{"ai":{"provider":"mock","model":"x"}}`, "reasoning", modelgate.Model{Provider: "mock", Model: "x"}, modelgate.Dispatch},
		"the node's before the run's":           {`{"provider":"sample","model":"s"}`, `{"ai.provider":"mock","ai.model":"x"}`, "reasoning", modelgate.Model{Provider: "sample", Model: "s"}, modelgate.Substitute},
		"a provider that vouches for nothing":   {`{"provider":"mute","model":"m"}`, ``, "structured-output", modelgate.Model{Provider: "mute", Model: "m"}, modelgate.Substitute},
		"a provider that is not there":          {`{"provider":"ghost","model":"m"}`, ``, "structured-output", modelgate.Model{Provider: "ghost", Model: "m"}, modelgate.Substitute},
		"a config that is none: the host's own": {`7`, ``, "structured-output", modelgate.Model{Provider: "sample", Model: "sample-1"}, modelgate.Dispatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs := modelgate.Needs{
				Required: []string{tc.requires},
				Fallback: &modelgate.Model{Provider: "mock", Model: "m"},
			}
			active, o := loop.Gate("acme", "", needs, node.Input{
				Config:       json.RawMessage(tc.config),
				Configurable: json.RawMessage(tc.configurable),
			})
			require.Equal(t, tc.active, active)
			require.Equal(t, tc.route, o.Route)
			_, o = loop.Gate("acme", "", modelgate.Needs{
				Required: append(needs.Required, "x-host-acme-none"),
				Fallback: needs.Fallback,
			}, node.Input{})
			require.Equal(t, modelgate.Refuse, o.Route)
			require.True(t, o.FallbackAttempted)
		})
	}
}

// mute is a provider without information about its models.
type mute struct{ provider.Provider }

func (mute) ID() string { return "mute" }

// Each decision is logged with the digest of the catalogue, so that an operator can explain it.
func TestGate_LogsEachDecisionWithTheCatalogue(t *testing.T) {
	t.Parallel()
	reg, err := provider.NewRegistry(sample.New(0), mock.New(newScripts()))
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		requires, level, asked string
		hides                  bool
		route                  modelgate.Route
	}{
		"dispatched":                          {"structured-output", "INFO", "", false, modelgate.Dispatch},
		"another is asked":                    {"reasoning", "INFO", "mock/m", false, modelgate.Substitute},
		"another is asked, which is withheld": {"reasoning", "INFO", "", true, modelgate.Substitute},
		"refused":                             {"vision-input", "WARN", "", false, modelgate.Refuse},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			loop := model.New(model.Config{
				Defaults:      model.Defaults{Provider: "sample", Model: "sample-1"},
				HidesFallback: func(string) bool { return tc.hides },
			}, model.Deps{Models: reg, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
			_, o := loop.Gate("acme", "", modelgate.Needs{
				Required: []string{tc.requires},
				Fallback: &modelgate.Model{Provider: "mock", Model: "m"},
			}, node.Input{NodeID: "a"})
			var line struct {
				Level, Msg, Route, Catalogue, Asked, Tenant, Provider, Model string
				Node                                                         string `json:"node_id"`
			}
			require.NoError(t, json.Unmarshal(log.Bytes(), &line), "one line: %s", log.String())
			require.Equal(t, tc.level, line.Level)
			require.Equal(t, string(tc.route), line.Route)
			require.Equal(t, catalogue.Builtin().Digest(), line.Catalogue)
			require.Equal(t, line.Catalogue, o.Catalogue)
			require.Equal(t, tc.asked, line.Asked)
			require.Equal(t, []string{"acme", "a", "sample", "sample-1"}, []string{line.Tenant, line.Node, line.Provider, line.Model})
		})
	}
}

func TestGate_HidesTheFallbackOfWhoeverTheOperatorSays(t *testing.T) {
	t.Parallel()
	reg, err := provider.NewRegistry(sample.New(0), mock.New(newScripts()))
	require.NoError(t, err)
	loop := model.New(model.Config{HidesFallback: func(tenant string) bool { return tenant == "acme" }}, model.Deps{Models: reg})
	needs := modelgate.Needs{Required: []string{"reasoning"}, Fallback: &modelgate.Model{Provider: "mock", Model: "m"}}
	for tenant, hidden := range map[string]bool{"acme": true, "other": false} {
		_, o := loop.Gate(tenant, "", needs, node.Input{})
		require.Equal(t, modelgate.Substitute, o.Route)
		require.Equal(t, hidden, o.Hidden, tenant)
	}
}

// OpenWOP envelope contract §16.3 step 4: an operator can rule out other models than a node's own.
func TestGate_RefusesSubstitutionIfTheOperatorDoes(t *testing.T) {
	t.Parallel()
	reg, err := provider.NewRegistry(sample.New(0), mock.New(newScripts()))
	require.NoError(t, err)
	loop := model.New(model.Config{RefusesSubstitution: true, Defaults: model.Defaults{Provider: "sample", Model: "sample-1"}}, model.Deps{Models: reg})
	fallback := &modelgate.Model{Provider: "mock", Model: "m"}
	_, o := loop.Gate("acme", "", modelgate.Needs{Required: []string{"reasoning"}, Fallback: fallback}, node.Input{})
	require.Equal(t, modelgate.Refuse, o.Route)
	require.False(t, o.FallbackAttempted)
}

// The recorded fallback is called instead of the config's model. If its name is withheld, that of
// the node's type is.
func TestRun_AsksTheModelThatTheGatePutInItsPlace(t *testing.T) {
	t.Parallel()
	needs := &modelgate.Needs{
		Required: []string{"reasoning"},
		Fallback: &modelgate.Model{Provider: "mock", Model: "bigger"},
	}
	gone := &modelgate.Needs{Required: []string{"x-host-acme-none"}, Fallback: needs.Fallback}
	hidden := &modelgate.Model{Provider: modelgate.Withheld, Model: modelgate.Withheld}
	for name, tc := range map[string]struct {
		fallback *modelgate.Model
		needs    *modelgate.Needs
		code     string
	}{
		"named":                          {&modelgate.Model{Provider: "mock", Model: "bigger"}, needs, ""},
		"named, whatever the type needs": {&modelgate.Model{Provider: "mock", Model: "bigger"}, gone, ""},
		"withheld":                       {hidden, needs, ""},
		"withheld, whatever is now":      {hidden, gone, ""},
		"withheld, and its pack changed": {hidden, &modelgate.Needs{Required: []string{"reasoning"}}, "capability_not_provided"},
		"withheld, and its pack is gone": {hidden, nil, "capability_not_provided"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scripts := newScripts()
			require.NoError(t, scripts.Program(t.Context(), "acme", "n", []mock.Entry{{Content: "hello"}}))
			spied := &spy{Provider: mock.New(scripts)}
			reg, err := provider.NewRegistry(sample.New(0), spied)
			require.NoError(t, err)
			loop := model.New(model.Config{MaxAttempts: 3, Multiplier: 2, Timeout: time.Second}, model.Deps{
				Models:   reg,
				Schemas:  schemas{},
				Clock:    time.Now,
				Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
			})
			j := &journal{}
			res := loop.Run(t.Context(), model.Task{
				Tenant: "acme", RunID: "r", TypeID: node.TypeCallPrompt, Fallback: tc.fallback, Needs: tc.needs,
				Input: node.Input{
					NodeID: "n",
					Config: json.RawMessage(`{"provider":"sample","model":"sample-1","prompt":"hi"}`),
				},
			}, j)
			if tc.code != "" {
				require.NotNil(t, res.Err)
				require.Equal(t, tc.code, res.Err.Code)
				require.Empty(t, spied.reqs)
				return
			}
			require.Nil(t, res.Err)
			require.Equal(t, "bigger", spied.reqs[0].Model)
			shown := `"provider":"mock","model":"bigger"`
			if tc.fallback.Provider == modelgate.Withheld {
				shown = `"provider":"[REDACTED]","model":"[REDACTED]"`
			}
			require.Contains(t, rig{
				journal: j,
				result:  res,
			}.payload(t, wire.EventProviderUsage), shown)
		})
	}
}

// OpenWOP envelope contract §16.3, rows 3 and 6: a fallback without a key of the tenant or the host
// is no fallback.
func TestGate_WantsAKeyForTheFallback(t *testing.T) {
	t.Parallel()
	reg, err := provider.NewRegistry(sample.New(0), mock.New(newScripts()))
	require.NoError(t, err)
	needs := modelgate.Needs{Required: []string{"reasoning"}, Fallback: &modelgate.Model{Provider: "mock", Model: "m"}}
	for name, tc := range map[string]struct {
		alone []string // providers for which the host has no key
		keys  model.Keys
		ref   string
		route modelgate.Route
	}{
		"the host's":                             {nil, nil, "", modelgate.Substitute},
		"the host's, though tenants may":         {nil, keyring{}, "main", modelgate.Substitute},
		"the tenant's":                           {[]string{"mock"}, keyring{"mock": "sk-1"}, "main", modelgate.Substitute},
		"the tenant's, of a run that names none": {[]string{"mock"}, keyring{"mock": "sk-1"}, "", modelgate.Refuse},
		"the tenant's, of another name":          {[]string{"mock"}, keyring{"mock": "sk-1"}, "spare", modelgate.Refuse},
		"the tenant's, for another vendor":       {[]string{"mock"}, keyring{"openai": "sk-1"}, "main", modelgate.Refuse},
		"the tenant's, which is none":            {nil, keyring{"mock": ""}, "main", modelgate.Refuse},
		"no key":                                 {[]string{"mock"}, nil, "", modelgate.Refuse},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loop := model.New(model.Config{
				TenantKeyed: tc.alone,
				Defaults:    model.Defaults{Provider: "sample", Model: "sample-1"},
			}, model.Deps{Models: reg, Keys: tc.keys})
			active, o := loop.Gate("acme", tc.ref, needs, node.Input{})
			require.Equal(t, tc.route, o.Route)
			require.Equal(t, tc.route == modelgate.Refuse, o.FallbackAttempted)
			require.Equal(t, []string{"reasoning"}, o.Missing)
			require.Equal(t, modelgate.Model{Provider: "sample", Model: "sample-1"}, active)
		})
	}
}

// OpenWOP envelope contract §16.4, RFC 0031 §E: a capability is advertised only if the default model is
// known to have it, whatever TrustsUnknown says and whatever other models have.
func TestAdvertises_WhatTheDefaultModelHas(t *testing.T) {
	t.Parallel()
	reg, err := provider.NewRegistry(sample.New(0), mute{}, mock.New(newScripts()))
	require.NoError(t, err)
	advertises := func(provider, name, id string) bool {
		return model.New(model.Config{
			TrustsUnknown: true, Defaults: model.Defaults{Provider: provider, Model: name},
		}, model.Deps{Models: reg}).Advertises(id)
	}
	require.True(t, advertises("sample", "sample-1", "structured-output"))
	require.False(t, advertises("sample", "sample-1", "reasoning"), "another provider's models have it")
	require.False(t, advertises("sample", "sample-1", "nonexistent-capability-9b3f"))
	require.True(t, advertises("mock", "m", "reasoning"), "a rule for one provider")
	require.False(t, advertises("mock", "m", "vision-input"))
	require.False(t, advertises("mute", "m", "reasoning"), "unknown")
	require.False(t, advertises("anthropic", "claude-opus-5-5", "reasoning"), "a missing provider")
}

// The error of a failed call names the provider, unless the name is withheld. No other event does.
func TestRun_OfACallThatFailsNamesTheProviderUnlessItIsWithheld(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fallback *modelgate.Model
		want     map[string]any
	}{
		"the node's own": {nil, map[string]any{"provider": "mock"}},
		"named":          {&modelgate.Model{Provider: "mock", Model: "m"}, map[string]any{"provider": "mock"}},
		"withheld":       {&modelgate.Model{Provider: modelgate.Withheld, Model: modelgate.Withheld}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := mock.Canned("error", json.RawMessage(`{"code":"provider_unavailable","message":"down","retryable":true}`))
			require.NoError(t, err)
			reg, err := provider.NewRegistry(p)
			require.NoError(t, err)
			loop := model.New(model.Config{
				MaxAttempts: 1,
				Multiplier:  2,
				Timeout:     time.Second,
				Defaults:    model.Defaults{Provider: "mock", Model: "m", MaxTokens: 1},
			}, model.Deps{Models: reg, Schemas: schemas{}, Clock: time.Now})
			res := loop.Run(t.Context(), model.Task{
				TypeID:   node.TypeStructuredOutput,
				Fallback: tc.fallback,
				Needs:    &modelgate.Needs{Fallback: &modelgate.Model{Provider: "mock", Model: "m"}},
				Input:    node.Input{NodeID: "n", Config: json.RawMessage(valueConfig)},
			}, &journal{})
			require.Equal(t, "provider_unavailable", res.Err.Code)
			require.Equal(t, tc.want, res.Err.Details)
		})
	}
}
