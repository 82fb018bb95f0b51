package conformance

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// OpenWOP envelope contract §16.3, §23.4.
func TestModelGate_EveryRowOverHTTP(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	const able, plain = `"activeProvider":"anthropic","activeModel":"m"`, `"activeProvider":"local","activeModel":"m"`
	const fallback = `"fallbackModel":{"provider":"openai","model":"f"}`
	for name, tc := range map[string]struct{ body, outcome, event string }{
		"§16.3 row 2: the five base identifiers":  {`{"module":{"requiredModelCapabilities":["structured-output","discriminator-enum","long-context","reasoning","function-calling"]},` + able + `}`, `{"route":"dispatch"}`, ""},
		"§16.3 row 2: nothing required":           {`{"module":{},` + plain + `}`, `{"route":"dispatch"}`, ""},
		"§16.3 row 2: an empty list":              {`{"module":{"requiredModelCapabilities":[]},` + plain + `}`, `{"route":"dispatch"}`, ""},
		"§23.4 google is known":                   {`{"module":{"requiredModelCapabilities":["reasoning"]},"activeProvider":"google","activeModel":"m"}`, `{"route":"dispatch"}`, ""},
		"§23.4 gemini is known":                   {`{"module":{"requiredModelCapabilities":["reasoning"]},"activeProvider":"gemini","activeModel":"m"}`, `{"route":"dispatch"}`, ""},
		"§23.4 openai is known":                   {`{"module":{"requiredModelCapabilities":["reasoning"]},"activeProvider":"openai","activeModel":"m"}`, `{"route":"dispatch"}`, ""},
		"§23.4 a known provider has no others":    {`{"module":{"requiredModelCapabilities":["vision-input"]},` + able + `}`, `{"route":"refuse","nodeId":"test-node","provider":"anthropic","model":"m","missingCapabilities":["vision-input"],"fallbackAttempted":false}`, "model.capability.insufficient"},
		"§16.3 row 3":                             {`{"module":{"requiredModelCapabilities":["reasoning"],` + fallback + `},` + plain + `,"substitutionSupported":true,"supportedProviders":["openai"],"nodeId":"n"}`, `{"route":"substitute","nodeId":"n","originalProvider":"local","originalModel":"m","fallbackProvider":"openai","fallbackModel":"f","missingCapabilities":["reasoning"]}`, "model.capability.substituted"},
		"§16.3 row 4":                             {`{"module":{"requiredModelCapabilities":["reasoning"]},` + plain + `,"substitutionSupported":true}`, `{"route":"refuse","missingCapabilities":["reasoning"],"fallbackAttempted":false}`, "model.capability.insufficient"},
		"§16.3 row 5":                             {`{"module":{"requiredModelCapabilities":["reasoning"],` + fallback + `},` + plain + `,"substitutionSupported":false,"supportedProviders":["openai"]}`, `{"route":"refuse","missingCapabilities":["reasoning"],"fallbackAttempted":false}`, "model.capability.insufficient"},
		"§16.3 row 5: absent is false":            {`{"module":{"requiredModelCapabilities":["reasoning"],` + fallback + `},` + plain + `,"supportedProviders":["openai"]}`, `{"route":"refuse","fallbackAttempted":false}`, "model.capability.insufficient"},
		"§16.3 row 6 (C13)":                       {`{"module":{"requiredModelCapabilities":["reasoning"],` + fallback + `},` + plain + `,"substitutionSupported":true,"supportedProviders":["anthropic"]}`, `{"route":"refuse","missingCapabilities":["reasoning"],"fallbackAttempted":true}`, "model.capability.insufficient"},
		"§16.3 row 7: of the active model (C14)":  {`{"module":{"requiredModelCapabilities":["reasoning","vision-input"],` + fallback + `},` + plain + `,"substitutionSupported":true,"supportedProviders":["openai"]}`, `{"route":"refuse","provider":"local","model":"m","missingCapabilities":["reasoning","vision-input"],"fallbackAttempted":true}`, "model.capability.insufficient"},
		"§26.19 the fallback is the active model": {`{"module":{"requiredModelCapabilities":["reasoning"],"fallbackModel":{"provider":"local","model":"m"}},` + plain + `,"substitutionSupported":true,"supportedProviders":["local"]}`, `{"route":"refuse","fallbackAttempted":true}`, "model.capability.insufficient"},
		"§16.2 an unknown identifier":             {`{"module":{"requiredModelCapabilities":["nonexistent-capability-9b3f"]},` + able + `}`, `{"route":"refuse","missingCapabilities":["nonexistent-capability-9b3f"]}`, "model.capability.insufficient"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got struct {
				Outcome json.RawMessage
				Event   *struct {
					Type    string
					Payload json.RawMessage
				}
			}
			a := do(t, c, http.MethodPost, seams+"test/evaluate-model-capability-gate", tc.body)
			require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
			require.NoError(t, a.JSON(&got))
			requireWithin(t, tc.outcome, got.Outcome)
			if tc.event == "" {
				require.Nil(t, got.Event)
				require.Contains(t, string(a.Body), `"event":null`)
				return
			}
			require.Equal(t, tc.event, got.Event.Type)
			if published.schemas != nil {
				require.NoError(t, published.schemas.Payload(tc.event, got.Event.Payload))
			}
			requireWithin(t, string(got.Event.Payload), got.Outcome)
		})
	}
	for name, body := range map[string]string{
		"§23.4 no active pair":     `{"module":{}}`,
		"§23.4 no active model":    `{"module":{},"activeProvider":"openai"}`,
		"§23.4 no active provider": `{"module":{},"activeModel":"m"}`,
		"§16.1 an identifier":      `{"module":{"requiredModelCapabilities":["Vision"]},` + able + `}`,
		"§16.1 twice the same":     `{"module":{"requiredModelCapabilities":["a","a"]},` + able + `}`,
		"§16.1 a fallback":         `{"module":{"fallbackModel":{"provider":"openai"}},` + able + `}`,
		"§23.4 no JSON":            `{`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, http.StatusBadRequest, do(t, c, http.MethodPost, seams+"test/evaluate-model-capability-gate", body).Status)
		})
	}
}

