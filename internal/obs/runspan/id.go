// Package runspan derives the spans of a run, and their ids, from its events.
//
// Every process, restart and replay derives the same ids from the same run. A span exported live
// and the one in a debug bundle are therefore the same, and a child needs no lookup to find its
// parent (OpenWOP host contract §10.1).
package runspan

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// TraceID is the id of a trace, as defined by W3C Trace Context.
type TraceID [16]byte

// SpanID is the id of a span.
type SpanID [8]byte

// String returns lower-case hex.
func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

// String returns lower-case hex.
func (s SpanID) String() string { return hex.EncodeToString(s[:]) }

// TraceOf returns the trace of a run: that of the creating request, or a derived one if the request
// had none. traceparent must be well-formed or empty. parent is the span of that request; zero:
// none.
func TraceOf(runID, traceparent string) (trace TraceID, parent SpanID) {
	const (
		traceAt = len("00-")
		spanAt  = traceAt + 2*len(TraceID{}) + 1
		end     = spanAt + 2*len(SpanID{})
	)
	if len(traceparent) >= end {
		t, errT := hex.DecodeString(traceparent[traceAt : spanAt-1])
		s, errS := hex.DecodeString(traceparent[spanAt:end])
		if errT == nil && errS == nil {
			return TraceID(t), SpanID(s)
		}
	}
	sum := digest("trace", runID)
	return TraceID(sum[:16]), SpanID{}
}

// RunSpan returns the id of the run's span.
func RunSpan(runID string) SpanID { return spanID("run", runID) }

// NodeSpan returns the id of a node's span, which covers all its attempts.
func NodeSpan(runID, nodeID string) SpanID { return spanID("node", runID, nodeID) }

// AttemptSpan returns the id of the span of an attempt; the first is 0.
func AttemptSpan(runID, nodeID string, attempt int) SpanID {
	return spanID("attempt", runID, nodeID, strconv.Itoa(attempt))
}

// CallSpan returns the id of the span of a provider call: the n-th of its attempt, from 0.
func CallSpan(runID, nodeID string, attempt, n int) SpanID {
	return spanID("call", runID, nodeID, strconv.Itoa(attempt), strconv.Itoa(n))
}

// InterruptSpan returns the id of the span of a suspension.
func InterruptSpan(runID, interruptID string) SpanID { return spanID("interrupt", runID, interruptID) }

// AcceptSpan returns the id of the span of the accept that recorded an envelope.
func AcceptSpan(runID, correlationID string) SpanID { return spanID("accept", runID, correlationID) }

// AppendSpan returns the id of the span of the append that wrote an event.
func AppendSpan(runID string, sequence int) SpanID {
	return spanID("append", runID, strconv.Itoa(sequence))
}

func spanID(parts ...string) SpanID {
	sum := digest(parts...)
	return SpanID(sum[:8])
}

// digest separates its parts with a byte that no id contains.
func digest(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return [sha256.Size]byte(h.Sum(nil))
}
