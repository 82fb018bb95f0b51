package seam_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/seam"
)

// The members of the request, one by one (OpenWOP envelope contract §23.1).
func TestExercise_ContextComesFromTheRequest(t *testing.T) {
	t.Parallel()
	clar := envelope("clarification.request", good)
	tests := map[string]struct {
		body           body
		status, reason string
	}{
		"plain": {body{"envelope": clar}, "accepted", ""},
		"document as it is, nothing synthesised": {
			body{"envelope": map[string]any{"type": "error", "payload": 1}},
			"invalid", "invalid_envelope_shape",
		},
		"not an object": {body{"envelope": "text"}, "invalid", "invalid_envelope_shape"},
		"null":          {body{"envelope": nil}, "invalid", "invalid_envelope_shape"},
		"unknown to the host": {
			body{"envelope": envelope(vendor, `{}`)},
			"gated", "unknown_envelope_kind",
		},
		"made known": {
			body{"envelope": envelope(vendor, `{}`), "hostSupportedEnvelopes": []string{vendor}},
			"accepted", "",
		},
		"universal though not listed": {
			body{"envelope": clar, "hostSupportedEnvelopes": []string{}},
			"accepted", "",
		},
		"schema.request, no catalogue (C6)": {
			body{"envelope": envelope("schema.request", `{"envelopeType":"vendor.x.y"}`)},
			"accepted", "",
		},
		"schema.request, outside the catalogue": {
			body{
				"envelope":               envelope("schema.request", `{"envelopeType":"vendor.x.y"}`),
				"hostSupportedEnvelopes": []string{vendor},
			},
			"gated", "unknown_envelope_kind",
		},
		"contract refuses": {
			body{"envelope": envelope(vendor, `{}`), "hostSupportedEnvelopes": []string{vendor}, "nodeAllowedKinds": []string{}},
			"gated", "envelope_contract_violation",
		},
		"contract never refuses universals": {body{"envelope": clar, "nodeAllowedKinds": []string{}}, "accepted", ""},
		"host gate first": {
			body{"envelope": envelope(vendor, `{}`), "nodeAllowedKinds": []string{vendor}},
			"gated", "unknown_envelope_kind",
		},
		"floor above, warn": {
			body{"envelope": clar, "schemaVersionFloor": map[string]int{"clarification.request": 2}},
			"accepted", "",
		},
		"floor above, strict": {
			body{
				"envelope":           clar,
				"schemaVersionFloor": map[string]int{"clarification.request": 2},
				"envelopeStrictness": "strict",
			},
			"invalid", "unknown_schema_version",
		},
		"floor below": {
			body{"envelope": clar, "schemaVersionFloor": map[string]int{"clarification.request": 0}},
			"invalid", "unknown_schema_version",
		},
		"floor of others: version not listed": {
			body{
				"envelope":           envelope("clarification.request", good, "schemaVersion", 9),
				"schemaVersionFloor": map[string]int{"x": 1},
			},
			"accepted", "",
		},
		"floor of others: payload still judged": {
			body{"envelope": envelope("clarification.request", `{}`), "schemaVersionFloor": map[string]int{"x": 1}},
			"invalid", "envelope_invalid",
		},
		"payload": {body{"envelope": envelope("error", `{"code":"x"}`)}, "invalid", "envelope_invalid"},
		"counter below": {
			body{"envelope": clar, "counters": body{"clarificationRounds": counter(2, 3)}},
			"accepted", "",
		},
		"counter at the cap": {
			body{"envelope": clar, "counters": body{"clarificationRounds": counter(3, 3)}},
			"breached", "cap_breached",
		},
		"envelopesPerTurn names limit and number": {
			body{"envelope": clar, "counters": body{"envelopesPerTurn": counter(32, 32)}},
			"breached", "cap_breached: envelopesPerTurn limit of 32",
		},
		"approval, trusted": {body{"envelope": clar, "approvalGateContext": true}, "accepted", ""},
		"approval, untrusted run": {
			body{"envelope": clar, "approvalGateContext": true, "runTrustBoundary": "untrusted"},
			"invalid", "untrusted_content_blocks_approval",
		},
		"bound to an approval": {
			body{"envelope": clar, "boundInterruptKind": "approval", "runTrustBoundary": "untrusted"},
			"invalid", "untrusted_content_blocks_approval",
		},
		"bound to something else": {
			body{"envelope": clar, "boundInterruptKind": "clarification", "runTrustBoundary": "untrusted"},
			"accepted", "",
		},
		"members it does not know": {body{"envelope": clar, "extra": 1}, "accepted", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newFixture(t).exercise(tc.body)
			require.Equal(t, tc.status, o.Status, o.Reason)
			require.True(t, strings.HasPrefix(o.Reason, tc.reason), o.Reason)
		})
	}
}

