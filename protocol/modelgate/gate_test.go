package modelgate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
)

var (
	able  = modelgate.Model{Provider: "anthropic", Model: "able"}
	plain = modelgate.Model{Provider: "local", Model: "plain"}
	weak  = modelgate.Model{Provider: "openai", Model: "weak"}
	far   = modelgate.Model{Provider: "elsewhere", Model: "able"}
)

// host has one model with all capabilities, one of another provider with reasoning, and one with
// none.
func host() modelgate.Host {
	return modelgate.Host{
		Substitutes: true,
		Routes:      func(m modelgate.Model) bool { return m.Provider != far.Provider },
		Has: func(m modelgate.Model, id modelgate.Capability) (has, known bool) {
			return m == able || m == far || m == weak && id == modelgate.Reasoning, true
		},
	}
}

// unknown makes the capabilities of a model unknown.
func unknown(of modelgate.Model) func(*modelgate.Host) {
	return func(h *modelgate.Host) {
		has := h.Has
		h.Has = func(m modelgate.Model, id modelgate.Capability) (bool, bool) {
			if m == of {
				return false, false
			}
			return has(m, id)
		}
	}
}

// OpenWOP envelope contract §16.3, row by row.
func TestEvaluate_EveryRow(t *testing.T) {
	t.Parallel()
	both := []string{"reasoning", "vision-input"}
	for name, tc := range map[string]struct {
		needs  modelgate.Needs
		active modelgate.Model
		change func(*modelgate.Host)
		want   modelgate.Outcome
	}{
		"1 not advertised: the declaration is opaque": {modelgate.Needs{Required: both}, plain, func(h *modelgate.Host) { h.Off = true }, modelgate.Outcome{Route: modelgate.Dispatch, Asked: plain}},
		"2 all met":                              {modelgate.Needs{Required: both, Fallback: &weak}, able, nil, modelgate.Outcome{Route: modelgate.Dispatch, Asked: able}},
		"2 nothing required":                     {modelgate.Needs{}, plain, nil, modelgate.Outcome{Route: modelgate.Dispatch, Asked: plain}},
		"3 the fallback has it all":              {modelgate.Needs{Required: both, Fallback: &able}, weak, nil, modelgate.Outcome{Route: modelgate.Substitute, Asked: able, Missing: []string{"vision-input"}}},
		"4 no fallback":                          {modelgate.Needs{Required: both}, plain, nil, modelgate.Outcome{Route: modelgate.Refuse, Missing: both}},
		"5 the host cannot substitute":           {modelgate.Needs{Required: both, Fallback: &able}, plain, func(h *modelgate.Host) { h.Substitutes = false }, modelgate.Outcome{Route: modelgate.Refuse, Missing: both}},
		"6 the fallback cannot be reached (C13)": {modelgate.Needs{Required: both, Fallback: &far}, plain, nil, modelgate.Outcome{Route: modelgate.Refuse, Missing: both, FallbackAttempted: true}},
		"7 the fallback lacks something: of the active model (C14)": {
			modelgate.Needs{Required: both, Fallback: &weak},
			plain, nil,
			modelgate.Outcome{Route: modelgate.Refuse, Missing: both, FallbackAttempted: true, FallbackMissing: []string{"vision-input"}},
		},
		"7 the fallback is the active model (§26.19)": {modelgate.Needs{Required: both, Fallback: &plain}, plain, nil, modelgate.Outcome{Route: modelgate.Refuse, Missing: both, FallbackAttempted: true, FallbackMissing: both}},
		"an unknown id is unmet (§16.2)":              {modelgate.Needs{Required: []string{"nonexistent-capability-9b3f"}}, weak, nil, modelgate.Outcome{Route: modelgate.Refuse, Missing: []string{"nonexistent-capability-9b3f"}}},
		"the model counts, not its provider alone (§26.20)": {
			modelgate.Needs{Required: both}, modelgate.Model{Provider: able.Provider, Model: "other"}, nil, modelgate.Outcome{Route: modelgate.Refuse, Missing: both},
		},
		"an unknown model has no capabilities": {modelgate.Needs{Required: both}, able, unknown(able), modelgate.Outcome{Route: modelgate.Refuse, Missing: both, Unknown: true}},
		"an unknown fallback has no capabilities": {
			modelgate.Needs{Required: both, Fallback: &able},
			plain, unknown(able),
			modelgate.Outcome{Route: modelgate.Refuse, Missing: both, FallbackAttempted: true, FallbackMissing: both},
		},
		"an unknown model may be trusted": {
			modelgate.Needs{Required: both},
			plain, func(h *modelgate.Host) { unknown(plain)(h); h.TrustsUnknown = true },
			modelgate.Outcome{Route: modelgate.Dispatch, Asked: plain, Unknown: true},
		},
		"trust applies to unknown models only": {
			modelgate.Needs{Required: both}, plain, func(h *modelgate.Host) { h.TrustsUnknown = true }, modelgate.Outcome{Route: modelgate.Refuse, Missing: both},
		},
		"a repeated requirement is missing once": {modelgate.Needs{Required: []string{"x", "x"}}, plain, nil, modelgate.Outcome{Route: modelgate.Refuse, Missing: []string{"x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host()
			if tc.change != nil {
				tc.change(&h)
			}
			require.Equal(t, tc.want, modelgate.Evaluate(tc.needs, tc.active, h))
		})
	}
}

// At most one fallback is evaluated, whatever it lacks.
func TestEvaluate_TriesOneFallback(t *testing.T) {
	t.Parallel()
	var asked []modelgate.Model
	h := host()
	has := h.Has
	h.Has = func(m modelgate.Model, id modelgate.Capability) (bool, bool) {
		if !slices.Contains(asked, m) {
			asked = append(asked, m)
		}
		return has(m, id)
	}
	modelgate.Evaluate(modelgate.Needs{Required: []string{"vision-input"}, Fallback: &weak}, plain, h)
	require.Equal(t, []modelgate.Model{plain, weak}, asked)
}

func TestEvent_RecordsTheDecision(t *testing.T) {
	t.Parallel()
	needs := modelgate.Needs{Required: []string{"vision-input"}, Fallback: &able}
	d, ok := modelgate.Evaluate(needs, plain, host()).Event("n", plain)
	require.True(t, ok)
	require.Equal(t, wire.EventModelSubstituted, d.Type)
	require.JSONEq(t, `{"nodeId":"n","originalProvider":"local","originalModel":"plain","fallbackProvider":"anthropic","fallbackModel":"able","missingCapabilities":["vision-input"]}`, string(d.Payload))
	require.Empty(t, d.Trust)

	h := host()
	h.HidesFallback = true
	d, ok = modelgate.Evaluate(needs, plain, h).Event("n", plain)
	require.True(t, ok)
	require.JSONEq(t, `{"nodeId":"n","originalProvider":"local","originalModel":"plain","fallbackProvider":"[REDACTED]","fallbackModel":"[REDACTED]","missingCapabilities":["vision-input"]}`, string(d.Payload))

	needs.Fallback = &weak
	d, ok = modelgate.Evaluate(needs, plain, host()).Event("n", plain)
	require.True(t, ok)
	require.Equal(t, wire.EventModelInsufficient, d.Type)
	require.JSONEq(t, `{"nodeId":"n","provider":"local","model":"plain","missingCapabilities":["vision-input"],"fallbackAttempted":true}`, string(d.Payload))

	_, ok = modelgate.Evaluate(needs, able, host()).Event("n", able)
	require.False(t, ok)
}

// OpenWOP envelope contract §16.1.
func TestCheck_FindsProblems(t *testing.T) {
	t.Parallel()
	many := make([]string, 33)
	for i := range many {
		many[i] = "a" + strings.Repeat("b", i)
	}
	for name, tc := range map[string]struct {
		needs modelgate.Needs
		paths []string
	}{
		"nothing":           {modelgate.Needs{}, nil},
		"known ones":        {modelgate.Needs{Required: modelgate.Base(), Fallback: &able}, nil},
		"a host's own":      {modelgate.Needs{Required: []string{"x-host-acme-fast"}}, nil},
		"33":                {modelgate.Needs{Required: many}, []string{"/requiredModelCapabilities"}},
		"capitals":          {modelgate.Needs{Required: []string{"ok", "Vision"}}, []string{"/requiredModelCapabilities/1"}},
		"empty":             {modelgate.Needs{Required: []string{""}}, []string{"/requiredModelCapabilities/0"}},
		"twice":             {modelgate.Needs{Required: []string{"a", "a"}}, []string{"/requiredModelCapabilities/1"}},
		"an empty fallback": {modelgate.Needs{Fallback: &modelgate.Model{}}, []string{"/fallbackModel/provider", "/fallbackModel/model"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range tc.needs.Check() {
				got = append(got, p.Path)
			}
			require.Equal(t, tc.paths, got)
		})
	}
}
