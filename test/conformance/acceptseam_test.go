package conformance

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// These tests check POST envelope/accept member by member; names cite the tested section (OpenWOP
// envelope contract).

type obj = map[string]any

// seamEnvelope is an envelope of a kind with a correlationId unique to the test. set overwrites
// members, and nil removes one.
func seamEnvelope(t *testing.T, kind string, payload any, set ...any) obj {
	t.Helper()
	id := idOf(t)
	e := obj{
		"type": kind, "schemaVersion": 1, "envelopeId": "e-" + id, "correlationId": "c-" + id, "payload": payload,
		"meta": obj{"source": "ai-generation", "ts": "2026-01-31T12:00:00Z"},
	}
	for i := 0; i < len(set); i += 2 {
		if set[i+1] == nil {
			delete(e, set[i].(string))
			continue
		}
		e[set[i].(string)] = set[i+1]
	}
	return e
}

// idOf derives an id from the test's name: tests share one host and its memory.
func idOf(t *testing.T) string {
	t.Helper()
	name := t.Name()
	if len(name) > 120 {
		name = name[len(name)-120:]
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ReplaceAll(name, "§", ""))
}

type seamOutcome struct {
	Status           string
	Reason           string
	Details          []struct{ InstancePath, Keyword string }
	AllowedKinds     []string
	Gate             struct{ RefusedType, RefusalMode string }
	CapKind          string
	RecordedEventIDs []string `json:"recordedEventIds"`
	EnvelopeID       string
	NormalizedMeta   struct{ ContentTrust string }
	RedactionCount   *int
	RedactedPayload  json.RawMessage
	raw              string
}

// acceptBy posts to the seam, which answers 200 for every outcome.
func acceptBy(t *testing.T, c *harness.Client, body obj) seamOutcome {
	t.Helper()
	b, err := json.Marshal(body)
	require.NoError(t, err)
	a := do(t, c, http.MethodPost, seams+"envelope/accept", string(b))
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	o := seamOutcome{raw: string(a.Body)}
	require.NoError(t, a.JSON(&o))
	return o
}

// with is a body with further members.
func (t acceptCase) with(envelope obj) obj {
	body := maps.Clone(t.more)
	if body == nil {
		body = obj{}
	}
	body["envelope"] = envelope
	return body
}

type acceptCase struct {
	name string
	// kind and payload default to those of an error envelope.
	kind    string
	payload any
	set     []any
	more    obj
	status  string
	reason  string // prefix of the reason
	check   func(t *testing.T, o seamOutcome)
}

var (
	plainError  = obj{"code": "x.y", "message": "m"}
	oneQuestion = obj{"questions": []obj{{"id": "q", "question": "Which?"}}}
	universals  = []string{"clarification.request", "schema.request", "schema.response", "error"}
	knownTriage = "vendor.waybill.ticket.triage"
	unknownKind = "vendor.acme.ghost"
	exactly     = func(reason string) func(*testing.T, seamOutcome) {
		return func(t *testing.T, o seamOutcome) { require.Equal(t, reason, o.Reason) }
	}
	allowing = func(kinds ...string) func(*testing.T, seamOutcome) {
		return func(t *testing.T, o seamOutcome) { require.ElementsMatch(t, kinds, o.AllowedKinds) }
	}
	detail = func(path, keyword string) func(*testing.T, seamOutcome) {
		return func(t *testing.T, o seamOutcome) {
			require.Equal(t, path, o.Details[0].InstancePath)
			require.Equal(t, keyword, o.Details[0].Keyword)
		}
	}
	trustedAs = func(trust string) func(*testing.T, seamOutcome) {
		return func(t *testing.T, o seamOutcome) { require.Equal(t, trust, o.NormalizedMeta.ContentTrust) }
	}
	metaTrust = func(trust string) obj {
		return obj{"source": "ai-generation", "ts": "2026-01-31T12:00:00Z", "contentTrust": trust}
	}
	counterOf = func(name string, current, limit int) obj {
		return obj{"counters": obj{name: obj{"current": current, "cap": limit}}}
	}
	breachingCap = func(kind string) func(*testing.T, seamOutcome) {
		return func(t *testing.T, o seamOutcome) { require.Equal(t, kind, o.CapKind) }
	}
)

