// Package wire holds the documents of OpenWOP as Go types: run events, run
// records, envelopes and their vocabulary.
//
// An event is rendered to JSON once, by Event.AppendJSON, when it is appended;
// the same bytes are then served by poll, SSE, gRPC and NATS. Members the
// protocol leaves open (payloads, inputs, configurable, metadata) are kept as
// raw JSON, so that numbers, key order and zero values survive.
package wire
