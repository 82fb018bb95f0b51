package runcheck_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runcheck"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

func draft(t wire.EventType, node, payload string) wire.Draft {
	return wire.Draft{Type: t, NodeID: node, Payload: json.RawMessage(payload)}
}

// whole returns the events of a run with a retry, an envelope and a pause.
func whole() []wire.Event {
	drafts := []wire.Draft{
		draft(wire.EventRunStarted, "", `{"workflowId":"w"}`),
		draft(wire.EventNodeStarted, "a", `{"nodeId":"a","typeId":"t","attempt":0}`),
		draft(wire.EventNodeRetried, "a", `{"nodeId":"a","attempt":1,"lastError":{"code":"x","message":"y"}}`),
		draft(wire.EventNodeStarted, "a", `{"nodeId":"a","typeId":"t","attempt":1}`),
		draft(wire.EventEnvelopeRetryAttempted, "a", `{"nodeId":"a","attempt":2,"reason":"schema-violation"}`),
		draft(wire.EventEnvelopeRetryAttempted, "a", `{"nodeId":"a","attempt":3,"reason":"schema-violation"}`),
		draft(wire.EventArtifactCreated, "a", `{"artifactId":"e","artifactType":"k","nodeId":"a","payload":{}}`),
		draft(wire.EventVariableChanged, "a", `{"name":"v","next":{"x":1}}`),
		draft(wire.EventNodeCompleted, "a", `{"nodeId":"a","outputs":{"o":1}}`),
		draft(wire.EventRunPaused, "", `{"drainPolicy":"immediate"}`),
		draft(wire.EventRunResumed, "", `{}`),
		draft(wire.EventRunCompleted, "", `{"outputs":{"o":1}}`),
	}
	drafts[6].CausationID = "corr"
	out := make([]wire.Event, len(drafts))
	for i, d := range drafts {
		out[i] = d.Place("run_1", i, time.Unix(1_700_000_000+int64(i), 0))
	}
	return out
}

func checked(of runcheck.Source, events []wire.Event) *runcheck.Check {
	k := runcheck.New(of)
	for _, e := range events {
		k.Add(e)
	}
	return k
}

// snapshot returns the fold of whole in the form a host serves.
func snapshot(t *testing.T) *runstate.Snapshot {
	t.Helper()
	rec := &wire.RunRecord{RunID: "run_1", WorkflowID: "w", Inputs: map[string]json.RawMessage{"in": json.RawMessage(`1`)}}
	var out runstate.Snapshot
	require.NoError(t, json.Unmarshal(runstate.Fold(rec, whole()).SnapshotJSON(), &out))
	return &out
}

func TestCheck_AcceptsAValidRun(t *testing.T) {
	t.Parallel()
	k := checked(runcheck.Source{}, whole())
	k.Against(snapshot(t))
	require.Empty(t, k.Findings())
	require.Equal(t, len(whole()), k.Events())
	require.Equal(t, wire.StatusCompleted, k.Status())
	for _, r := range runcheck.Rows() {
		require.Empty(t, k.Skipped(r.Rule), r.Rule)
	}
}

// found is a finding in short form.
type found struct {
	rule runcheck.Rule
	seq  int
}