var acceptFields = []acceptCase{
	{name: "§23.1 envelope: accepted", status: "accepted", check: func(t *testing.T, o seamOutcome) {
		require.NotNil(t, o.RecordedEventIDs)
		require.NotEmpty(t, o.EnvelopeID)
		require.Nil(t, o.RedactionCount, "the count is present only if redaction was requested")
		require.Nil(t, o.RedactedPayload)
	}},
	{name: "§23.1 envelope: no correlationId is synthesised", set: []any{"correlationId", nil}, status: "invalid", reason: "invalid_envelope_shape"},
	{name: "§23.1 envelope: no envelopeId is synthesised", set: []any{"envelopeId", nil}, status: "invalid", reason: "invalid_envelope_shape"},
	{name: "§23.1 envelope: no meta is synthesised (C4)", set: []any{"meta", nil}, status: "invalid", reason: "invalid_envelope_shape"},
	{name: "§23.1 envelope: no payload is synthesised", set: []any{"payload", nil}, status: "invalid", reason: "invalid_envelope_shape"},
	{name: "§2 envelope: closed at the top", set: []any{"extra", 1}, status: "invalid", reason: "invalid_envelope_shape"},
	{name: "§2 meta: closed (C2)", set: []any{"meta", obj{"source": "user", "ts": "2026-01-31T12:00:00Z", "acme": obj{}}}, status: "invalid", reason: "invalid_envelope_shape"},
	{name: "§6 meta.ts: a day that is none", set: []any{"meta", obj{"source": "user", "ts": "2026-02-30T00:00:00Z"}}, status: "invalid", reason: "invalid_envelope_shape", check: func(t *testing.T, o seamOutcome) {
		require.Contains(t, o.Reason, "ISO 8601")
		detail("/meta/ts", "format")(t, o)
	}},
	{name: "§6 payload: outside its schema", payload: obj{"code": 7, "message": "m"}, status: "invalid", reason: "envelope_invalid", check: func(t *testing.T, o seamOutcome) {
		require.NotEmpty(t, o.Details)
	}},
	{name: "§6 kind: unknown to the host (C7)", kind: unknownKind, payload: obj{}, status: "gated", reason: "unknown_envelope_kind", check: func(t *testing.T, o seamOutcome) {
		require.Subset(t, o.AllowedKinds, universals)
		require.Contains(t, o.AllowedKinds, knownTriage)
		require.Equal(t, unknownKind, o.Gate.RefusedType, "both spellings of a gate (C3)")
		require.Equal(t, "fail-node", o.Gate.RefusalMode)
	}},

	{name: "§23.1 hostSupportedEnvelopes: makes a kind known", kind: unknownKind, payload: obj{"any": 1}, more: obj{"hostSupportedEnvelopes": []string{unknownKind}}, status: "accepted"},
	{name: "§23.1 hostSupportedEnvelopes: replaces the host's own", kind: knownTriage, payload: json.RawMessage(triage), more: obj{"hostSupportedEnvelopes": []string{unknownKind}}, status: "gated", reason: "unknown_envelope_kind", check: allowing(append([]string{unknownKind}, universals...)...)},
	{name: "§23.1 hostSupportedEnvelopes: universals need no listing", more: obj{"hostSupportedEnvelopes": []string{}}, status: "accepted"},
	{name: "§23.1 hostSupportedEnvelopes: absent, schema.request is not looked up (C6)", kind: "schema.request", payload: obj{"envelopeType": unknownKind}, status: "accepted"},
	{name: "§23.1 hostSupportedEnvelopes: given, schema.request is looked up (C6)", kind: "schema.request", payload: obj{"envelopeType": unknownKind}, more: obj{"hostSupportedEnvelopes": []string{knownTriage}}, status: "gated", reason: "unknown_envelope_kind"},
	{name: "§23.1 hostSupportedEnvelopes: given, schema.request of a listed kind", kind: "schema.request", payload: obj{"envelopeType": unknownKind}, more: obj{"hostSupportedEnvelopes": []string{unknownKind}}, status: "accepted"},

	{name: "§23.1 nodeAllowedKinds: refuses the rest", kind: knownTriage, payload: json.RawMessage(triage), more: obj{"nodeAllowedKinds": []string{unknownKind}}, status: "gated", reason: "envelope_contract_violation", check: allowing(append([]string{unknownKind}, universals...)...)},
	{name: "§23.1 nodeAllowedKinds: takes what it lists", kind: knownTriage, payload: json.RawMessage(triage), more: obj{"nodeAllowedKinds": []string{knownTriage}}, status: "accepted"},
	{name: "§23.1 nodeAllowedKinds: empty refuses no universal", more: obj{"nodeAllowedKinds": []string{}}, status: "accepted"},
	{name: "§23.1 nodeAllowedKinds: a universal in it is harmless (§26.16)", more: obj{"nodeAllowedKinds": []string{"error"}}, status: "accepted"},
	{name: "§6 the host's gate comes before the node's", kind: unknownKind, payload: obj{}, more: obj{"nodeAllowedKinds": []string{unknownKind}}, status: "gated", reason: "unknown_envelope_kind"},

	{name: "§23.1 runTrustBoundary: absent is trusted", status: "accepted", check: trustedAs("trusted")},
	{name: "§23.1 runTrustBoundary: untrusted", more: obj{"runTrustBoundary": "untrusted"}, status: "accepted", check: trustedAs("untrusted")},
	{name: "§12 the envelope's tag beats the boundary", set: []any{"meta", metaTrust("trusted")}, more: obj{"runTrustBoundary": "untrusted"}, status: "accepted", check: trustedAs("trusted")},
	{name: "§12 the envelope's tag beats a trusted boundary", set: []any{"meta", metaTrust("untrusted")}, more: obj{"runTrustBoundary": "trusted"}, status: "accepted", check: trustedAs("untrusted")},

	{name: "§23.1 counters: below the cap", more: counterOf("envelopesPerTurn", 4, 5), status: "accepted"},
	{name: "§23.1 counters: envelopesPerTurn at the cap", more: counterOf("envelopesPerTurn", 32, 32), status: "breached", reason: "cap_breached", check: func(t *testing.T, o seamOutcome) {
		require.Equal(t, "envelopes", o.CapKind)
		require.Contains(t, o.Reason, "envelopesPerTurn")
		require.Contains(t, o.Reason, "32")
	}},
	{name: "§23.1 counters: a cap of 0 admits none (§26.17)", more: counterOf("envelopesPerTurn", 0, 0), status: "breached", check: breachingCap("envelopes")},
	{name: "§23.1 counters: schemaRounds bind schema.request", kind: "schema.request", payload: obj{"envelopeType": knownTriage}, more: counterOf("schemaRounds", 2, 2), status: "breached", check: breachingCap("schema")},
	{name: "§23.1 counters: schemaRounds bind nothing else", more: counterOf("schemaRounds", 2, 2), status: "accepted"},
	{name: "§23.1 counters: clarificationRounds bind clarification.request", kind: "clarification.request", payload: oneQuestion, more: counterOf("clarificationRounds", 3, 3), status: "breached", check: breachingCap("clarification")},
	{name: "§23.1 counters: clarificationRounds bind nothing else", more: counterOf("clarificationRounds", 3, 3), status: "accepted"},
	{name: "§6 the contract comes before the limits", kind: knownTriage, payload: json.RawMessage(triage), more: obj{"nodeAllowedKinds": []string{}, "counters": obj{"envelopesPerTurn": obj{"current": 1, "cap": 1}}}, status: "gated"},

	{name: "§23.1 schemaVersionFloor: equal", more: obj{"schemaVersionFloor": obj{"error": 1}}, status: "accepted"},
	{name: "§23.1 schemaVersionFloor: above, and warn is the host's own", more: obj{"schemaVersionFloor": obj{"error": 2}}, status: "accepted"},
	{name: "§23.1 schemaVersionFloor: below what was emitted", more: obj{"schemaVersionFloor": obj{"error": 0}}, status: "invalid", reason: "unknown_schema_version: ", check: func(t *testing.T, o seamOutcome) { require.Equal(t, "/schemaVersion", o.Details[0].InstancePath) }},
	{name: "§23.1 schemaVersionFloor: of other kinds only", set: []any{"schemaVersion", 9}, more: obj{"schemaVersionFloor": obj{"x": 1}}, status: "accepted"},
	{name: "§4.1 schemaVersion 1.0 is an integer (§26.7)", set: []any{"schemaVersion", json.RawMessage("1.0")}, status: "accepted"},
	{name: "§4.1 schemaVersion: absent is 0 and below the floor, warn (C1)", set: []any{"schemaVersion", nil}, status: "accepted"},

	{name: "§23.1 envelopeStrictness: strict refuses what is below", more: obj{"schemaVersionFloor": obj{"error": 2}, "envelopeStrictness": "strict"}, status: "invalid", reason: "unknown_schema_version: "},
	{name: "§23.1 envelopeStrictness: strict refuses an absent version (C1)", set: []any{"schemaVersion", nil}, more: obj{"envelopeStrictness": "strict"}, status: "invalid", reason: "unknown_schema_version"},
	{name: "§23.1 envelopeStrictness: strict takes the equal one", more: obj{"envelopeStrictness": "strict"}, status: "accepted"},
	{name: "§23.1 envelopeStrictness: warn takes what is below", more: obj{"schemaVersionFloor": obj{"error": 2}, "envelopeStrictness": "warn"}, status: "accepted"},
	{name: "§23.1 envelopeStrictness: warn refuses what is above", set: []any{"schemaVersion", 7}, more: obj{"envelopeStrictness": "warn"}, status: "invalid", reason: "unknown_schema_version"},

	{name: "§23.1 approvalGateContext: untrusted never advances", more: obj{"approvalGateContext": true, "runTrustBoundary": "untrusted"}, status: "invalid", check: exactly("untrusted_content_blocks_approval")},
	{name: "§23.1 approvalGateContext: untrusted by its own tag", set: []any{"meta", metaTrust("untrusted")}, more: obj{"approvalGateContext": true}, status: "invalid", check: exactly("untrusted_content_blocks_approval")},
	{name: "§23.1 approvalGateContext: trusted passes", more: obj{"approvalGateContext": true}, status: "accepted"},
	{name: "§23.1 approvalGateContext: false", more: obj{"approvalGateContext": false, "runTrustBoundary": "untrusted"}, status: "accepted"},
	{name: "§23.1 boundInterruptKind: approval", more: obj{"boundInterruptKind": "approval", "runTrustBoundary": "untrusted"}, status: "invalid", check: exactly("untrusted_content_blocks_approval")},
	{name: "§23.1 boundInterruptKind: any other", more: obj{"boundInterruptKind": "clarification", "runTrustBoundary": "untrusted"}, status: "accepted"},
	{name: "§6 limits come before the approval", more: obj{"approvalGateContext": true, "runTrustBoundary": "untrusted", "counters": obj{"envelopesPerTurn": obj{"current": 1, "cap": 1}}}, status: "breached"},

	{name: "§23.1 byokCanaries: none still report", more: obj{"byokCanaries": []obj{}}, status: "accepted", check: func(t *testing.T, o seamOutcome) {
		require.NotNil(t, o.RedactionCount)
		require.Zero(t, *o.RedactionCount)
		require.JSONEq(t, `{"code":"x.y","message":"m"}`, string(o.RedactedPayload))
	}},
	{name: "§23.1 priorCorrelations: of others only", more: obj{"priorCorrelations": []obj{{"correlationId": "someone-else", "outcome": obj{"status": "invalid"}, "envelopeType": "error"}}}, status: "accepted"},
	{name: "§2 partial: a fragment is shown, and no more", set: []any{"partial", obj{"isPartial": true, "index": 0, "total": -1}}, more: obj{"projectTo": obj{"runId": "partial-run"}, "counters": obj{"envelopesPerTurn": obj{"current": 1, "cap": 1}}}, status: "accepted", check: func(t *testing.T, o seamOutcome) {
		require.Empty(t, o.RecordedEventIDs)
	}},
	{name: "§2 partial: the last one is the envelope", set: []any{"partial", obj{"isPartial": false, "index": 3, "total": 4}}, more: obj{"projectTo": obj{"runId": "partial-last"}}, status: "accepted", check: func(t *testing.T, o seamOutcome) {
		require.Len(t, o.RecordedEventIDs, 1)
	}},
	{name: "§2 partial: closed", set: []any{"partial", obj{"isPartial": true}}, status: "invalid", reason: "invalid_envelope_shape"},
	{name: "§26.6 digits beyond 2^53 are kept", payload: obj{"code": "x", "message": "m", "details": obj{"n": json.RawMessage("12345678901234567890123")}}, more: obj{"byokCanaries": []obj{}}, status: "accepted", check: func(t *testing.T, o seamOutcome) {
		require.Contains(t, string(o.RedactedPayload), "12345678901234567890123")
	}},
	{name: "§23.1 projectTo: the run need not exist", more: obj{"projectTo": obj{"runId": "never-started"}}, status: "accepted", check: func(t *testing.T, o seamOutcome) { require.Len(t, o.RecordedEventIDs, 1) }},
}

