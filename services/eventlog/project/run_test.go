package project_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

// written is a run with its writer and its log.
func written(t *testing.T) (*logtest.Writer, *memory.Log) {
	t.Helper()
	log := memory.New()
	return logtest.Begin(t, log, logtest.Record("run-1")), log
}

// projected applies every frame of the log.
func projected(t *testing.T, log *memory.Log) *project.Run {
	t.Helper()
	frames := log.Frames()
	r, err := project.Begin(frames[0])
	require.NoError(t, err)
	for _, f := range frames[1:] {
		require.NoError(t, r.Apply(f))
	}
	return r
}

func TestRow_FollowsTheRun(t *testing.T) {
	t.Parallel()
	at := func(seq int) string { return wire.FormatTime(logtest.Epoch.Add(time.Duration(seq) * time.Millisecond)) }
	base := store.Run{
		Key: store.Key{Tenant: logtest.Tenant, RunID: "run-1"}, WorkflowID: "flow",
		CreatedAt: wire.FormatTime(logtest.Epoch), Tags: []string{"nightly"},
		Facts: store.Facts{Known: true, Inputs: "topic: tea"},
	}
	took := func(ms int64) *int64 { return &ms }
	for _, tt := range []struct {
		name  string
		write func(w *logtest.Writer)
		want  func(r *store.Run)
		waits string
	}{
		{
			"pending",
			func(*logtest.Writer) {},
			func(r *store.Run) { r.Status, r.Head = wire.StatusPending, -1 },
			`{"for":"dispatcher","since":"2026-03-01T12:00:00.000Z"}`,
		},
		{"running", func(w *logtest.Writer) { w.Step(logtest.RunStarted) }, func(r *store.Run) {
			r.Status, r.Head, r.StartedAt = wire.StatusRunning, 0, at(0)
		}, `{"for":"dispatcher","since":"2026-03-01T12:00:00.000Z"}`},
		{"woken without events", func(w *logtest.Writer) { w.Step(logtest.RunStarted); w.Wake() }, func(r *store.Run) {
			r.Status, r.Head, r.StartedAt = wire.StatusRunning, 0, at(0)
		}, `{"for":"dispatcher","since":"2026-03-01T12:00:00.000Z"}`},
		{"paused", func(w *logtest.Writer) { w.Step(logtest.RunStarted, logtest.RunPaused) }, func(r *store.Run) {
			r.Status, r.Head, r.StartedAt = wire.StatusPaused, 1, at(0)
			r.Facts.WaitingSince = at(1)
		}, `{"for":"resume","since":"2026-03-01T12:00:00.001Z"}`},
		{"failed", func(w *logtest.Writer) { w.End(logtest.RunStarted, logtest.RunFailed) }, func(r *store.Run) {
			r.Status, r.Head, r.StartedAt, r.CompletedAt, r.ErrorCode = wire.StatusFailed, 1, at(0), at(1), "run_timeout"
			r.Facts.DurationMs = took(1)
		}, ``},
		{"waiting for a retry", func(w *logtest.Writer) {
			w.Step(append([]wire.Draft{logtest.RunStarted}, logtest.Retry("n1", time.Minute)...)...)
		}, func(r *store.Run) {
			r.Status, r.Head, r.StartedAt = wire.StatusRunning, 2, at(0)
			r.DueMs = logtest.Epoch.Add(2*time.Millisecond + time.Minute).UnixMilli()
			r.Facts.LastNode = "n1"
		}, `{"for":"timer","nodeId":"n1","attempt":2,"since":"2026-03-01T12:00:00.002Z","dueAt":"2026-03-01T12:01:00.002Z"}`},
		{"asking", func(w *logtest.Writer) {
			w.Step(logtest.RunStarted, wire.Draft{
				Type:    wire.EventInterruptRequested,
				NodeID:  "n1",
				Payload: json.RawMessage(`{"kind":"custom","nodeId":"n1","interruptId":"i","data":{}}`),
			})
		}, func(r *store.Run) {
			r.Status, r.Head, r.StartedAt, r.Asks = wire.StatusWaitingExternal, 1, at(0), 1
			r.Facts.LastNode = "n1"
		}, `{"for":"external","nodeId":"n1","questions":1}`},
		{"ended while a timer was set", func(w *logtest.Writer) {
			w.Step(append([]wire.Draft{logtest.RunStarted}, logtest.Retry("n1", time.Minute)...)...)
			w.End(logtest.RunCompleted)
		}, func(r *store.Run) {
			r.Status, r.Head, r.StartedAt, r.CompletedAt = wire.StatusCompleted, 3, at(0), at(3)
			r.Facts.LastNode, r.Facts.DurationMs = "n1", took(3)
		}, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, log := written(t)
			tt.write(w)
			want := base
			want.Pos, want.Hash = w.Head.Pos, w.Head.Hash
			want.Waits = tt.waits
			tt.want(&want)
			want.LastEventAt = at(max(0, want.Head))
			require.Equal(t, want, projected(t, log).Row())
		})
	}
}