func TestCheck_NamesTheRuleAndTheEvent(t *testing.T) {
	t.Parallel()
	const none = -1
	for name, tc := range map[string]struct {
		change func([]wire.Event) []wire.Event
		want   []found
	}{
		"a gap": {func(e []wire.Event) []wire.Event { return append(e[:6], e[7:]...) }, []found{{runcheck.Sequence, 7}}},
		"a double": {
			func(e []wire.Event) []wire.Event { return append(e[:3:3], e[2:]...) },
			[]found{{runcheck.Document, 2}, {runcheck.Sequence, 2}},
		},
		"the first is missing": {
			func(e []wire.Event) []wire.Event { return e[1:] },
			[]found{{runcheck.Sequence, 1}, {runcheck.Start, 1}},
		},
		"two starts": {
			func(e []wire.Event) []wire.Event { e[10].Type = wire.EventRunStarted; return e },
			[]found{{runcheck.Start, 10}, {runcheck.RunStatus, 10}, {runcheck.RunStatus, 11}},
		},
		"after the end": {
			func(e []wire.Event) []wire.Event {
				return append(e, draft(wire.EventLogAppended, "", `{}`).Place("run_1", len(e), time.Unix(1_700_000_100, 0)))
			},
			[]found{{runcheck.End, 12}},
		},
		"another run's": {
			func(e []wire.Event) []wire.Event { e[4].RunID = "run_2"; return e },
			[]found{{runcheck.Document, 4}},
		},
		"an id twice": {
			func(e []wire.Event) []wire.Event { e[4].EventID = e[3].EventID; return e },
			[]found{{runcheck.Document, 4}},
		},
		"no payload": {
			func(e []wire.Event) []wire.Event { e[10].Payload = json.RawMessage(`null`); return e },
			[]found{{runcheck.Document, 10}},
		},
		"no time": {
			func(e []wire.Event) []wire.Event { e[10].Timestamp = "soon"; return e },
			[]found{{runcheck.Document, 10}},
		},
		"a second pause": {
			func(e []wire.Event) []wire.Event { e[10].Type = wire.EventRunPaused; return e },
			[]found{{runcheck.RunStatus, 10}, {runcheck.RunStatus, 11}},
		},
		"a node that ends twice": {
			func(e []wire.Event) []wire.Event { e[7] = e[8]; e[7].Sequence, e[7].EventID = 7, "x"; return e },
			[]found{{runcheck.NodeStatus, 8}},
		},
		"a missing attempt": {
			func(e []wire.Event) []wire.Event { e[3].Payload = json.RawMessage(`{"attempt":2}`); return e },
			[]found{{runcheck.Attempt, 3}},
		},
		"a missing attempt of an emission": {
			func(e []wire.Event) []wire.Event { e[5].Payload = json.RawMessage(`{"attempt":5}`); return e },
			[]found{{runcheck.Attempt, 5}},
		},
		"an envelope twice": {
			func(e []wire.Event) []wire.Event { e[7] = e[6]; e[7].Sequence, e[7].EventID = 7, "x"; return e },
			[]found{{runcheck.Envelope, 7}},
		},
		"a cause that comes later": {
			func(e []wire.Event) []wire.Event { e[4].CausationID = e[8].EventID; return e },
			[]found{{runcheck.Cause, 4}},
		},
		"its own cause": {
			func(e []wire.Event) []wire.Event { e[4].CausationID = e[4].EventID; return e },
			[]found{{runcheck.Cause, 4}},
		},
		"a cause that came before": {func(e []wire.Event) []wire.Event { e[4].CausationID = e[1].EventID; return e }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []found
			for _, f := range checked(runcheck.Source{}, tc.change(whole())).Findings() {
				at := none
				if f.Sequence != nil {
					at = *f.Sequence
				}
				require.NotEmpty(t, f.Message)
				got = append(got, found{f.Rule, at})
			}
			require.Equal(t, tc.want, got)
		})
	}
}

func TestAgainst_NamesDifferingMembers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*runstate.Snapshot)
		want   string
	}{
		"status":   {func(s *runstate.Snapshot) { s.Status = wire.StatusFailed }, "status: "},
		"started":  {func(s *runstate.Snapshot) { s.StartedAt = "" }, "startedAt: "},
		"outputs":  {func(s *runstate.Snapshot) { s.Outputs = json.RawMessage(`{"o":2}`) }, "outputs: "},
		"variable": {func(s *runstate.Snapshot) { delete(s.Variables, "v") }, "variables.v: "},
		"node":     {func(s *runstate.Snapshot) { delete(s.NodeStates, "a") }, "nodeStates.a: "},
		"added node": {
			func(s *runstate.Snapshot) { s.NodeStates["b"] = runstate.NodeState{Status: "running"} },
			"nodeStates.b: ",
		},
		"attempts": {
			func(s *runstate.Snapshot) { n := s.NodeStates["a"]; n.Attempts = 7; s.NodeStates["a"] = n },
			"nodeStates.a.attempts: ",
		},
		"error": {func(s *runstate.Snapshot) { s.Error = &runstate.SnapshotError{Code: "x"} }, "error: "},
		"run":   {func(s *runstate.Snapshot) { s.RunID = "run_2" }, "it belongs to run run_2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshot(t)
			tc.change(s)
			k := checked(runcheck.Source{}, whole())
			k.Against(s)
			require.Len(t, k.Findings(), 1)
			require.Equal(t, runcheck.Snapshot, k.Findings()[0].Rule)
			require.Contains(t, k.Findings()[0].Message, tc.want)
		})
	}
}

