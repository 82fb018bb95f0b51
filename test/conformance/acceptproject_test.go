package conformance

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAcceptProject_TheEventsOfEachOutcome(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for name, tc := range map[string]struct {
		kind    string
		payload any
		more    obj
		mode    string
		types   []string
		last    string // required members of the last event's payload
	}{
		"§10 clarification.request": {kind: "clarification.request", payload: oneQuestion, types: []string{"clarification.requested", "interrupt.requested"}},
		"§10 schema.request (C9)":   {kind: "schema.request", payload: obj{"envelopeType": knownTriage}, types: []string{"log.appended"}, last: `{"level":"debug"}`},
		"§10 schema.response":       {kind: "schema.response", payload: obj{"envelopeType": knownTriage, "ack": true}, types: []string{"log.appended"}, last: `{"level":"debug"}`},
		"§10 error":                 {types: []string{"log.appended"}, last: `{"level":"error"}`},
		"§10 a vendor kind (C10)": {
			kind: unknownKind, payload: obj{"a": 1}, more: obj{"hostSupportedEnvelopes": []string{unknownKind}},
			types: []string{"artifact.created"}, last: `{"artifactType":"vendor.acme.ghost","nodeId":"ask","payload":{"a":1}}`,
		},
		"§23.1 gated at step 3 (C7)": {
			kind: unknownKind, payload: obj{}, more: obj{"hostSupportedEnvelopes": []string{knownTriage}}, types: []string{"node.failed"},
			last: `{"nodeId":"ask","error":{"code":"envelope_contract_violation","details":{"refusedType":"vendor.acme.ghost"}}}`,
		},
		"§23.1 gated at step 5": {
			kind: knownTriage, payload: json.RawMessage(triage), more: obj{"nodeAllowedKinds": []string{}}, types: []string{"node.failed"},
			last: `{"nodeId":"ask","error":{"code":"envelope_contract_violation","details":{"refusedType":"vendor.waybill.ticket.triage","acceptedTypes":["clarification.request","schema.request","schema.response","error"]}}}`,
		},
		"§23.1 gated at step 3, discard-and-warn": {
			kind: unknownKind, payload: obj{}, mode: "discard-and-warn", types: []string{"log.appended"},
			last: `{"level":"warn","fields":{"kind":"vendor.acme.ghost","refusalMode":"discard-and-warn"}}`,
		},
		"§23.1 gated at step 5, discard-and-warn": {
			kind: knownTriage, payload: json.RawMessage(triage), more: obj{"nodeAllowedKinds": []string{}}, mode: "discard-and-warn", types: []string{"log.appended"},
			last: `{"level":"warn","fields":{"kind":"vendor.waybill.ticket.triage"}}`,
		},
		"§23.1 gated, fail-node said out loud": {kind: unknownKind, payload: obj{}, mode: "fail-node", types: []string{"node.failed"}},
		"§23.1 invalid by payload":             {payload: obj{}, types: []string{"node.failed"}, last: `{"error":{"code":"envelope_invalid"}}`},
		"§23.1 invalid by shape":               {payload: obj{}, more: obj{"extra": true}, types: []string{"node.failed"}, last: `{"error":{"code":"invalid_envelope_shape"}}`},
		"§23.1 invalid by version":             {more: obj{"schemaVersionFloor": obj{"error": 0}}, types: []string{"node.failed"}, last: `{"error":{"code":"unknown_schema_version"}}`},
		"§23.1 breached: limit and observed": {
			more: counterOf("envelopesPerTurn", 7, 7), types: []string{"cap.breached", "node.failed"}, last: `{"error":{"code":"cap_breached","details":{"capKind":"envelopes"}}}`,
		},
		"§6 blocked approval: no event":       {more: obj{"approvalGateContext": true, "runTrustBoundary": "untrusted"}},
		"§7 discard-and-warn fails on breach": {more: counterOf("envelopesPerTurn", 7, 7), mode: "discard-and-warn", types: []string{"cap.breached", "node.failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, payload := tc.kind, tc.payload
			if kind == "" {
				kind = "error"
			}
			if payload == nil {
				payload = plainError
			}
			env := seamEnvelope(t, kind, payload)
			if tc.more["extra"] != nil {
				env["extra"] = true
			}
			body := acceptCase{more: tc.more}.with(env)
			run := "r-" + idOf(t)
			to := obj{"runId": run, "nodeId": "ask"}
			if tc.mode != "" {
				to["refusalMode"] = tc.mode
			}
			body["projectTo"] = to
			o := acceptBy(t, c, body)
			events := seamEvents(t, c, run, "")
			require.Equal(t, tc.types, seamTypes(events), o.raw)
			ids := []string{}
			for i, e := range events {
				require.Equal(t, run, e.RunID)
				require.Equal(t, i, *e.Sequence)
				require.Equal(t, "c-"+idOf(t), e.CausationID, "on every consequent event (§10)")
				require.Equal(t, "ask", e.NodeID)
				require.Equal(t, "trusted", e.ContentTrust)
				require.NotEmpty(t, e.Timestamp)
				ids = append(ids, e.EventID)
			}
			if o.Status == "accepted" {
				require.Equal(t, ids, o.RecordedEventIDs)
			}
			if tc.last != "" {
				requireWithin(t, tc.last, events[len(events)-1].Payload)
			}
			if o.Status == "breached" {
				require.JSONEq(t, `{"kind":"envelopes","limit":7,"observed":8,"nodeId":"ask"}`, string(events[0].Payload))
			}
			spans := seamSpans(t, c, run)
			require.Len(t, spans, 1, "one span per accept (§10)")
			require.Equal(t, o.Status, spans[0].Attributes["envelope_outcome"])
			require.Equal(t, env["envelopeId"], spans[0].EnvelopeID)
		})
	}
}

