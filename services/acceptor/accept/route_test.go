package accept_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/publishedtest"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// OpenWOP envelope contract §10, one row each.
func TestRoute_EventsOfEveryKind(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind, payload string
		types         []wire.EventType
		first         string
	}{
		"schema.request": {
			"schema.request", `{"envelopeType":"error"}`,
			[]wire.EventType{wire.EventLogAppended},
			`{"level":"debug","message":"the model asked for the schema of a kind","nodeId":"ask","fields":{"envelopeType":"schema.request","envelopeId":"env-1","outcome":"accepted","payload":{"envelopeType":"error"}}}`,
		},
		"schema.response": {
			"schema.response", `{"envelopeType":"error","ack":true}`,
			[]wire.EventType{wire.EventLogAppended},
			`{"level":"debug","message":"the model acknowledged the schema of a kind","nodeId":"ask","fields":{"envelopeType":"schema.response","envelopeId":"env-1","outcome":"accepted","payload":{"envelopeType":"error","ack":true}}}`,
		},
		"error": {
			"error", `{"code":"context_exhausted","message":"too long"}`,
			[]wire.EventType{wire.EventLogAppended},
			`{"level":"error","message":"too long","nodeId":"ask","fields":{"envelopeType":"error","envelopeId":"env-1","outcome":"accepted","payload":{"code":"context_exhausted","message":"too long"}}}`,
		},
		"vendor": {
			note, " {\n \"text\" : \"a\\u0062 <c>\" } ",
			[]wire.EventType{wire.EventArtifactCreated},
			`{"artifactId":"env-1","artifactType":"vendor.acme.note","nodeId":"ask","version":"2","payload":{"text":"a\u0062 <c>"}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			d := doc(tc.kind, `"P"`)
			res := f.accept(strings.Replace(d, `"P"`, tc.payload, 1))
			accepted(t, res)
			var types []wire.EventType
			for _, e := range res.Events {
				types = append(types, e.Type)
			}
			require.Equal(t, tc.types, types)
			require.Equal(t, tc.first, string(res.Events[0].Payload))
		})
	}
}

// OpenWOP envelope contract §3.3 (lift) and §24 C5 (no context in the interrupt).
func TestRoute_ClarificationBecomesOneInterrupt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.accept(doc("clarification.request", clarification), func(r *accept.Request) {
		r.Counters.ClarificationRounds = &accept.Counter{Current: 2, Cap: 3}
		r.QuestionTimeoutMs = 90_000
	})
	require.Len(t, res.Events, 2)
	require.Equal(t, wire.EventClarificationRequested, res.Events[0].Type)
	require.Equal(t, wire.EventInterruptRequested, res.Events[1].Type)

	var asked struct{ NodeID, InterruptID string }
	require.NoError(t, json.Unmarshal(res.Events[0].Payload, &asked))
	require.Contains(t, string(res.Events[0].Payload), `"context":{"hint":"x"}`, "in the recorded envelope")
	require.NotEmpty(t, asked.InterruptID)
	require.JSONEq(t, `{
		"runId":"run-1","nodeId":"ask","interruptId":"`+asked.InterruptID+`","kind":"clarification","key":"run-1:ask:2",
		"data":{"questions":[{"id":"q1","question":"Which?","schema":{"type":"string"}},{"id":"q2","question":"When?"}],"contextType":"form"},
		"resumeSchema":`+interrupt.ModelAnswerSchema+`,"timeoutMs":90000,
		"requestedAt":"2026-01-31T12:00:00.000Z"}`, string(res.Events[1].Payload))
}

func TestRoute_InterruptKeyStaysWithinItsLimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.accept(doc("clarification.request", clarification), func(r *accept.Request) { r.NodeID = strings.Repeat("n", 300) })
	var i struct{ Key string }
	require.NoError(t, json.Unmarshal(res.Events[1].Payload, &i))
	require.LessOrEqual(t, len(i.Key), 256)
	require.NotEmpty(t, i.Key)
}

func TestRoute_UnlistedKindKeepsItsOwnVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := accept.New(unlisted{f.kinds}, f.redactor, accept.NewLogLedger(f.log, f.clock), f.clock, f.policy)
	res, err := p.Run(t.Context(), f.request(doc("vendor.acme.free", `[1,"anything"]`, with("schemaVersion", 7))))
	require.NoError(t, err)
	accepted(t, res)
	require.Contains(t, string(res.Events[0].Payload), `"version":"7"`)
	require.Equal(t, `[1,"anything"]`, string(res.Payload))
}

// A dispatcher that resumes the run must find out whether the log has a whole answer, and
// which envelopes belong to it.
func TestRoute_EventsNameThePartOfTheAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		part wire.AnswerPart
		want string // empty means no answer member
	}{
		"all of it":       {wire.AnswerPart{}, ""},
		"the only one":    {wire.AnswerPart{Size: 1}, ""},
		"the first":       {wire.AnswerPart{Size: 2}, `"answer":{"size":2,"index":0}`},
		"after the first": {wire.AnswerPart{Size: 3, Index: 1, With: []int{7}}, `"answer":{"size":3,"index":1,"with":[7]}`},
	} {
		for kind, payload := range map[string]string{note: goodNote, accept.KindError: `{"code":"x","message":"y"}`} {
			res := newFixture(t).accept(doc(kind, payload), func(r *accept.Request) { r.Answer = tc.part })
			accepted(t, res)
			if tc.want == "" {
				require.NotContains(t, string(res.Events[0].Payload), `"answer"`, "%s %s", kind, name)
				continue
			}
			require.Contains(t, string(res.Events[0].Payload), tc.want, "%s %s", kind, name)
		}
	}
}

// unlisted is a catalogue with a kind without version and schema.
type unlisted struct{ accept.Kinds }

func (u unlisted) Find(name string) (accept.Kind, bool) {
	if name == "vendor.acme.free" {
		return accept.Kind{Name: name, Version: accept.Unlisted}, true
	}
	return u.Kinds.Find(name)
}

func validate(t *testing.T, s *jsonschema.Schema, b []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	require.NoError(t, err)
	require.NoError(t, s.Validate(v), string(b))
}

func TestRoute_EventsSatisfyThePublishedSchemas(t *testing.T) {
	t.Parallel()
	schemas := publishedtest.Load(t)
	event := schemas.Need(t, "run-event.schema.json")
	defs := map[wire.EventType]*jsonschema.Schema{
		wire.EventClarificationRequested: schemas.Need(t, "run-event-payloads.schema.json#/$defs/clarificationRequested"),
		wire.EventLogAppended:            schemas.Need(t, "run-event-payloads.schema.json#/$defs/logAppended"),
		wire.EventArtifactCreated:        schemas.Need(t, "run-event-payloads.schema.json#/$defs/artifactCreated"),
		wire.EventInterruptRequested:     schemas.Need(t, "suspend-request.schema.json"),
	}
	for kind, payload := range everyKind {
		f := newFixture(t)
		res := f.accept(doc(kind, payload, meta("rendering", map[string]any{"display": "card"}, "contentTrust", "untrusted")))
		for _, e := range res.Events {
			validate(t, event, e.AppendJSON(nil))
			body := []byte(e.Payload)
			if e.Type == wire.EventInterruptRequested {
				body = withoutIdentity(t, body)
			}
			validate(t, defs[e.Type], body)
		}
	}
}

// withoutIdentity removes the members that the engine assigns from an interrupt. The rest
// must satisfy the closed schema, including data.
func withoutIdentity(t *testing.T, payload []byte) []byte {
	t.Helper()
	var m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(payload, &m))
	for _, k := range []string{"runId", "nodeId", "interruptId", "requestedAt"} {
		require.Contains(t, m, k)
		delete(m, k)
	}
	b, err := json.Marshal(m)
	require.NoError(t, err)
	return b
}

func TestRoute_SurvivesRedactionOfAMemberName(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := accept.New(f.kinds, replacer{`"questions"`, `"[REDACTED:q]"`}, accept.NewLogLedger(f.log, f.clock), f.clock, f.policy)
	res, err := p.Run(t.Context(), f.request(doc("clarification.request", clarification)))
	require.NoError(t, err)
	refused(t, res, accept.Invalid, fault.EnvelopeInvalid)
	f.nothingRecorded()
}
