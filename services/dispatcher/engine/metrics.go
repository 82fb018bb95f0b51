package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runspan"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Metrics is told what this process has done to runs, and nobody else.
type Metrics interface {
	// Appended takes events that came into a run's log, and the run's state with them.
	Appended(st *runstate.State, events []wire.Event)
	// Enqueued and Conflict tell of a run that was put into the queue, and of one that
	// another dispatcher has.
	Enqueued()
	Conflict()
	// Quarantined counts a run that was quarantined, by one of quarantine.Reasons.
	Quarantined(reason string)
}

// noMetrics is nobody's metrics.
type noMetrics struct{}

func (noMetrics) Appended(*runstate.State, []wire.Event) {}
func (noMetrics) Enqueued()                              {}
func (noMetrics) Conflict()                              {}
func (noMetrics) Quarantined(string)                     {}

// recordAppend tells of a frame that was appended here.
func (e *Executor) recordAppend(ctx context.Context, st *runstate.State, kind subject.Kind, events []wire.Event) {
	e.deps.Metrics.Appended(st, events)
	switch {
	case kind == subject.Wake:
		e.deps.Metrics.Enqueued()
	case kind == subject.End && len(events) > 0:
		e.logEnd(ctx, st, events[len(events)-1])
	}
}

// maxCode is how much of an error's code is logged, in bytes: a workflow can choose it.
const maxCode = 128

// logEnd says how a run ended (OpenWOP host contract §10.3, production logs). Of an error
// it has the code, as it is in the log: the message can quote anything.
func (e *Executor) logEnd(ctx context.Context, st *runstate.State, end wire.Event) {
	if !e.deps.Logger.Enabled(ctx, slog.LevelInfo) {
		return
	}
	rec := st.Record
	trace, _ := runspan.TraceOf(rec.RunID, rec.Traceparent)
	attrs := []slog.Attr{
		slog.String("run_id", rec.RunID), slog.String("tenant", rec.Owner.Tenant), slog.String("workflow_id", rec.WorkflowID),
		slog.String("status", string(st.Status)), slog.String("trace_id", trace.String()),
	}
	var p struct {
		Error wire.NodeError `json:"error"`
	}
	_ = json.Unmarshal(end.Payload, &p) // an end without an error has no code
	if code := p.Error.Code; code != "" {
		attrs = append(attrs, slog.String("error_code", code[:min(len(code), maxCode)]))
	}
	e.deps.Logger.LogAttrs(ctx, slog.LevelInfo, "run ended", attrs...)
}

// adoptEvents takes events that the acceptor has appended for this session. Those that it only
// recalls were counted when they were new.
func (s *session) adoptEvents(events []wire.Event) {
	known := s.machine.State().Next
	s.machine.Adopt(events)
	for len(events) > 0 && events[0].Sequence < known {
		events = events[1:]
	}
	s.exec.deps.Metrics.Appended(s.machine.State(), events)
}

// countConflict tells of a run that was lost to the session which wrote a frame. A change from
// beside takes a run from nobody.
func (e *Executor) countConflict(f *frame.Frame) {
	if !strings.HasPrefix(f.Writer, frame.ExternalPrefix) {
		e.deps.Metrics.Conflict()
	}
}

// Active is how many runs this process carries out.
func (e *Executor) Active() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.active)
}