func TestExercise_ReportsRedactionOnlyWhenCanariesAreGiven(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	payload := `{"code":"x","message":"` + canary + ` and ` + canary + `","details":{"` + canary + `":1}}`
	canaries := []seam.Canary{{Value: canary, SecretID: "k"}}
	text := f.raw(body{"envelope": envelope("error", payload), "byokCanaries": canaries, "projectTo": body{"runId": "r"}})
	require.NotContains(t, text, canary)
	var o outcome
	require.NoError(t, json.Unmarshal([]byte(text), &o))
	require.Equal(t, 3, *o.RedactionCount)
	require.JSONEq(t, `{"code":"x","message":"[REDACTED:k] and [REDACTED:k]","details":{"[REDACTED:k]":1}}`, string(o.RedactedPayload))
	for _, e := range f.memory.events(tenant, "r") {
		require.NotContains(t, string(e.AppendJSON(nil)), canary)
	}
	require.NotContains(t, fmt.Sprint(f.memory.spans(tenant, "r")), canary)
	require.Empty(t, f.vault.open, "canaries are forgotten")

	o = f.exercise(body{
		"envelope":     envelope("error", `{"code":"x","message":"y"}`, "correlationId", "c2"),
		"byokCanaries": []seam.Canary{},
	})
	require.Equal(t, 0, *o.RedactionCount)
	require.NotNil(t, o.RedactedPayload)
	o = f.exercise(body{"envelope": envelope("error", `{"code":"x","message":"y"}`, "correlationId", "c3")})
	require.Nil(t, o.RedactionCount)
	require.Nil(t, o.RedactedPayload)
}

func TestExercise_RefusalsShowNoCanary(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]any{
		"property": envelope("error", `{"code":"x","message":"y","`+canary+`":1}`),
		"type":     envelope("vendor."+canary+".x", `{}`),
		"id":       envelope("error", `{"code":"x","message":"y"}`, "correlationId", canary),
		"shape":    envelope("error", `{}`, "correlationId", canary, "extra", canary),
	} {
		f := newFixture(t)
		text := f.raw(body{
			"envelope":     e,
			"byokCanaries": []seam.Canary{{Value: canary, SecretID: "k"}},
			"projectTo":    body{"runId": "r"},
		})
		require.NotContains(t, text, canary, name)
		for _, ev := range f.memory.events(tenant, "r") {
			require.NotContains(t, string(ev.AppendJSON(nil)), canary, name)
		}
		require.NotContains(t, fmt.Sprint(f.memory.spans(tenant, "r")), canary, name)
	}
}

// OpenWOP envelope contract §11, registry.
func TestExercise_ShowsNothingOnceTheCanariesAreLost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.vault.lost = true
	_, err := f.x.Exercise(t.Context(), tenant, []byte(`{"envelope":{},"byokCanaries":[{"value":"`+canary+`","secretId":"k"}]}`))
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
}

func TestExercise_FailsClosed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.vault.down = fault.New(fault.ServiceUnavailable, "down")
	for _, b := range []string{
		`{"envelope":{},"projectTo":{"runId":"r"}}`,
		`{"envelope":{},"projectTo":{"runId":"r"},"byokCanaries":[{"value":"x","secretId":"y"}]}`,
	} {
		_, err := f.x.Exercise(t.Context(), tenant, []byte(b))
		require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	}
	require.Empty(t, f.memory.events(tenant, "r"))
}

func TestExercise_CapabilityOverlayComesFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	off, on := false, true
	f.memory.set(seam.CapabilityEnvelopes, &off)
	o := f.exercise(body{"envelope": 7})
	require.Equal(t, "invalid", o.Status)
	require.Equal(t, "capability_required", o.Reason)
	f.memory.set(seam.CapabilityEnvelopes, &on)
	require.Equal(t, "accepted", f.exercise(body{"envelope": envelope("clarification.request", good)}).Status)
	f.memory.set(seam.CapabilityEnvelopes, nil)
	require.Equal(t, "accepted", f.exercise(body{"envelope": envelope("clarification.request", good)}).Status)
}

