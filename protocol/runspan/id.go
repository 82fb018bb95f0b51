// Package runspan gives the spans of a run: their ids, and the spans that its
// events tell of.
//
// Every process, every restart and every replay derives the same ids from the
// same run, so that a span exported live and the one in a debug bundle are one,
// and a child finds its parent without asking (OpenWOP host contract §10.1).
package runspan

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// TraceID names a trace, as W3C Trace Context has it.
type TraceID [16]byte

// SpanID names a span of a trace.
type SpanID [8]byte

// String gives lower-case hex.
func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

// String gives lower-case hex.
func (s SpanID) String() string { return hex.EncodeToString(s[:]) }

// TraceOf is the trace of a run: that of the request that created it, or one of
// its own if the request had none. traceparent must be well-formed or empty.
// parent is the span of that request; zero: none.
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

// RunSpan is the span of the whole run.
func RunSpan(runID string) SpanID { return spanID("run", runID) }

// NodeSpan is the span of a node, over all its attempts.
func NodeSpan(runID, nodeID string) SpanID { return spanID("node", runID, nodeID) }

// AttemptSpan is the span of one attempt of a node; the first is 0.
func AttemptSpan(runID, nodeID string, attempt int) SpanID {
	return spanID("attempt", runID, nodeID, strconv.Itoa(attempt))
}

// CallSpan is the span of a provider call: the n-th of that attempt, from 0.
func CallSpan(runID, nodeID string, attempt, n int) SpanID {
	return spanID("call", runID, nodeID, strconv.Itoa(attempt), strconv.Itoa(n))
}

// InterruptSpan is the span of a suspension.
func InterruptSpan(runID, interruptID string) SpanID { return spanID("interrupt", runID, interruptID) }

// AcceptSpan is the span of the accept that recorded an envelope.
func AcceptSpan(runID, correlationID string) SpanID { return spanID("accept", runID, correlationID) }

// AppendSpan is the span of the append that wrote an event.
func AppendSpan(runID string, sequence int) SpanID {
	return spanID("append", runID, strconv.Itoa(sequence))
}

func spanID(parts ...string) SpanID {
	sum := digest(parts...)
	return SpanID(sum[:8])
}

// digest separates its parts with a byte that no id has.
func digest(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return [sha256.Size]byte(h.Sum(nil))
}
