package models

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// OpenWOP envelope contract §16.3, row 3, with real vendor rules: a node that looks at a picture, a
// model that cannot see, and another vendor's model called instead. Its own rules of strict schemas
// apply, at the first attempt and at the correction.
func TestSubstitute_CallsTheOtherVendorByItsRules(t *testing.T) {
	c := client(t, apiKey)
	for i, blind := range vendors {
		for _, fallback := range []*vendor{vendors[(i+1)%3], vendors[(i+2)%3]} {
			t.Run(blind.id+" to "+fallback.id, func(t *testing.T) {
				name := "look-" + blind.id + "-" + fallback.id
				fallback.desk.put(name, withUsage(answer{text: wrong}, answer{text: good})...)
				id := start(t, c, asks("look-"+fallback.id, name, blind, blind.blind, ""))
				t.Parallel()
				events := finish(t, c, id)
				require.Equal(t, []string{"run.started", "model.capability.substituted", started, usage, retry, usage, completed, "run.completed"}, typesBut(events, ""), "%s", dump(events))
				require.JSONEq(t, `{"nodeId":"look","originalProvider":"`+blind.id+`","originalModel":"`+blind.blind+`","fallbackProvider":"`+fallback.id+
					`","fallbackModel":"`+fallback.seeing+`","missingCapabilities":["vision-input"]}`, string(events[1].Payload))
				for n, e := range of(events, usage) {
					requireHas(t, `{"provider":"`+fallback.id+`","model":"`+fallback.seeing+`"}`, e.Payload)
					var u struct{ InputTokens int }
					require.NoError(t, json.Unmarshal(e.Payload, &u))
					require.Equal(t, 100+n, u.InputTokens)
				}
				require.Empty(t, blind.desk.of(name), "the blind model must not be called")
				requireLooked(t, fallback, name)
			})
		}
	}
}

// requireLooked checks the two calls of a node that looks at a picture against the vendor's rules.
func requireLooked(t *testing.T, v *vendor, name string) {
	t.Helper()
	calls := v.desk.of(name)
	require.Len(t, calls, 2)
	var first parsedRequest
	for i, made := range calls {
		a, err := v.read(made.body)
		require.NoError(t, err)
		require.NotEmpty(t, a.schema, "call %d has no strict schema", i)
		require.Contains(t, a.text, "iVBORw0KGgo=", "call %d shows the picture", i)
		require.Equal(t, v.key, v.keyOf(made.header))
		require.Equal(t, budget, a.budget)
		if i == 0 {
			first = a
			continue
		}
		require.JSONEq(t, string(first.schema), string(a.schema))
		require.Contains(t, a.text, "was not accepted")
	}
}

// The redaction pair of OpenWOP envelope contract §16.3: a workspace that must not learn which
// model was substituted.
func TestSubstitute_HidesBothNamesOrNone(t *testing.T) {
	c := client(t, quietKey)
	blind, fallback := vendors[0], vendors[1]
	fallback.desk.put("look-hidden", answer{text: good, in: 1, out: 1})
	id := start(t, c, asks("look-"+fallback.id, "look-hidden", blind, blind.blind, ""))
	events := finish(t, c, id)
	require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
	require.JSONEq(t, `{"nodeId":"look","originalProvider":"`+blind.id+`","originalModel":"`+blind.blind+
		`","fallbackProvider":"[REDACTED]","fallbackModel":"[REDACTED]","missingCapabilities":["vision-input"]}`, string(of(events, "model.capability.substituted")[0].Payload))
	require.Len(t, fallback.desk.of("look-hidden"), 1)
	requireHas(t, `{"provider":"[REDACTED]","model":"[REDACTED]","inputTokens":1}`, of(events, usage)[0].Payload)
	for _, e := range events {
		require.NotContains(t, string(e.Raw), fallback.seeing)
	}
	for _, path := range []string{"", ":view", "/debug-bundle", "/events/poll"} {
		a, err := c.Do(within(t, 30*time.Second), http.MethodGet, "/v1/runs/"+id+path, "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s %s", path, a.Body)
		require.NotContains(t, string(a.Body), fallback.seeing, path)
	}
}

// OpenWOP envelope contract §16.3, row 7: the fallback cannot see either; no model is called.
func TestSubstitute_NeverASecondTime(t *testing.T) {
	c := client(t, apiKey)
	v := vendors[0]
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", workflow("look-missing", node("look", "vendor.acme.look.missing", `{"prompt":"`+question+`"}`, "{}")))
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	events := finish(t, c, start(t, c, asks("look-missing", "look-missing", v, v.blind, "")))
	require.Equal(t, []string{"run.started", "model.capability.insufficient", failed, "run.failed"}, typesBut(events, ""), "%s", dump(events))
	requireHas(t, `{"provider":"openai","model":"`+v.blind+`","fallbackAttempted":true}`, events[1].Payload)
	requireHas(t, `{"error":{"code":"capability_not_provided"}}`, events[2].Payload)
	for _, v := range vendors {
		require.Empty(t, v.desk.of("look-missing"))
	}
}