// Equal documents in another form are equal, and inputs are in no event.
func TestAgainst_ComparesDocumentsByValue(t *testing.T) {
	t.Parallel()
	s := snapshot(t)
	s.Outputs, s.Variables["v"] = json.RawMessage(`{ "o": 1 }`), json.RawMessage("{\n\"x\":1}")
	s.Variables["other"] = json.RawMessage(`2`)
	k := checked(runcheck.Source{}, whole())
	k.Against(s)
	require.Empty(t, k.Findings())
}

func TestAgainst_FindsAMissingEnd(t *testing.T) {
	t.Parallel()
	k := checked(runcheck.Source{}, whole()[:11])
	k.Against(snapshot(t))
	require.NotEmpty(t, k.Findings())
	require.Equal(t, runcheck.End, k.Findings()[0].Rule)
}

// A cut bundle has the first events and the last; statuses in between cannot be checked.
func TestCheck_SkipsStatusesOfACutBundle(t *testing.T) {
	t.Parallel()
	events := whole()
	k := checked(runcheck.Source{Trimmed: true, Cut: true}, append(events[:4:4], events[11]))
	k.Against(snapshot(t))
	require.Empty(t, k.Findings())
	for _, r := range []runcheck.Rule{runcheck.RunStatus, runcheck.NodeStatus, runcheck.Attempt, runcheck.Snapshot} {
		require.Contains(t, k.Skipped(r), "events 4 to 10")
	}
	require.Empty(t, k.Skipped(runcheck.Sequence))

	k = checked(runcheck.Source{}, append(events[:4:4], events[11]))
	require.Len(t, k.Findings(), 1, "a gap is a finding unless the file is marked as cut")
}

// OpenWOP host contract §3.1: a pending run may be cancelled and then never starts.
func TestCheck_AcceptsARunCancelledBeforeItStarted(t *testing.T) {
	t.Parallel()
	k := checked(runcheck.Source{}, []wire.Event{draft(wire.EventRunCancelled, "", `{}`).Place("run_1", 0, time.Unix(0, 0))})
	k.Against(&runstate.Snapshot{RunID: "run_1", Status: wire.StatusCancelled})
	require.Empty(t, k.Findings())
	require.NotEmpty(t, k.Skipped(runcheck.Snapshot))
}

// A bundle does not record whether a pause cut the running node.
func TestCheck_SkipsStatusesAfterAnUnknownPause(t *testing.T) {
	t.Parallel()
	events := whole()
	events[9].Payload = json.RawMessage(`{}`)
	k := checked(runcheck.Source{Trimmed: true}, events)
	require.NotEmpty(t, k.Skipped(runcheck.NodeStatus))
	require.Empty(t, checked(runcheck.Source{}, events).Skipped(runcheck.NodeStatus))
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`[{"sequence":0,"type":"run.started"},{"sequence":1,"type":"node.started","nodeId":"a","payload":{"attempt":0}}]`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var events []wire.Event
		if json.Unmarshal(doc, &events) != nil {
			return
		}
		k := checked(runcheck.Source{}, events)
		require.Equal(t, len(events), k.Events())
		k.Against(&runstate.Snapshot{})
	})
}
