package accept

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

func place(run string, pos uint64) Place {
	return Place{Run: subject.Run{Tenant: "t", WorkflowID: "w", RunID: run}, Head: frame.Head{Pos: pos, Hash: "h", Next: int(pos)}}
}

// caused is a frame with one event of a cause.
func caused(pos uint64, cause string) *frame.Frame {
	e := wire.Draft{Type: wire.EventLogAppended, CausationID: cause}.Place("r", 0, time.Time{})
	f := frame.New(subject.Run{Tenant: "t", WorkflowID: "w", RunID: "r"}, subject.Step, frame.Head{}, []wire.Event{e})
	f.Pos = pos
	return f
}

func TestSeen_IsExactAtOneHeadAndSilentElsewhere(t *testing.T) {
	t.Parallel()
	s := newSeen(8)
	at := place("r", 3)
	require.False(t, s.fresh(at, "a"), "nothing is known yet")
	require.NoError(t, s.remember(at, []*frame.Frame{caused(1, "a"), caused(2, ""), caused(3, "b")}))

	require.False(t, s.fresh(at, "a"))
	require.False(t, s.fresh(at, "b"))
	require.True(t, s.fresh(at, "c"))
	require.False(t, s.fresh(place("r", 2), "c"), "another head")
	require.False(t, s.fresh(place("r", 4), "c"), "another head")
	require.False(t, s.fresh(place("other", 3), "c"), "another run")
}

func TestSeen_AppendMovesTheHeadOn(t *testing.T) {
	t.Parallel()
	s := newSeen(8)
	require.NoError(t, s.remember(place("r", 3), nil))
	next := place("r", 4)
	s.append(place("r", 3), next.Head, "a")
	require.False(t, s.fresh(place("r", 3), "b"))
	require.True(t, s.fresh(next, "b"))
	require.False(t, s.fresh(next, "a"))

	s.append(place("r", 9), place("r", 10).Head, "b")
	require.False(t, s.fresh(next, "b"), "an append elsewhere: nothing is certain any more")
	s.append(place("unknown", 1), next.Head, "a")
	require.False(t, s.fresh(Place{Run: place("unknown", 1).Run, Head: next.Head}, "b"))
}

func TestSeen_ForgetsTheLeastRecentlyUsedRun(t *testing.T) {
	t.Parallel()
	s := newSeen(2)
	for _, run := range []string{"a", "b"} {
		require.NoError(t, s.remember(place(run, 1), nil))
	}
	s.append(place("a", 1), place("a", 2).Head, "x") // a is used again
	require.NoError(t, s.remember(place("c", 1), nil))
	require.True(t, s.fresh(place("a", 2), "y"))
	require.False(t, s.fresh(place("b", 1), "y"))
	require.True(t, s.fresh(place("c", 1), "y"))
	require.Len(t, s.runs, 2)
	require.Equal(t, 2, s.order.Len())

	require.NoError(t, s.remember(place("c", 5), nil))
	require.Len(t, s.runs, 2, "one entry per run")
}

func TestSeen_OutdatedIsNotCertainUntilItIsExtended(t *testing.T) {
	t.Parallel()
	s := newSeen(2)
	require.NoError(t, s.remember(place("r", 1), nil))
	s.outdate(place("r", 1).Run)
	require.False(t, s.fresh(place("r", 1), "a"))
	_, current, ok := s.standing(place("r", 1).Run)
	require.True(t, ok)
	require.False(t, current)

	f := caused(2, "a")
	require.NoError(t, s.extend(place("r", 1).Run, place("r", 1).Head, []*frame.Frame{f}))
	now, current, _ := s.standing(place("r", 1).Run)
	require.True(t, current)
	require.Equal(t, f.Head(), now.Head)
	require.True(t, s.has(place("r", 1).Run, "a"))
	require.True(t, s.fresh(Place{Run: place("r", 1).Run, Head: f.Head()}, "b"))

	require.NoError(t, s.extend(place("r", 1).Run, place("r", 1).Head, nil))
	_, _, ok = s.standing(place("r", 1).Run)
	require.False(t, ok, "it moved on meanwhile: nothing is certain any more")
	s.outdate(place("r", 1).Run)
	require.NoError(t, s.extend(place("r", 1).Run, place("r", 1).Head, nil))
}

