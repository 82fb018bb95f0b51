package create_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/node"
)

var forkSource = subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run_1"}

// recorded appends a run with events; the last one may end it.
func recorded(t *testing.T, r rig, kind subject.Kind, rec wire.RunRecord, events int) {
	t.Helper()
	recordedAs(t, r, kind, rec, slices.Repeat([]wire.EventType{wire.EventLogAppended}, events))
}

// recordedAs appends a run with events of these types.
func recordedAs(t *testing.T, r rig, kind subject.Kind, rec wire.RunRecord, types []wire.EventType) {
	t.Helper()
	rec.RunID, rec.WorkflowID, rec.Owner = "run_1", "wf", wire.Owner{Tenant: "acme", Principal: "key_0"}
	body, err := json.Marshal(&rec)
	require.NoError(t, err)
	first := frame.NewStart(forkSource, body)
	if rec.Opened {
		first = frame.NewOpen(forkSource, body)
	}
	if first.Pos, err = r.log.Append(t.Context(), first, 0); err != nil {
		require.NoError(t, err)
	}
	var list []wire.Event
	for i, typ := range types {
		list = append(list, wire.Draft{Type: typ}.Place("run_1", i, time.UnixMilli(0)))
	}
	_, err = r.log.Append(t.Context(), frame.New(forkSource, kind, first.Head(), list), first.Pos)
	require.NoError(t, err)
}

func forkRequest(mode wire.ForkMode, from int) create.Fork {
	return create.Fork{Tenant: "acme", SourceRunID: "run_1", RunID: "run_2", Mode: mode, FromSeq: from}
}

// A replay has its source's owner, notifies no callback and has no credentials.
func TestFork_AReplayIsItsSources(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	recorded(t, r, subject.End, wire.RunRecord{
		WorkflowDigest: "sha256:gone",
		Inputs:         map[string]json.RawMessage{"a": json.RawMessage(`1`)},
		Tags:           []string{"t"},
		Transport:      "rest",
		CallbackURL:    "https://example.org/x",
		CredentialRef:  "main",
		Traceparent:    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Parent:         &wire.Parent{RunID: "run_0"},
		ScopeID:        "s",
	}, 4)
	got, err := r.Fork(t.Context(), forkRequest(wire.ForkReplay, 3))
	require.NoError(t, err)
	require.Equal(t, "run_2", got.RunID)
	first, err := r.log.First(t.Context(), subject.Run{Tenant: "acme", RunID: "run_2"})
	require.NoError(t, err)
	rec, err := first.Record()
	require.NoError(t, err)
	require.Equal(t, &wire.Fork{
		SourceRunID: "run_1",
		Mode:        wire.ForkReplay,
		FromSeq:     3,
		Head:        4,
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}, rec.Fork)
	require.Equal(t, "key_0", rec.Owner.Principal)
	require.Equal(t, []string{"t"}, rec.Tags)
	require.JSONEq(t, `1`, string(rec.Inputs["a"]))
	require.Empty(t, rec.CallbackURL)
	require.Empty(t, rec.CredentialRef)
	require.Empty(t, rec.Traceparent)
	require.Nil(t, rec.Parent)
	require.True(t, rec.Replays())
}

// OpenWOP host contract §7.1: a replay follows a cancelled run up to its cancellation, unless it begins
// within it. A branch has the events before it begins in any case.
func TestFork_AReplayOmitsACancellation(t *testing.T) {
	t.Parallel()
	def, problems := workflow.Parse([]byte(documents[0]))
	require.Empty(t, problems)
	running := []wire.EventType{wire.EventRunStarted, wire.EventNodeStarted, wire.EventNodeStarted}
	both := append(slices.Clone(running), wire.EventNodeCancelled, wire.EventNodeCancelled, wire.EventRunCancelled)
	for name, tc := range map[string]struct {
		types []wire.EventType
		mode  wire.ForkMode
		from  int
		head  int
	}{
		"from the start":                {both, wire.ForkReplay, 0, 3},
		"from the cancellation":         {both, wire.ForkReplay, 3, 3},
		"within the cancellation":       {both, wire.ForkReplay, 4, 6},
		"its last event":                {both, wire.ForkReplay, 5, 6},
		"a branch":                      {both, wire.ForkBranch, 0, 6},
		"no node was running":           {[]wire.EventType{wire.EventRunStarted, wire.EventRunCancelled}, wire.ForkReplay, 1, 1},
		"a run that has only ended":     {[]wire.EventType{wire.EventRunCancelled}, wire.ForkReplay, 0, 0},
		"nodes ended with a failed run": {append(slices.Clone(running), wire.EventNodeFailed, wire.EventNodeCancelled, wire.EventRunFailed), wire.ForkReplay, 0, 6},
	} {
		r := newRig(t)
		recordedAs(t, r, subject.End, wire.RunRecord{WorkflowDigest: def.Digest()}, tc.types)
		_, err := r.Fork(t.Context(), forkRequest(tc.mode, tc.from))
		require.NoError(t, err, name)
		first, err := r.log.First(t.Context(), subject.Run{Tenant: "acme", RunID: "run_2"})
		require.NoError(t, err, name)
		rec, err := first.Record()
		require.NoError(t, err, name)
		require.Equal(t, tc.head, rec.Fork.Head, name)
		require.Equal(t, tc.from, rec.Fork.FromSeq, name)
	}
}

