package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Metrics counts the work of this process.
type Metrics interface {
	// Appended is called with events appended to a run's log, and the run's state after them.
	Appended(st *runstate.State, events []wire.Event)
	// Enqueued counts a run that was put into the queue. Conflict counts a run that another
	// dispatcher executes.
	Enqueued()
	Conflict()
	// Quarantined counts a run that was quarantined, by one of quarantine.Reasons.
	Quarantined(reason string)
}

// noMetrics counts nothing.
type noMetrics struct{}

func (noMetrics) Appended(*runstate.State, []wire.Event) {}
func (noMetrics) Enqueued()                              {}
func (noMetrics) Conflict()                              {}
func (noMetrics) Quarantined(string)                     {}

// recordAppend counts a frame that this process appended.
func (e *Executor) recordAppend(ctx context.Context, st *runstate.State, kind subject.Kind, events []wire.Event) {
	e.deps.Metrics.Appended(st, events)
	switch {
	case kind == subject.Wake:
		e.deps.Metrics.Enqueued()
	case kind == subject.End && len(events) > 0:
		e.logEnd(ctx, st, events[len(events)-1])
	}
}

// maxCode limits the logged part of an error code, in bytes: a workflow can choose the code.
const maxCode = 128

// logEnd logs the end of a run (OpenWOP host contract §10.3, production logs). It logs an error's
// code, but not its message, which can quote any value.
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

// adoptEvents applies events that the acceptor appended for this session. Events of an earlier
// frame were counted before.
func (s *session) adoptEvents(events []wire.Event) {
	known := s.machine.State().Next
	s.machine.Adopt(events)
	for len(events) > 0 && events[0].Sequence < known {
		events = events[1:]
	}
	s.exec.deps.Metrics.Appended(s.machine.State(), events)
}

// countConflict counts a run that was lost to the session which wrote a frame. A change by a
// request takes no run over.
func (e *Executor) countConflict(f *frame.Frame) {
	if !strings.HasPrefix(f.Writer, frame.ExternalPrefix) {
		e.deps.Metrics.Conflict()
	}
}

// Active is the number of runs that this process executes.
func (e *Executor) Active() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.active)
}