func TestSeen_DoesNotRememberRunsWithManyIDs(t *testing.T) {
	t.Parallel()
	s := newSeen(2)
	var frames []*frame.Frame
	for i := range maxIDsSeen + 1 {
		frames = append(frames, caused(uint64(i+1), fmt.Sprint(i)))
	}
	require.NoError(t, s.remember(place("r", 1), frames))
	require.Empty(t, s.runs)
	require.NoError(t, s.remember(place("r", 1), frames[:maxIDsSeen]))
	require.Len(t, s.runs, 1)
	s.append(place("r", 1), place("r", 2).Head, "one more")
	require.Empty(t, s.runs)
}

func TestSeen_ReportsADamagedFrame(t *testing.T) {
	t.Parallel()
	f := caused(1, "a")
	f.Body = f.Body[:len(f.Body)-1]
	require.Error(t, newSeen(2).remember(place("r", 1), []*frame.Frame{f}))
}

func TestWithoutNull_DropsOneMemberAndKeepsAllOtherBytes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"reasoning":null}`:                                           `{}`,
		`{"a":1.0,"reasoning":null,"b":[ 1 ]}`:                         `{"a":1.0,"b":[ 1 ]}`,
		`{"reasoning" : null , "a":{"reasoning":null}}`:                `{"a":{"reasoning":null}}`,
		`{"\"q\"":"\u00e9","n":12345678901234567890,"reasoning":null}`: `{"\"q\"":"\u00e9","n":12345678901234567890}`,
	} {
		out, ok := withoutNull([]byte(in), "reasoning")
		require.True(t, ok, in)
		require.Equal(t, want, string(out))
	}
	for _, in := range []string{`{}`, `{"reasoning":"x"}`, `{"reasoning":{}}`, `{"other":null}`, `[]`, `null`, `"reasoning"`, `{"a":`, `{"a" 1}`, ``} {
		_, ok := withoutNull([]byte(in), "reasoning")
		require.False(t, ok, in)
	}
}

func TestInteger_ReadsWhateverJSONSchemaCallsOne(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]integer{"0": 0, "1": 1, "1.0": 1, "1e2": 100, "120e-1": 12, "9223372036854775807": math.MaxInt64, "9223372036854775808": math.MaxInt64, "1e30": math.MaxInt64} {
		var n integer
		require.NoError(t, json.Unmarshal([]byte(in), &n), in)
		require.Equal(t, want, n, in)
	}
	for _, in := range []string{"1.5", `"1"`, "true", "1e-1"} {
		var n integer
		require.Error(t, json.Unmarshal([]byte(in), &n), in)
	}
}

func TestObject_WritesMembersInOrder(t *testing.T) {
	t.Parallel()
	var o object
	o.text("b", "<\"\n>")
	o.optional("gone", "")
	o.optional("c", "x")
	o.raw("a", json.RawMessage(`[1.0, 2]`))
	require.Equal(t, `{"b":"<\"\n>","c":"x","a":[1.0, 2]}`, string(o.close()))
}

func TestRefusal_RendersTheOutcomeDocument(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refusal Refusal
		want    string
	}{
		"invalid, no details": {
			Refusal{Status: Invalid, Code: fault.EnvelopeInvalid, Message: "m"},
			`{"status":"invalid","reason":"envelope_invalid: m","details":[]}`,
		},
		"invalid, details": {
			Refusal{Status: Invalid, Code: fault.EnvelopeInvalid, Details: []Detail{{InstancePath: "/a", SchemaPath: "/b", Keyword: "c"}, {Keyword: "d", Message: "e"}}},
			`{"status":"invalid","reason":"envelope_invalid","details":[{"instancePath":"/a","schemaPath":"/b","keyword":"c"},{"instancePath":"","schemaPath":"","keyword":"d","message":"e"}]}`,
		},
		"gated": {
			Refusal{Status: Gated, Code: fault.UnknownEnvelopeKind, RefusedType: "x", AllowedKinds: []string{"error"}, Mode: FailNode},
			`{"status":"gated","reason":"unknown_envelope_kind","allowedKinds":["error"],"gate":{"refusedType":"x","acceptedTypes":["error"],"refusalMode":"fail-node"}}`,
		},
		"breached": {
			Refusal{Status: Breached, Code: fault.CapBreached, Message: "m", CapKind: "schema", Limit: 1, Observed: 2},
			`{"status":"breached","reason":"cap_breached: m","capKind":"schema"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := json.Marshal(&tc.refusal)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(b))
			require.Equal(t, tc.refusal.Status, StatusOf(b))
		})
	}
	require.Empty(t, StatusOf([]byte(`[]`)))
}