// requireWithin checks that a document has the members of want.
func requireWithin(t *testing.T, want string, got json.RawMessage) {
	t.Helper()
	var w, g any
	require.NoError(t, json.Unmarshal([]byte(want), &w))
	require.NoError(t, json.Unmarshal(got, &g))
	var within func(path string, w, g any)
	within = func(path string, w, g any) {
		m, isObject := w.(obj)
		if !isObject {
			require.Equal(t, w, g, path)
			return
		}
		have, _ := g.(obj)
		for name, v := range m {
			within(path+"/"+name, v, have[name])
		}
	}
	within("", w, g)
}

func TestAcceptProject_UntrustedFollowsEveryEvent(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for name, body := range map[string]obj{
		"§12 accepted":  {"envelope": seamEnvelope(t, "clarification.request", oneQuestion, "correlationId", "u-1")},
		"§12 refused":   {"envelope": seamEnvelope(t, "error", obj{}, "correlationId", "u-2")},
		"§12 misshapen": {"envelope": seamEnvelope(t, "error", plainError, "correlationId", "u-3", "extra", 1)},
		"§12 breached": {
			"envelope": seamEnvelope(t, "error", plainError, "correlationId", "u-4"), "counters": obj{"envelopesPerTurn": obj{"current": 1, "cap": 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := "r-" + idOf(t)
			body["projectTo"], body["runTrustBoundary"] = obj{"runId": run}, "untrusted"
			acceptBy(t, c, body)
			events := seamEvents(t, c, run, "")
			require.NotEmpty(t, events)
			for _, e := range events {
				require.Equal(t, "untrusted", e.ContentTrust, e.Type)
			}
		})
	}
}

func TestAcceptProject_DriftIsOnTheSpan(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for name, tc := range map[string]struct {
		floor int
		drift any
	}{"§4.1 below the floor": {2, true}, "§4.1 at the floor": {1, nil}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := "r-" + idOf(t)
			acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", plainError), "schemaVersionFloor": obj{"error": tc.floor}, "projectTo": obj{"runId": run}})
			a := seamSpans(t, c, run)[0].Attributes
			require.Equal(t, tc.drift, a["envelope_schema_version_drift"])
			require.EqualValues(t, tc.floor, a["envelope_schema_version_floor"])
			require.EqualValues(t, 1, a["envelope_schema_version"])
			require.Equal(t, "error", a["openwop.envelope_kind"])
		})
	}
}