func TestFork_RefusesWhatCannotBeForked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind   subject.Kind
		rec    wire.RunRecord
		from   int
		mode   wire.ForkMode
		tenant string
		want   fault.Code
	}{
		"the head of a live run":   {subject.Step, wire.RunRecord{}, 3, wire.ForkReplay, "acme", ""},
		"beyond it":                {subject.Step, wire.RunRecord{}, 4, wire.ForkReplay, "acme", fault.ForkInvalidSeq},
		"the last event of an end": {subject.End, wire.RunRecord{}, 2, wire.ForkReplay, "acme", ""},
		"behind an end":            {subject.End, wire.RunRecord{}, 3, wire.ForkReplay, "acme", fault.ForkInvalidSeq},
		"a run from outside": {
			subject.Step,
			wire.RunRecord{Opened: true},
			0, wire.ForkReplay, "acme", fault.Conflict,
		},
		"a branch of a masked run": {
			subject.End,
			wire.RunRecord{Masking: "masked"},
			0, wire.ForkBranch, "acme", fault.Conflict,
		},
		"another tenant's": {subject.Step, wire.RunRecord{}, 0, wire.ForkReplay, "beta", fault.RunNotFound},
		"a branch without a document": {
			subject.Step,
			wire.RunRecord{WorkflowDigest: "sha256:gone"},
			0, wire.ForkBranch, "acme", fault.WorkflowNotFound,
		},
	} {
		r := newRig(t)
		recorded(t, r, tc.kind, tc.rec, 3)
		req := forkRequest(tc.mode, tc.from)
		req.Tenant = tc.tenant
		_, err := r.Fork(t.Context(), req)
		require.Equal(t, tc.want, fault.CodeOf(err), name)
	}
}

// OpenWOP host contract §3.2: a run that a later engine started or continued cannot be forked by an
// earlier one.
func TestFork_RefusesARunOfALaterEngine(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]int{
		"it has begun the run":   wire.EngineVersion + 1,
		"it has gone on with it": wire.EngineVersion,
	} {
		for _, mode := range []wire.ForkMode{wire.ForkReplay, wire.ForkBranch} {
			r := newRig(t)
			recorded(t, r, subject.Step, wire.RunRecord{EngineVersion: version}, 3)
			last, err := r.log.Last(t.Context(), forkSource)
			require.NoError(t, err)
			if version == wire.EngineVersion {
				e := wire.Draft{Type: wire.EventLogAppended}.Place("run_1", 3, time.UnixMilli(0))
				e.EngineVersion = "2"
				_, err = r.log.Append(t.Context(), frame.New(forkSource, subject.Step, last.Head(), []wire.Event{e}), last.Pos)
				require.NoError(t, err)
			}
			_, err = r.Fork(t.Context(), forkRequest(mode, 0))
			e, ok := fault.As(err)
			require.True(t, ok, name)
			require.Equal(t, fault.EngineVersionMismatch, e.Code, name)
			require.Equal(t, map[string]any{
				"runId":            "run_1",
				"persistedVersion": wire.EngineVersion + 1,
				"currentVersion":   wire.EngineVersion,
			}, e.Details)
		}
	}
}

// trimmed is a log without the beginning of a run.
type trimmed struct{ runlog.Log }

func (l trimmed) First(context.Context, subject.Run) (*frame.Frame, error) {
	return nil, runlog.ErrNotFound
}

func TestFork_ReportsErasedHistory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	recorded(t, r, subject.End, wire.RunRecord{}, 3)
	s := create.New(create.Deps{Storage: create.Storage{Log: trimmed{r.log}}, Clock: time.Now})
	_, err := s.Fork(t.Context(), forkRequest(wire.ForkReplay, 1))
	e, ok := fault.As(err)
	require.True(t, ok)
	require.Equal(t, fault.RunExpired, e.Code)
	require.Equal(t, map[string]any{"sourceRunId": "run_1", "fromSeq": 1, "boundary": 0}, e.Details)
}

func TestFork_OfAKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	recorded(t, r, subject.End, wire.RunRecord{}, 3)
	req := forkRequest(wire.ForkReplay, 1)
	req.Digest = "one"
	first, err := r.Fork(t.Context(), req)
	require.NoError(t, err)
	require.False(t, first.Replayed)
	again, err := r.Fork(t.Context(), req)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, 3, again.Fork.Head)
	req.Digest = "two"
	_, err = r.Fork(t.Context(), req)
	require.Equal(t, fault.IdempotencyKeyMismatch, fault.CodeOf(err))
}