func TestRow_WritesCreationInOneLayout(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"2026-03-01T14:00:00+02:00": "2026-03-01T12:00:00.000Z",
		"2026-03-01T12:00:00.5Z":    "2026-03-01T12:00:00.500Z",
		"yesterday":                 "2026-04-01T00:00:00.000Z", // when the log took it
	} {
		rec := logtest.Record("run-1")
		rec.CreatedAt = given
		body, err := json.Marshal(rec)
		require.NoError(t, err)
		f := frame.NewStart(subject.Run{Tenant: logtest.Tenant, WorkflowID: "flow", RunID: "run-1"}, body)
		f.Pos, f.Stored = 1, time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
		r, err := project.Begin(f)
		require.NoError(t, err)
		require.Equal(t, want, r.Row().CreatedAt)
	}
}

func TestApply_IgnoresWhatItHasSeen(t *testing.T) {
	t.Parallel()
	w, log := written(t)
	w.Step(logtest.RunStarted)
	w.Step(logtest.Node("n1")...)
	r := projected(t, log)
	row := r.Row()
	for _, f := range log.Frames() {
		require.ErrorIs(t, r.Apply(f), project.ErrSeen)
	}
	require.Equal(t, row, r.Row())
	require.Equal(t, w.Snapshot(), string(r.State.SnapshotJSON()))
}

// after makes an unstored frame that follows the writer's head.
func after(w *logtest.Writer, edit func(f *frame.Frame)) *frame.Frame {
	f := w.Frame(subject.Step, logtest.Log("one"), logtest.Log("two"))
	f.Pos = w.Head.Pos + 5
	edit(f)
	return f
}

func TestApply_RefusesStrays(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(f *frame.Frame){
		"second start":   func(f *frame.Frame) { f.Kind = subject.Start },
		"other workflow": func(f *frame.Frame) { f.Run.WorkflowID = "other" },
	} {
		w, log := written(t)
		w.Step(logtest.RunStarted)
		r := projected(t, log)
		row := r.Row()
		require.ErrorIs(t, r.Apply(after(w, edit)), project.ErrStray, name)
		require.Equal(t, row, r.Row(), "%s leaves the run alone", name)
	}

	w, log := written(t)
	w.End(logtest.RunStarted, logtest.RunCompleted)
	r := projected(t, log)
	require.ErrorIs(t, r.Apply(after(w, func(*frame.Frame) {})), project.ErrStray, "behind the end")
	require.Equal(t, wire.StatusCompleted, r.Row().Status)
}

func TestApply_MarksABrokenChain(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(f *frame.Frame){
		"missing events":      func(f *frame.Frame) { f.First++; f.Last++ },
		"other predecessor":   func(f *frame.Frame) { f.Prev = strings.Repeat("0", 64) },
		"unreadable body":     func(f *frame.Frame) { f.Body = []byte(`[{]`) },
		"too few events":      func(f *frame.Frame) { f.Body = []byte(`[]`) },
		"too few types":       func(f *frame.Frame) { f.Types = f.Types[:1] },
		"other types":         func(f *frame.Frame) { f.Types = []wire.EventType{"run.started", "log.appended"} },
		"events of other run": func(f *frame.Frame) { f.Body = []byte(strings.ReplaceAll(string(f.Body), "run-1", "run-2")) },
		"wrong sequences": func(f *frame.Frame) {
			f.Body = []byte(strings.ReplaceAll(string(f.Body), `"sequence":1`, `"sequence":7`))
		},
	} {
		w, log := written(t)
		w.Step(append([]wire.Draft{logtest.RunStarted}, logtest.Retry("n1", time.Minute)...)...)
		w.Step(logtest.Log("last good one"))
		r := projected(t, log)
		before := r.Row()
		bad := after(w, edit)
		if name == "wrong sequences" {
			bad.Body = []byte(strings.Replace(string(bad.Body), fmt.Sprintf(`"sequence":%d`, bad.First), `"sequence":99`, 1))
		}
		require.ErrorIs(t, r.Apply(bad), project.ErrBroken, name)

		row := r.Row()
		require.Contains(t, row.Damage, fmt.Sprint(bad.Pos), "%s: it says where", name)
		require.Zero(t, row.DueMs, "%s: a damaged run has no timer", name)
		require.Equal(t, "log_damaged", row.ErrorCode, "%s: lists agree with reads", name)
		row.Damage, row.ErrorCode, row.DueMs, row.Waits = "", "", before.DueMs, before.Waits
		require.Equal(t, before, row, "%s: the state up to the damage stays", name)

		next := after(w, func(f *frame.Frame) { f.Pos++ })
		require.ErrorIs(t, r.Apply(next), project.ErrBroken, "%s: and nothing follows", name)
	}
}

