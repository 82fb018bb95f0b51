// Package logtest writes runs to a run log, for tests of the read model. It keeps what it wrote, so
// that tests can compare.
package logtest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Tenant is the default owner of the runs.
const Tenant = "acme"

// Epoch is the time of the first event of every run; each further event is a millisecond later.
var Epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Writer appends one run's frames.
type Writer struct {
	t    testing.TB
	log  runlog.Appender
	Head frame.Head
	// Record is the run's record, Events its events so far.
	Record *wire.RunRecord
	Events []wire.Event
}

// Record returns the record of a run of Tenant.
func Record(runID string) *wire.RunRecord {
	return &wire.RunRecord{
		RunID: runID, WorkflowID: "flow", WorkflowDigest: "sha256:00", WorkflowVersion: "1",
		Owner: wire.Owner{Tenant: Tenant}, Tags: []string{"nightly"},
		Inputs:    map[string]json.RawMessage{"topic": json.RawMessage(`"tea"`)},
		CreatedAt: wire.FormatTime(Epoch), EngineVersion: wire.EngineVersion,
	}
}

// Begin appends the start frame of a run.
func Begin(t testing.TB, log runlog.Appender, rec *wire.RunRecord) *Writer {
	t.Helper()
	w := &Writer{t: t, log: log, Record: rec}
	body, err := json.Marshal(rec)
	require.NoError(t, err)
	w.Append(frame.NewStart(w.Run(), body))
	return w
}

// Run returns the run's subject.
func (w *Writer) Run() subject.Run {
	return subject.Run{Tenant: w.Record.Owner.Tenant, WorkflowID: w.Record.WorkflowID, RunID: w.Record.RunID}
}

// Frame returns the next frame without appending it.
func (w *Writer) Frame(kind subject.Kind, drafts ...wire.Draft) *frame.Frame {
	return frame.New(w.Run(), kind, w.Head, w.place(drafts))
}

func (w *Writer) place(drafts []wire.Draft) []wire.Event {
	events := make([]wire.Event, len(drafts))
	for i, d := range drafts {
		seq := w.Head.Next + i
		events[i] = d.Place(w.Record.RunID, seq, Epoch.Add(time.Duration(seq)*time.Millisecond))
	}
	return events
}

// Append appends a frame of the run.
func (w *Writer) Append(f *frame.Frame) {
	w.t.Helper()
	pos, err := w.log.Append(context.Background(), f, w.Head.Pos)
	require.NoError(w.t, err)
	events, err := f.Events()
	require.NoError(w.t, err)
	w.Events = append(w.Events, events...)
	stored := *f
	stored.Pos = pos
	w.Head = stored.Head()
}

// Step appends events.
func (w *Writer) Step(drafts ...wire.Draft) {
	w.t.Helper()
	w.Append(w.Frame(subject.Step, drafts...))
}

// Wake appends the end of a wait, with events or without.
func (w *Writer) Wake(drafts ...wire.Draft) {
	w.t.Helper()
	w.Append(w.Frame(subject.Wake, drafts...))
}

// End appends the run's last events.
func (w *Writer) End(drafts ...wire.Draft) {
	w.t.Helper()
	w.Append(w.Frame(subject.End, drafts...))
}

// Snapshot returns the document a reader must see now.
func (w *Writer) Snapshot() string { return w.SnapshotAt(len(w.Events) - 1) }

// SnapshotAt returns the document as of an event; -1 means before the first.
func (w *Writer) SnapshotAt(seq int) string {
	return string(runstate.Fold(w.Record, w.Events[:seq+1]).SnapshotJSON())
}

// Docs returns the documents of the events from a sequence on.
func (w *Writer) Docs(from int) []string {
	var out []string
	for _, e := range w.Events[from:] {
		out = append(out, string(e.AppendJSON(nil)))
	}
	return out
}

// Drafts of the events that tests use.
var (
	RunStarted   = wire.Draft{Type: wire.EventRunStarted, Payload: json.RawMessage(`{"workflowId":"flow"}`)}
	RunPaused    = wire.Draft{Type: wire.EventRunPaused, Payload: json.RawMessage(`{"drainPolicy":"drain"}`)}
	RunResumed   = wire.Draft{Type: wire.EventRunResumed}
	RunCompleted = wire.Draft{Type: wire.EventRunCompleted, Payload: json.RawMessage(`{"outputs":{"answer":42}}`)}
	RunFailed    = wire.Draft{
		Type:    wire.EventRunFailed,
		Payload: json.RawMessage(`{"error":{"code":"run_timeout","message":"too long"}}`),
	}
)

// Log returns a log.appended event with a message.
func Log(message string) wire.Draft {
	return wire.Draft{Type: wire.EventLogAppended, Payload: fmt.Appendf(nil, `{"level":"info","message":%q}`, message)}
}

// Node returns the start and the completion of a node.
func Node(id string) []wire.Draft {
	return []wire.Draft{
		{
			Type:    wire.EventNodeStarted,
			NodeID:  id,
			Payload: fmt.Appendf(nil, `{"nodeId":%q,"typeId":"core.noop","attempt":0}`, id),
		},
		{
			Type:    wire.EventNodeCompleted,
			NodeID:  id,
			Payload: fmt.Appendf(nil, `{"nodeId":%q,"outputs":{"out":"value, \"quoted\" [1]"}}`, id),
		},
	}
}

// Retry returns a node that waits for its next attempt.
func Retry(id string, delay time.Duration) []wire.Draft {
	return []wire.Draft{
		Node(id)[0],
		{
			Type:    wire.EventNodeRetried,
			NodeID:  id,
			Payload: fmt.Appendf(nil, `{"nodeId":%q,"attempt":1,"delayMs":%d}`, id, delay.Milliseconds()),
		},
	}
}

// Whole appends a run of one node from start to end, in two frames.
func Whole(t testing.TB, log runlog.Appender, runID string) *Writer {
	t.Helper()
	w := Begin(t, log, Record(runID))
	w.End(append(append([]wire.Draft{RunStarted}, Node("n1")...), RunCompleted)...)
	return w
}