// OpenWOP host contract §6.3: votes below the quorum belong to a branch's history, although no event
// records them.
func TestFork_ABranchHasTheVotesThatWereCastBefore(t *testing.T) {
	t.Parallel()
	const asked = `{"runId":"run_1","nodeId":"gate","interruptId":"int_1","kind":"approval","key":"k","data":{"actions":["accept"]},"requestedAt":"2026-01-01T00:00:00.000Z"}`
	vote := func(voter string) string {
		return wire.Note{Said: json.RawMessage(`{"interruptId":"int_1","vote":{"voter":"` + voter + `","action":"accept","by":"k","at":"2026-01-01T00:00:00.000Z"}}`)}.JSON()
	}
	for name, tc := range map[string]struct {
		from int
		want []string
	}{
		"before the question":  {1, nil},
		"before the votes":     {2, nil},
		"after them":           {3, []string{"ann", "bob"}},
		"beyond what they did": {4, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			def, problems := workflow.Parse([]byte(gated))
			require.Empty(t, problems)
			body, err := json.Marshal(&wire.RunRecord{
				RunID:          "run_1",
				WorkflowID:     "wf",
				WorkflowDigest: def.Digest(),
				Owner:          wire.Owner{Tenant: "acme"},
			})
			require.NoError(t, err)
			last := frame.NewStart(forkSource, body)
			add := func(f *frame.Frame, after uint64) {
				f.Pos, err = r.log.Append(t.Context(), f, after)
				require.NoError(t, err)
				last = f
			}
			event := func(seq int, typ wire.EventType, payload string) wire.Event {
				return wire.Draft{
					Type:    typ,
					NodeID:  "gate",
					Payload: json.RawMessage(payload),
				}.Place("run_1", seq, time.UnixMilli(0))
			}
			add(last, 0)
			add(frame.New(forkSource, subject.Step, last.Head(), []wire.Event{
				event(0, wire.EventRunStarted, `{}`), event(1, wire.EventInterruptRequested, asked),
				event(2, wire.EventLogAppended, `{}`),
			}), last.Pos)
			for _, voter := range []string{"ann", "bob"} {
				add(frame.New(forkSource, subject.Step, last.Head(), nil).With(vote(voter)), last.Pos)
			}
			add(frame.New(forkSource, subject.Step, last.Head(), []wire.Event{
				event(3, wire.EventInterruptResolved, `{"interruptId":"int_1","resumeValue":{"action":"accept"}}`),
				event(4, wire.EventLogAppended, `{}`),
			}), last.Pos)

			_, err = r.Fork(t.Context(), forkRequest(wire.ForkBranch, tc.from))
			require.NoError(t, err)
			first, err := r.log.First(t.Context(), subject.Run{Tenant: "acme", RunID: "run_2"})
			require.NoError(t, err)
			rec, err := first.Record()
			require.NoError(t, err)
			st := runstate.New(rec)
			for i, e := range []wire.Event{
				event(0, wire.EventRunStarted, `{}`), event(1, wire.EventInterruptRequested, asked),
				event(2, wire.EventLogAppended, `{}`),
			} {
				if i < tc.from {
					st.Apply(e)
				}
			}
			var got []string
			for _, n := range st.Said() {
				got = append(got, n.Vote.Voter)
			}
			require.Equal(t, tc.want, got)
		})
	}
}

// unread is a log that fails if a run is read as a whole.
type unread struct{ *memory.Log }

func (unread) Run(context.Context, subject.Run) ([]*frame.Frame, error) {
	return nil, runlog.ErrUnavailable
}

// The time to accept a fork of a run without gates does not depend on the run's length.
func TestFork_ReadsNoRunInWhichNobodyVotes(t *testing.T) {
	t.Parallel()
	for _, d := range documents[:2] {
		def, problems := workflow.Parse([]byte(d))
		require.Empty(t, problems)
		for _, mode := range []wire.ForkMode{wire.ForkReplay, wire.ForkBranch} {
			r := newRig(t)
			recorded(t, r, subject.Step, wire.RunRecord{WorkflowDigest: def.Digest()}, 3)
			s := create.New(create.Deps{
				Storage: create.Storage{
					Log:         unread{r.log},
					Definitions: shelf{def.ID: {Def: def, Graph: workflow.Compile(def), Digest: def.Digest()}},
				},
				Redaction: create.Redaction{Redactor: r.red},
				Checks:    create.Checks{Types: node.Builtin()},
				Limits:    create.Limits{MaxDuration: time.Hour},
				Clock:     time.Now,
			})
			_, err := s.Fork(t.Context(), forkRequest(mode, 2))
			require.NoError(t, err, mode)
		}
	}
}