func TestAcceptance_ListsNoEventsAsAnEmptyList(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(NewAcceptance("e", wire.Untrusted, nil))
	require.NoError(t, err)
	require.Equal(t, `{"status":"accepted","recordedEventIds":[],"envelopeId":"e","normalizedMeta":{"contentTrust":"untrusted"}}`, string(b))
}

func TestStampOf_ReadsOnlyWhatAnAcceptedEnvelopeWrote(t *testing.T) {
	t.Parallel()
	good := map[wire.EventType]string{
		wire.EventArtifactCreated:        `{"artifactId":"e","artifactType":"k","payload":{}}`,
		wire.EventLogAppended:            `{"fields":{"envelopeType":"k","envelopeId":"e","outcome":"accepted","payload":{}}}`,
		wire.EventClarificationRequested: `{"envelope":{"envelopeType":"k","envelopeId":"e","outcome":"accepted","payload":{}}}`,
	}
	for typ, payload := range good {
		s, ok := stampOf(wire.Event{Type: typ, Payload: json.RawMessage(payload)})
		require.True(t, ok, typ)
		require.Equal(t, stamp{EnvelopeType: "k", EnvelopeID: "e", Outcome: Accepted, Payload: json.RawMessage(`{}`)}, s)
	}
	bad := map[wire.EventType][]string{
		wire.EventArtifactCreated:        {`{}`, `[]`, `{"artifactId":"e","artifactType":"k"}`, `{"artifactId":"","artifactType":"k","payload":1}`},
		wire.EventLogAppended:            {`{}`, `{"fields":7}`, `{"fields":{"envelopeType":"k","envelopeId":"e","payload":{}}}`, `{"fields":{"envelopeType":"k","envelopeId":"e","outcome":"discarded","payload":{}}}`},
		wire.EventClarificationRequested: {`{"questions":[]}`, `{"envelope":"x"}`},
		wire.EventNodeFailed:             {good[wire.EventLogAppended]},
	}
	for typ, payloads := range bad {
		for _, payload := range payloads {
			_, ok := stampOf(wire.Event{Type: typ, Payload: json.RawMessage(payload)})
			require.False(t, ok, "%s %s", typ, payload)
		}
	}
}

func TestOrder_NamesEveryStepOnce(t *testing.T) {
	t.Parallel()
	var names []string
	for _, s := range order() {
		names = append(names, s.name)
	}
	require.Equal(t, []string{
		"capability", "shape", "kind", "version", "payload", "contract", "limits", "redact", "trust", "approval", "dedup", "asset", "route", "record",
	}, names)
}

func TestEnvelopeSchema_Compiles(t *testing.T) {
	t.Parallel()
	require.NotNil(t, envelopeSchema())
}
