package runspan

import "time"

// Names of spans (OpenWOP host contract §10.1).
const (
	NameRun       = "openwop.run"
	NameNode      = "openwop.node." // and the type id
	NameCall      = "openwop.activity."
	NameInterrupt = "openwop.interrupt"
	NameAccept    = "openwop.envelope.accept"
	NameAppend    = "openwop.event.append"
	suffixTry     = ".attempt"
)

// Kind is the OpenTelemetry kind of a span.
type Kind string

// The kinds a run has.
const (
	KindInternal Kind = "internal"
	KindServer   Kind = "server"
	KindClient   Kind = "client"
)

// Code is how the work of a span ended.
type Code string

// The status codes of OpenTelemetry.
const (
	Unset Code = "unset"
	OK    Code = "ok"
	Error Code = "error"
)

// Span is one span of a run. Its attributes hold string, int64, float64, bool and
// []string values. Nothing in it is content: ids, types, codes, counts.
type Span struct {
	Name       string
	Trace      TraceID
	ID, Parent SpanID // Parent is zero for a root
	Kind       Kind
	Code       Code
	// Message is an error code; empty unless Code is Error.
	Message string
	// Start and End; End is zero while the work goes on.
	Start, End time.Time
	Attributes map[string]any
	Events     []Moment
	// Links are spans of other traces that this one follows from.
	Links []Link
}

// Link names a span of another trace.
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

// Ended reports whether the work is over.
func (s *Span) Ended() bool { return !s.End.IsZero() }

// end closes the span.
func (s *Span) end(at time.Time, code Code, message string) {
	s.End, s.Code, s.Message = at, code, message
}