func TestDedup_OwnStoreHasAcceptedOutcomes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.raw(body{"envelope": envelope("error", `{"code":"x","message":"y"}`), "projectTo": body{"runId": "r"}})
	again := f.raw(body{
		"envelope":  envelope("error", `{"code":"x","message":"other"}`, "envelopeId", "env-2"),
		"projectTo": body{"runId": "r"},
	})
	require.Equal(t, first, again)
	require.Len(t, f.types("r"), 1, "a cached outcome projects nothing")
	require.Len(t, f.memory.spans(tenant, "r"), 1)

	o := f.exercise(body{"envelope": envelope("clarification.request", good)})
	require.Equal(t, "invalid", o.Status)
	require.True(t, strings.HasPrefix(o.Reason, "envelope_correlation_conflict"), o.Reason)

	refusedFirst := envelope("error", `{}`, "correlationId", "c2")
	require.Equal(t, "invalid", f.exercise(body{"envelope": refusedFirst}).Status)
	require.Equal(t, "accepted", f.exercise(body{"envelope": envelope("clarification.request", good, "correlationId", "c2")}).Status)

	require.NoError(t, f.memory.Reset(t.Context(), tenant))
	require.Equal(t, "accepted", f.exercise(body{"envelope": envelope("clarification.request", good)}).Status)
}

func TestDedup_PriorsWinAndAreReturnedVerbatim(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exercise(body{"envelope": envelope("error", `{"code":"x","message":"y"}`)})
	for _, prior := range []string{
		`{"status":"accepted","recordedEventIds":["e9"],"envelopeId":"old","normalizedMeta":{"contentTrust":"untrusted"}}`,
		`{"status":"invalid","reason":"envelope_invalid: earlier","details":[]}`,
		`{"status":"breached","reason":"x","capKind":"schema"}`,
	} {
		got := f.raw(body{
			"envelope": envelope("error", `{"code":"x","message":"y"}`),
			"priorCorrelations": []any{
				body{"correlationId": "other", "outcome": body{}, "envelopeType": "error"},
				body{"correlationId": "corr-1", "outcome": json.RawMessage(prior), "envelopeType": "error"},
			},
			"counters":  body{"envelopesPerTurn": counter(5, 5)},
			"projectTo": body{"runId": "r"},
		})
		require.Equal(t, prior, got)
	}
	require.Empty(t, f.types("r"))
	o := f.exercise(body{
		"envelope": envelope("error", `{"code":"x","message":"y"}`),
		"priorCorrelations": []any{body{
			"correlationId": "corr-1",
			"outcome":       body{"status": "accepted"},
			"envelopeType":  "clarification.request",
		}},
	})
	require.True(t, strings.HasPrefix(o.Reason, "envelope_correlation_conflict"), o.Reason)

	text, err := json.Marshal(body{
		"envelope":          envelope("error", `{"code":"x","message":"y"}`),
		"priorCorrelations": []any{body{"correlationId": "corr-1", "envelopeType": "error"}},
	})
	require.NoError(t, err)
	_, err = f.x.Exercise(t.Context(), tenant, text)
	require.Equal(t, fault.InvalidArgument, fault.CodeOf(err))
}

func TestDedup_RunStoreHasOutcomesOfAnyStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := func(run string, more body) body {
		b := body{"envelope": envelope("clarification.request", good), "persistedDedup": body{"runId": run}}
		for k, v := range more {
			b[k] = v
		}
		return b
	}
	breached := f.raw(in("r1", body{"counters": body{"envelopesPerTurn": counter(1, 1)}}))
	require.Contains(t, breached, "breached")
	require.Equal(t, breached, f.raw(in("r1", nil)), "the first outcome stays, in this run")
	other := f.exercise(in("r2", nil))
	require.Equal(t, "accepted", other.Status)
	conflict := in("r2", nil)
	conflict["envelope"] = envelope("error", `{"code":"x","message":"y"}`)
	require.Equal(t, "invalid", f.exercise(conflict).Status)
	require.Equal(t, "accepted", f.exercise(in("r2", nil)).Status, "a conflict does not take the place of the outcome")
}