func TestBegin_WithoutARecordMarksTheRun(t *testing.T) {
	t.Parallel()
	run := subject.Run{Tenant: logtest.Tenant, WorkflowID: "flow", RunID: "run-1"}
	other, err := json.Marshal(logtest.Record("run-2"))
	require.NoError(t, err)
	step := frame.New(run, subject.Step, frame.Head{Next: 3}, nil)
	for name, f := range map[string]*frame.Frame{
		"step":         step,
		"garbage":      frame.NewStart(run, []byte(`{"runId":`)),
		"empty record": frame.NewStart(run, []byte(`{}`)),
		"other run":    frame.NewStart(run, other),
	} {
		f.Pos = 4
		r, err := project.Begin(f)
		require.ErrorIs(t, err, project.ErrBroken, name)
		row := r.Row()
		require.Equal(t, store.Key{Tenant: logtest.Tenant, RunID: "run-1"}, row.Key)
		require.Equal(t, -1, row.Head)
		require.Contains(t, row.Damage, "position 4")
	}
}

func TestStored_KeepsRecordAndEvents(t *testing.T) {
	t.Parallel()
	w, log := written(t)
	w.Step(logtest.RunStarted, logtest.Log("m"))
	w.Wake()
	frames := log.Frames()
	require.Equal(t, []store.Frame{{
		Key: project.Key(w.Run()), First: store.RecordFirst, Last: store.RecordFirst, Body: frames[0].Body,
	}}, project.Stored(frames[0]))
	require.Equal(t, []store.Frame{{
		Key: project.Key(w.Run()), First: 0, Last: 1, Types: frames[1].Types, Body: frames[1].Body,
	}}, project.Stored(frames[1]))
	require.Empty(t, project.Stored(frames[2]), "an empty wake holds nothing to read")
}

func TestStored_CutsLargeFrames(t *testing.T) {
	t.Parallel()
	for _, events := range []int{
		project.PartEvents,
		project.PartEvents + 1,
		5*project.PartEvents - 1,
		5 * project.PartEvents,
	} {
		w, log := written(t)
		w.Step(logtest.RunStarted)
		drafts := make([]wire.Draft, events)
		for i := range drafts {
			drafts[i] = logtest.Log(fmt.Sprintf(`a line, with "quotes", [brackets] and {braces}: %d`, i))
		}
		w.Step(drafts...)
		large := log.Frames()[2]
		next, docs, types := large.First, []json.RawMessage(nil), []wire.EventType(nil)
		for _, part := range project.Stored(large) {
			require.Equal(t, next, part.First)
			in, err := wire.SplitArray(part.Body)
			require.NoError(t, err)
			require.Len(t, in, part.Last+1-part.First)
			require.Len(t, part.Types, len(in))
			require.LessOrEqual(t, len(in), project.PartEvents)
			next, docs, types = part.Last+1, append(docs, in...), append(types, part.Types...)
		}
		require.Equal(t, large.Last+1, next)
		require.Equal(t, large.Types, types)
		require.Equal(t, string(large.Body), string(wire.JoinArray(docs)))
	}
}

func FuzzApply_NeverPanicsAndNeverMovesOnBrokenFrames(f *testing.F) {
	f.Add([]byte(`[{"runId":"run-1","sequence":0,"type":"run.started","payload":{}}]`), 0, 0, "run.started")
	f.Add([]byte(`[]`), 0, -1, "")
	f.Add([]byte(`[{"runId":"run-1","sequence":0,"type":"node.retried","payload":{"delayMs":-9}}]`), 0, 0, "node.retried")
	f.Add([]byte(`[null]`), 0, 0, "")
	f.Fuzz(func(t *testing.T, body []byte, first, last int, types string) {
		run := subject.Run{Tenant: "acme", WorkflowID: "flow", RunID: "run-1"}
		r := &project.Run{ID: run, State: runstate.New(logtest.Record("run-1")), Head: frame.Head{Pos: 1, Hash: "h"}}
		fr := &frame.Frame{Run: run, Kind: subject.Step, First: first, Last: last, Prev: "h", Hash: "i", Body: body, Pos: 2}
		for typ := range strings.SplitSeq(types, ",") {
			fr.Types = append(fr.Types, wire.EventType(typ))
		}
		if err := r.Apply(fr); err != nil {
			require.Equal(t, -1, r.Row().Head)
			require.NotEmpty(t, r.Damage)
			return
		}
		require.Equal(t, last, r.Row().Head)
		_ = r.State.SnapshotJSON()
	})
}

func TestApply_AFrameOnWhichTheFoldPanicsBreaksItsRunOnly(t *testing.T) {
	t.Parallel()
	w, log := written(t)
	w.Step(logtest.RunStarted)
	frames := log.Frames()
	r, err := project.Begin(frames[0])
	require.NoError(t, err)
	r.State = nil
	require.ErrorIs(t, r.Apply(frames[1]), project.ErrBroken)
	require.Contains(t, r.Damage, "internal panic in the fold")
	require.ErrorIs(t, r.Apply(frames[1]), project.ErrBroken)
}