func TestAccept_EveryMemberOfTheRequest(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for _, tc := range acceptFields {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			kind, payload := tc.kind, tc.payload
			if kind == "" {
				kind = "error"
			}
			if payload == nil {
				payload = plainError
			}
			o := acceptBy(t, c, tc.with(seamEnvelope(t, kind, payload, tc.set...)))
			require.Equal(t, tc.status, o.Status, o.raw)
			require.True(t, strings.HasPrefix(o.Reason, tc.reason), o.raw)
			if tc.check != nil {
				tc.check(t, o)
			}
		})
	}
}

func TestAccept_RejectsAnInvalidBody(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for name, body := range map[string]string{
		"§23.1 envelope: missing":                          `{}`,
		"§23.1 envelope: not JSON":                         `{"envelope":{]}`,
		"§23.1 no body":                                    ``,
		"§23.1 runTrustBoundary: neither of the two":       `{"envelope":{},"runTrustBoundary":"maybe"}`,
		"§23.1 envelopeStrictness: neither of the two":     `{"envelope":{},"envelopeStrictness":"lax"}`,
		"§23.1 counters: no object":                        `{"envelope":{},"counters":[]}`,
		"§23.1 schemaVersionFloor: no integers":            `{"envelope":{},"schemaVersionFloor":{"error":"1"}}`,
		"§23.1 persistedDedup: names no run":               `{"envelope":{},"persistedDedup":{}}`,
		"§23.1 projectTo: names no run":                    `{"envelope":{},"projectTo":{}}`,
		"§23.1 projectTo.refusalMode: neither of the two":  `{"envelope":{},"projectTo":{"runId":"r","refusalMode":"shrug"}}`,
		"§23.1 hostSupportedEnvelopes: no list":            `{"envelope":{},"hostSupportedEnvelopes":"error"}`,
		"§23.1 nodeAllowedKinds: no list":                  `{"envelope":{},"nodeAllowedKinds":{}}`,
		"§23.1 byokCanaries: no list":                      `{"envelope":{},"byokCanaries":{}}`,
		"§23.1 priorCorrelations: no list":                 `{"envelope":{},"priorCorrelations":{}}`,
		"§23.1 a member twice, so that two readers differ": `{"envelope":{},"envelope":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := do(t, c, http.MethodPost, seams+"envelope/accept", body)
			require.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
			var e struct {
				Error struct{ Code, Message string }
			}
			require.NoError(t, a.JSON(&e))
			require.Equal(t, "invalid_argument", e.Error.Code)
			require.NotEmpty(t, e.Error.Message)
		})
	}
	for name, body := range map[string]string{
		"a number": "7", "a text": `"x"`, "null": "null", "a list": "[]", "true": "true",
		"a member twice (§26.5)": `{"type":"error","type":"error"}`, "nested too deep (§26.5)": strings.Repeat(`[`, 20_000) + strings.Repeat(`]`, 20_000),
		"too large (§26.5)": `{"payload":"` + strings.Repeat("x", 2<<20) + `"}`, "not UTF-8": "{\"type\":\"\xff\"}",
	} {
		t.Run("§23.1 envelope: any JSON is judged, "+name, func(t *testing.T) {
			t.Parallel()
			a := do(t, c, http.MethodPost, seams+"envelope/accept", `{"envelope":`+body+`}`)
			require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
			var o seamOutcome
			require.NoError(t, a.JSON(&o))
			require.Equal(t, "invalid", o.Status)
			require.True(t, strings.HasPrefix(o.Reason, "invalid_envelope_shape"), o.Reason)
		})
	}
}

// Texts that the model wrote are bounded in the outcome and in the events.
func TestAccept_RefusalsAreBounded(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	long := strings.Repeat("\u00e9", 20000)
	for name, env := range map[string]obj{
		"a member's name":   seamEnvelope(t, "error", obj{"code": "x", "message": "y", long: 1}),
		"a name below":      seamEnvelope(t, "clarification.request", obj{"questions": []obj{{"id": "q", "question": "?", long: 1}}}),
		"a kind":            seamEnvelope(t, "vendor."+strings.Repeat("a", 20000)+".b.c", obj{}),
		"a member of meta":  seamEnvelope(t, "error", plainError, "meta", obj{"source": "ai-generation", "ts": "2026-01-31T12:00:00Z", long: 1}),
		"a name at the top": seamEnvelope(t, "error", plainError, long, 1),
	} {
		body, err := json.Marshal(obj{"envelope": env, "projectTo": obj{"runId": "bounded-" + idOf(t), "nodeId": "n"}})
		require.NoError(t, err)
		a := do(t, c, http.MethodPost, seams+"envelope/accept", string(body))
		require.Equal(t, http.StatusOK, a.Status, name)
		require.Contains(t, []string{"invalid", "gated"}, seamStatus(t, a), name)
		require.Less(t, len(a.Body), 8<<10, name)
	}
	logged := do(t, c, http.MethodGet, seams+"test/runs/bounded-"+idOf(t)+"/events", "")
	require.Less(t, len(logged.Body), 64<<10)
}

func seamStatus(t *testing.T, a *harness.Answer) string {
	t.Helper()
	var o struct{ Status string }
	require.NoError(t, a.JSON(&o))
	return o.Status
}

// With the capability off no later step runs (§6 step 0).
func TestAccept_CapabilityOff(t *testing.T) {
	t.Parallel()
	c := shared.Host(t).Client(toggleKey)
	toggle := func(body string) {
		a := do(t, c, http.MethodPost, seams+"test/capability-toggle", body)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	}
	toggle(`{"name":"host.aiEnvelope.supported","value":false}`)
	for name, body := range map[string]obj{
		"§23.1 step 0 before shape":  {"envelope": 7},
		"§23.1 step 0 before kind":   {"envelope": seamEnvelope(t, unknownKind, obj{})},
		"§23.1 step 0 before limits": {"envelope": seamEnvelope(t, "error", plainError), "counters": obj{"envelopesPerTurn": obj{"current": 1, "cap": 1}}},
		"§23.1 step 0 before priors": {
			"envelope":          seamEnvelope(t, "error", plainError, "correlationId", "off"),
			"priorCorrelations": []obj{{"correlationId": "off", "outcome": obj{"status": "accepted"}, "envelopeType": "error"}},
		},
		"§23.1 step 0, projected": {"envelope": seamEnvelope(t, "error", plainError), "projectTo": obj{"runId": "off", "nodeId": "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := acceptBy(t, c, body)
			require.Equal(t, "invalid", o.Status)
			require.Equal(t, "capability_required", o.Reason)
		})
	}
	toggle(`{"name":"host.aiEnvelope.supported","value":true}`)
	require.Equal(t, "accepted", acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", plainError)}).Status)
}