// OpenWOP envelope contract §16.3, §16.4, §23.6: a real run passes the same gate.
func TestModelGate_OfARealRun(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, events := run(t, c, `{"workflowId":"needy","configurable":{"ai.provider":"mock","ai.model":"mock-mini"}}`)
	require.Equal(t, []string{"run.started", "model.capability.insufficient", "node.failed", "run.failed"}, names(events))
	require.JSONEq(t, `{"nodeId":"insufficient-node","provider":"mock","model":"mock-mini","missingCapabilities":["nonexistent-capability-9b3f"],"fallbackAttempted":false}`, string(events[1].Payload))
	requireWithin(t, `{"error":{"code":"capability_not_provided","details":{"provider":"mock","model":"mock-mini","missingCapabilities":["nonexistent-capability-9b3f"]}}}`, events[2].Payload)
	require.Equal(t, "capability_not_provided", read(t, c, id).Error.Code)

	var d struct{ ModelCapabilities obj }
	require.NoError(t, do(t, c, http.MethodGet, wellKnown, "").JSON(&d))
	require.Equal(t, obj{"supported": true, "advertised": []any{}, "substitutionSupported": true}, d.ModelCapabilities, "no requirement is met")

	var catalog struct{ Nodes []obj }
	askSeam(t, c, http.MethodGet, "node-catalog", "", &catalog)
	for _, n := range catalog.Nodes {
		if n["typeId"] == "conformance.modelCapability.insufficient" {
			require.Equal(t, []any{"nonexistent-capability-9b3f"}, n["requiredModelCapabilities"])
			continue
		}
		require.NotContains(t, n, "requiredModelCapabilities")
		require.NotContains(t, n, "fallbackModel")
	}
}

// OpenWOP envelope contract §23.4; host contract §6.3, §6.5, §8.2.
func TestApprovalGate_NeedsAnAuthorisedPrincipal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		key, scenario, reason string
		released              bool
		event, payload        string
	}{
		"§23.4 a grant":                    {testKey, "authorized-grant", "", true, "approval.granted", `{"principal":"ann"}`},
		"§23.4 a grant, spelled otherwise": {testKey, "Authorised_Grant", "", true, "approval.granted", `{"principal":"ann"}`},
		"§23.4 an unauthorised grant":      {testKey, "unauthorized-grant", "", false, "", ""},
		"§23.4 a rejection":                {testKey, "reject", "too dear", false, "approval.rejected", `{"principal":"ann","reason":"too dear"}`},
		"§23.4 an unauthorised rejection":  {testKey, "unauthorized-reject", "", false, "", ""},
		"§23.4 an override":                {testKey, "override", "it burns", true, "approval.overridden", `{"principal":"ann","reason":"it burns"}`},
		"§23.4 an unauthorised override":   {testKey, "unauthorized-override", "it burns", false, "", ""},
		"§8.2 a key that may not respond":  {readerKey, "authorized-grant", "", false, "", ""},
		"§8.2 overriding with such a key":  {readerKey, "override", "it burns", false, "", ""},
		"§11 a secret in the reason":       {testKey, "override", "because " + liveKey, true, "approval.overridden", `{"principal":"ann"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := json.Marshal(obj{"scenario": tc.scenario, "principal": "ann", "reason": tc.reason})
			require.NoError(t, err)
			a := do(t, client(t, tc.key), http.MethodPost, seams+"governance/approval-gate", string(b))
			require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
			var got struct {
				Released *bool
				Event    *struct {
					Type    string
					Payload json.RawMessage
				}
			}
			require.NoError(t, a.JSON(&got))
			require.Equal(t, tc.released, *got.Released)
			require.NotContains(t, string(a.Body), liveKey)
			if tc.event == "" {
				require.Nil(t, got.Event)
				return
			}
			require.Equal(t, tc.event, got.Event.Type)
			requireWithin(t, tc.payload, got.Event.Payload)
			if published.schemas != nil {
				require.NoError(t, published.schemas.Payload(tc.event, got.Event.Payload))
			}
		})
	}
	for name, body := range map[string]string{
		"§6.3 an override without a reason":    `{"scenario":"override","principal":"ann"}`,
		"§6.3 an override with a blank reason": `{"scenario":"override","principal":"ann","reason":"  "}`,
		"§23.4 no scenario":                    `{"principal":"ann"}`,
		"§23.4 an unknown scenario":            `{"scenario":"shrug","principal":"ann"}`,
		"§23.4 no principal":                   `{"scenario":"grant"}`,
		"§12 a self-declared role":             `{"scenario":"grant","principal":{"id":"ann","roles":["approver"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := do(t, client(t, testKey), http.MethodPost, seams+"governance/approval-gate", body)
			require.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
			require.Contains(t, string(a.Body), "invalid_argument")
		})
	}
}
