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

func place(run string, pos uint64) Target {
	return Target{
		Run:  subject.Run{Tenant: "t", WorkflowID: "w", RunID: run},
		Head: frame.Head{Pos: pos, Hash: "h", Next: int(pos)},
	}
}

// caused returns a frame with one event of a causationId.
func caused(pos uint64, cause string) *frame.Frame {
	e := wire.Draft{Type: wire.EventLogAppended, CausationID: cause}.Place("r", 0, time.Time{})
	f := frame.New(subject.Run{Tenant: "t", WorkflowID: "w", RunID: "r"}, subject.Step, frame.Head{}, []wire.Event{e})
	f.Pos = pos
	return f
}

func TestIDCache_AnswersAtOneHeadOnly(t *testing.T) {
	t.Parallel()
	s := newIDCache(8)
	at := place("r", 3)
	require.False(t, s.isFresh(at, "a"), "the run is not cached")
	require.NoError(t, s.put(at, []*frame.Frame{caused(1, "a"), caused(2, ""), caused(3, "b")}))

	require.False(t, s.isFresh(at, "a"))
	require.False(t, s.isFresh(at, "b"))
	require.True(t, s.isFresh(at, "c"))
	require.False(t, s.isFresh(place("r", 2), "c"), "another head")
	require.False(t, s.isFresh(place("r", 4), "c"), "another head")
	require.False(t, s.isFresh(place("other", 3), "c"), "another run")
}

func TestIDCache_AdvanceMovesTheHead(t *testing.T) {
	t.Parallel()
	s := newIDCache(8)
	require.NoError(t, s.put(place("r", 3), nil))
	next := place("r", 4)
	s.advance(place("r", 3), next.Head, "a")
	require.False(t, s.isFresh(place("r", 3), "b"))
	require.True(t, s.isFresh(next, "b"))
	require.False(t, s.isFresh(next, "a"))

	s.advance(place("r", 9), place("r", 10).Head, "b")
	require.False(t, s.isFresh(next, "b"), "an append at another head drops the run")
	s.advance(place("unknown", 1), next.Head, "a")
	require.False(t, s.isFresh(Target{Run: place("unknown", 1).Run, Head: next.Head}, "b"))
}

func TestIDCache_EvictsTheLeastRecentlyUsedRun(t *testing.T) {
	t.Parallel()
	s := newIDCache(2)
	for _, run := range []string{"a", "b"} {
		require.NoError(t, s.put(place(run, 1), nil))
	}
	s.advance(place("a", 1), place("a", 2).Head, "x") // a is used again
	require.NoError(t, s.put(place("c", 1), nil))
	require.True(t, s.isFresh(place("a", 2), "y"))
	require.False(t, s.isFresh(place("b", 1), "y"))
	require.True(t, s.isFresh(place("c", 1), "y"))
	require.Equal(t, 2, s.runs.Len())

	require.NoError(t, s.put(place("c", 5), nil))
	require.Equal(t, 2, s.runs.Len(), "one entry per run")
}

func TestIDCache_StaleRunHasNoAnswerUntilExtended(t *testing.T) {
	t.Parallel()
	s := newIDCache(2)
	require.NoError(t, s.put(place("r", 1), nil))
	s.markStale(place("r", 1).Run)
	require.False(t, s.isFresh(place("r", 1), "a"))
	_, current, ok := s.runInfo(place("r", 1).Run)
	require.True(t, ok)
	require.False(t, current)

	f := caused(2, "a")
	require.NoError(t, s.extend(place("r", 1).Run, place("r", 1).Head, []*frame.Frame{f}))
	now, current, _ := s.runInfo(place("r", 1).Run)
	require.True(t, current)
	require.Equal(t, f.Head(), now.Head)
	require.True(t, s.contains(place("r", 1).Run, "a"))
	require.True(t, s.isFresh(Target{Run: place("r", 1).Run, Head: f.Head()}, "b"))

	require.NoError(t, s.extend(place("r", 1).Run, place("r", 1).Head, nil))
	_, _, ok = s.runInfo(place("r", 1).Run)
	require.False(t, ok, "an extension from an old head drops the run")
	s.markStale(place("r", 1).Run)
	require.NoError(t, s.extend(place("r", 1).Run, place("r", 1).Head, nil))
}

