package runspan

import (
	"encoding/hex"

	"waybill.dev/waybill/protocol/wire"
)

// Context is the trace of a run, for spans of work on that run. The zero Context has none.
type Context struct {
	runID   string
	trace   TraceID
	sampled bool
}

// ContextOf returns the trace of a run. sampled: its spans are exported.
func ContextOf(rec *wire.RunRecord, sampled bool) Context {
	trace, _ := TraceOf(rec.RunID, rec.Traceparent)
	return Context{runID: rec.RunID, trace: trace, sampled: sampled}
}

// Run returns the traceparent under the run's own span. All methods return "" for the zero Context.
func (c Context) Run() string { return c.under(RunSpan(c.runID)) }

// Node returns the traceparent under a node.
func (c Context) Node(nodeID string) string { return c.under(NodeSpan(c.runID, nodeID)) }

// Attempt returns the traceparent under an attempt of a node.
func (c Context) Attempt(nodeID string, attempt int) string {
	return c.under(AttemptSpan(c.runID, nodeID, attempt))
}

// Call returns the traceparent under the n-th model call of an attempt.
func (c Context) Call(nodeID string, attempt, n int) string {
	return c.under(CallSpan(c.runID, nodeID, attempt, n))
}

func (c Context) under(parent SpanID) string {
	if c.runID == "" {
		return ""
	}
	flags := byte(0)
	if c.sampled {
		flags = 1
	}
	return Traceparent(c.trace, parent, flags)
}

// Traceparent renders a W3C traceparent.
func Traceparent(trace TraceID, parent SpanID, flags byte) string {
	b := make([]byte, 0, 55)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, trace[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, parent[:])
	b = append(b, '-')
	return string(hex.AppendEncode(b, []byte{flags}))
}

// Sampled reports the sampled flag of a well-formed traceparent.
func Sampled(traceparent string) bool {
	const flagsAt = 53
	if len(traceparent) < flagsAt+2 {
		return false
	}
	b, err := hex.DecodeString(traceparent[flagsAt : flagsAt+2])
	return err == nil && b[0]&1 == 1
}
