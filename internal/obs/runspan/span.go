package runspan

import "time"

// Names of spans (OpenWOP host contract §10.1).
const (
	NameRun       = "openwop.run"
	NameNode      = "openwop.node." // followed by the type id
	NameCall      = "openwop.activity."
	NameInterrupt = "openwop.interrupt"
	NameAccept    = "openwop.envelope.accept"
	NameAppend    = "openwop.event.append"
	suffixTry     = ".attempt"
)

// Kind is the OpenTelemetry kind of a span.
type Kind string

// The kinds of a run's spans.
const (
	KindInternal Kind = "internal"
	KindServer   Kind = "server"
	KindClient   Kind = "client"
)

// Code is the status of a span.
type Code string

// The status codes of OpenTelemetry.
const (
	Unset Code = "unset"
	OK    Code = "ok"
	Error Code = "error"
)

// Span is one span of a run. Its attributes are string, int64, float64, bool and []string values.
// They hold ids, types, codes and counts, never content.
type Span struct {
	Name       string
	Trace      TraceID
	ID, Parent SpanID // Parent is zero for a root
	Kind       Kind
	Code       Code
	// Message is an error code; empty unless Code is Error.
	Message string
	// Start and End; End is zero while the span is open.
	Start, End time.Time
	Attributes map[string]any
	Events     []Moment
	// Links are the spans of other traces that this one follows from.
	Links []Link
}

// Link refers to a span of another trace.
type Link struct {
	Trace TraceID
	ID    SpanID
}

// Moment is an event of a span.
type Moment struct {
	Name       string
	At         time.Time
	Attributes map[string]any
}

// Ended reports whether the span is closed.
func (s *Span) Ended() bool { return !s.End.IsZero() }

// end closes the span.
func (s *Span) end(at time.Time, code Code, message string) {
	s.End, s.Code, s.Message = at, code, message
}