func TestIDCache_DoesNotHoldRunsWithManyIDs(t *testing.T) {
	t.Parallel()
	s := newIDCache(2)
	var frames []*frame.Frame
	for i := range maxCachedIDs + 1 {
		frames = append(frames, caused(uint64(i+1), fmt.Sprint(i)))
	}
	require.NoError(t, s.put(place("r", 1), frames))
	require.Zero(t, s.runs.Len())
	require.NoError(t, s.put(place("r", 1), frames[:maxCachedIDs]))
	require.Equal(t, 1, s.runs.Len())
	s.advance(place("r", 1), place("r", 2).Head, "one more")
	require.Zero(t, s.runs.Len())
}

func TestIDCache_ReportsADamagedFrame(t *testing.T) {
	t.Parallel()
	f := caused(1, "a")
	f.Body = f.Body[:len(f.Body)-1]
	require.Error(t, newIDCache(2).put(place("r", 1), []*frame.Frame{f}))
}

func TestInteger_ReadsEveryIntegerOfJSONSchema(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]integer{
		"0":                   0,
		"1":                   1,
		"1.0":                 1,
		"1e2":                 100,
		"120e-1":              12,
		"9223372036854775807": math.MaxInt64,
		"9223372036854775808": math.MaxInt64,
		"1e30":                math.MaxInt64,
	} {
		var n integer
		require.NoError(t, json.Unmarshal([]byte(in), &n), in)
		require.Equal(t, want, n, in)
	}
	for _, in := range []string{"1.5", `"1"`, "true", "1e-1"} {
		var n integer
		require.Error(t, json.Unmarshal([]byte(in), &n), in)
	}
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
			Refusal{
				Status:  Invalid,
				Code:    fault.EnvelopeInvalid,
				Details: []Detail{{InstancePath: "/a", SchemaPath: "/b", Keyword: "c"}, {Keyword: "d", Message: "e"}},
			},
			`{"status":"invalid","reason":"envelope_invalid","details":[{"instancePath":"/a","schemaPath":"/b","keyword":"c"},{"instancePath":"","schemaPath":"","keyword":"d","message":"e"}]}`,
		},
		"gated": {
			Refusal{
				Status:       Gated,
				Code:         fault.UnknownEnvelopeKind,
				RefusedType:  "x",
				AllowedKinds: []string{"error"},
				Mode:         FailNode,
			},
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

func TestParseRecorded_ReadsOnlyEventsOfAcceptedEnvelopes(t *testing.T) {
	t.Parallel()
	good := map[wire.EventType]string{
		wire.EventArtifactCreated:        `{"artifactId":"e","artifactType":"k","payload":{}}`,
		wire.EventLogAppended:            `{"fields":{"envelopeType":"k","envelopeId":"e","outcome":"accepted","payload":{}}}`,
		wire.EventClarificationRequested: `{"envelope":{"envelopeType":"k","envelopeId":"e","outcome":"accepted","payload":{}}}`,
	}
	for typ, payload := range good {
		s, ok := parseRecorded(wire.Event{Type: typ, Payload: json.RawMessage(payload)})
		require.True(t, ok, typ)
		require.Equal(t, recordedEnvelope{
			EnvelopeType: "k",
			EnvelopeID:   "e",
			Outcome:      Accepted,
			Payload:      json.RawMessage(`{}`),
		}, s)
	}
	bad := map[wire.EventType][]string{
		wire.EventArtifactCreated: {
			`{}`, `[]`, `{"artifactId":"e","artifactType":"k"}`,
			`{"artifactId":"","artifactType":"k","payload":1}`,
		},
		wire.EventLogAppended: {
			`{}`, `{"fields":7}`, `{"fields":{"envelopeType":"k","envelopeId":"e","payload":{}}}`,
			`{"fields":{"envelopeType":"k","envelopeId":"e","outcome":"discarded","payload":{}}}`,
		},
		wire.EventClarificationRequested: {`{"questions":[]}`, `{"envelope":"x"}`},
		wire.EventNodeFailed:             {good[wire.EventLogAppended]},
	}
	for typ, payloads := range bad {
		for _, payload := range payloads {
			_, ok := parseRecorded(wire.Event{Type: typ, Payload: json.RawMessage(payload)})
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
		"capability", "shape", "kind", "version", "payload", "contract", "limits", "redact", "trust",
		"approval", "dedup", "asset", "route", "record",
	}, names)
}

func TestEnvelopeSchema_Compiles(t *testing.T) {
	t.Parallel()
	require.NotNil(t, envelopeSchema())
}