func TestAcceptCanaries_DoNotLeak(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	const value, inner = "waybill-canary-7f3a91", "canary-7f3a91"
	canaries := []obj{{"value": value, "secretId": "outer"}, {"value": inner, "secretId": "inner"}}
	for name, tc := range map[string]struct {
		kind    string
		payload any
		set     []any
		more    obj
		status  string
		count   int
	}{
		"§11 in a text, twice":                {payload: obj{"code": "x.y", "message": value + " and " + value}, status: "accepted", count: 2},
		"§11 in an open bag":                  {payload: obj{"code": "x.y", "message": "m", "details": obj{"deep": []any{obj{"er": value}}}}, status: "accepted", count: 1},
		"§11 as a key":                        {payload: obj{"code": "x.y", "message": "m", "details": obj{value: 1}}, status: "accepted", count: 1},
		"§11 the longest wins":                {payload: obj{"code": "x.y", "message": inner + " in " + value}, status: "accepted", count: 2},
		"§11 in meta.label":                   {set: []any{"meta", obj{"source": "user", "ts": "2026-01-31T12:00:00Z", "label": value}}, status: "accepted", count: 1},
		"§11 in reasoning":                    {payload: obj{"code": "x.y", "message": "m", "reasoning": value}, status: "accepted", count: 1},
		"§11 in a question":                   {kind: "clarification.request", payload: obj{"questions": []obj{{"id": "q", "question": value}}}, status: "accepted", count: 1},
		"§11 in a vendor kind":                {kind: unknownKind, payload: obj{"list": []any{value}}, more: obj{"hostSupportedEnvelopes": []string{unknownKind}}, status: "accepted", count: 1},
		"§26.14 in an id":                     {set: []any{"envelopeId", value}, status: "invalid"},
		"§26.15 as a member that must not be": {payload: obj{"code": "x.y", "message": "m", value: 1}, status: "invalid"},
		"§26.15 as a value of another type":   {payload: obj{"code": "x.y", "message": []any{value}}, status: "invalid"},
		"§11 as a kind":                       {kind: "vendor." + value + ".x", payload: obj{}, status: "gated"},
		"§11 in a listed kind":                {kind: unknownKind, payload: obj{}, more: obj{"nodeAllowedKinds": []string{"vendor." + value + ".x"}, "hostSupportedEnvelopes": []string{unknownKind}}, status: "gated"},
		"§11 in the host's list":              {kind: unknownKind, payload: obj{}, more: obj{"hostSupportedEnvelopes": []string{"vendor." + value + ".x"}}, status: "gated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, payload := tc.kind, tc.payload
			if kind == "" {
				kind = "error"
			}
			if payload == nil {
				payload = plainError
			}
			run := "r-" + idOf(t)
			body := acceptCase{more: tc.more}.with(seamEnvelope(t, kind, payload, tc.set...))
			body["byokCanaries"], body["projectTo"], body["persistedDedup"] = canaries, obj{"runId": run, "nodeId": "n"}, obj{"runId": run}
			o := acceptBy(t, c, body)
			require.Equal(t, tc.status, o.Status, o.raw)
			if tc.status == "accepted" {
				require.Equal(t, tc.count, *o.RedactionCount, o.raw)
			}
			shown := map[string]string{"outcome": o.raw, "again": acceptBy(t, c, obj{"envelope": body["envelope"], "persistedDedup": body["persistedDedup"]}).raw}
			for _, at := range []string{"test/runs/" + run + "/events", "test/otel/spans?runId=" + run} {
				shown[at] = string(do(t, c, http.MethodGet, seams+at, "").Body)
			}
			shown["bundle"] = string(do(t, c, http.MethodPost, seams+"test/debug-bundle/export", `{"runId":"`+run+`"}`).Body)
			for where, text := range shown {
				if where == "again" && tc.status != "accepted" {
					continue // without canaries the caller's text has no secret
				}
				require.NotContains(t, text, inner, where)
			}
			if kind == "error" && tc.status == "accepted" {
				require.Contains(t, shown["test/runs/"+run+"/events"], "[REDACTED:")
			}
		})
	}
	t.Run("§11 a value shorter than 8 is not matched", func(t *testing.T) {
		t.Parallel()
		o := acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", plainError), "byokCanaries": []obj{{"value": "m", "secretId": "k"}}})
		require.Zero(t, *o.RedactionCount)
		require.JSONEq(t, `{"code":"x.y","message":"m"}`, string(o.RedactedPayload))
	})
}