func TestProject_WritesTheEventsOfTheOutcome(t *testing.T) {
	t.Parallel()
	supported := []string{vendor}
	to := func(mode string) body { return body{"runId": "r", "nodeId": "ask", "refusalMode": mode} }
	tests := map[string]struct {
		body  body
		types []string
		last  string
	}{
		"clarification": {
			body{"envelope": envelope("clarification.request", good)},
			[]string{"clarification.requested", "interrupt.requested"},
			"",
		},
		"vendor": {
			body{"envelope": envelope(vendor, `{"a":1}`), "hostSupportedEnvelopes": supported},
			[]string{"artifact.created"},
			`{"artifactId":"env-1","artifactType":"vendor.acme.note","nodeId":"ask","version":"1","payload":{"a":1}}`,
		},
		"gated by contract": {
			body{"envelope": envelope(vendor, `{}`), "hostSupportedEnvelopes": supported, "nodeAllowedKinds": []string{}},
			[]string{"node.failed"},
			`{"nodeId":"ask","error":{"code":"envelope_contract_violation","message":"envelope_contract_violation: the node's contract does not accept this kind","details":{"refusedType":"vendor.acme.note","acceptedTypes":["clarification.request","schema.request","schema.response","error"]}}}`,
		},
		"gated by the host (C7)": {
			body{"envelope": envelope(vendor, `{}`), "hostSupportedEnvelopes": []string{}},
			[]string{"node.failed"},
			`{"nodeId":"ask","error":{"code":"envelope_contract_violation","message":"unknown_envelope_kind: this host does not advertise the kind","details":{"refusedType":"vendor.acme.note","acceptedTypes":["clarification.request","schema.request","schema.response","error"]}}}`,
		},
		"gated, discarded": {
			body{"envelope": envelope(vendor, `{}`), "hostSupportedEnvelopes": []string{}, "projectTo": to("discard-and-warn")},
			[]string{"log.appended"},
			`{"level":"warn","message":"an envelope was discarded: unknown_envelope_kind: this host does not advertise the kind","nodeId":"ask","fields":{"kind":"vendor.acme.note","refusalMode":"discard-and-warn","allowedKinds":["clarification.request","schema.request","schema.response","error"]}}`,
		},
		"invalid": {
			body{"envelope": envelope("error", `{"code":"x"}`)},
			[]string{"node.failed"},
			`{"nodeId":"ask","error":{"code":"envelope_invalid","message":"envelope_invalid: the payload does not satisfy the schema of its kind in 1 place(s)"}}`,
		},
		"breached": {
			body{"envelope": envelope("clarification.request", good), "counters": body{"clarificationRounds": counter(4, 3)}},
			[]string{"cap.breached", "node.failed"},
			`{"nodeId":"ask","error":{"code":"cap_breached","message":"cap_breached: clarificationRounds limit of 3 is reached","details":{"capKind":"clarification"}}}`,
		},
		"approval stays closed": {
			body{
				"envelope":            envelope("clarification.request", good),
				"approvalGateContext": true,
				"runTrustBoundary":    "untrusted",
			},
			nil, "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if tc.body["projectTo"] == nil {
				tc.body["projectTo"] = to("")
			}
			o := f.exercise(tc.body)
			require.Equal(t, tc.types, f.types("r"))
			events := f.memory.events(tenant, "r")
			for i, e := range events {
				require.Equal(t, i, e.Sequence)
				require.Equal(t, "corr-1", e.CausationID)
				require.Equal(t, "ask", e.NodeID)
				require.Equal(t, wire.Trusted, e.ContentTrust)
			}
			if o.Status == "accepted" {
				require.Len(t, o.RecordedEventIDs, len(events))
			}
			if tc.last != "" {
				require.JSONEq(t, tc.last, string(events[len(events)-1].Payload))
			}
			spans := f.memory.spans(tenant, "r")
			require.Len(t, spans, 1)
			require.Equal(t, "env-1", spans[0].EnvelopeID)
			require.Equal(t, o.Status, spans[0].Attributes["envelope_outcome"])
		})
	}
}

func TestProject_BreachNamesLimitAndObserved(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exercise(body{
		"envelope":  envelope("error", `{"code":"x","message":"y"}`, "nodeId", "from-envelope"),
		"counters":  body{"envelopesPerTurn": counter(4, 4)},
		"projectTo": body{"runId": "r"},
	})
	require.JSONEq(t, `{"kind":"envelopes","limit":4,"observed":5,"nodeId":"from-envelope"}`, string(f.memory.events(tenant, "r")[0].Payload))
}

func TestProject_AlwaysNamesANode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exercise(body{"envelope": []int{}, "projectTo": body{"runId": "r"}})
	var failed struct{ NodeID string }
	require.NoError(t, json.Unmarshal(f.memory.events(tenant, "r")[0].Payload, &failed))
	require.NotEmpty(t, failed.NodeID)
}
