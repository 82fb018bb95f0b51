package sim

import "waybill.dev/waybill/protocol/wire"

// ofRunning lists the events that only a running node may have.
var ofRunning = []wire.EventType{
	wire.EventOutputChunk, wire.EventVariableChanged, wire.EventArtifactCreated, wire.EventProviderUsage, wire.EventEnvelopeRetryAttempted,
	wire.EventEnvelopeRetryExhausted, wire.EventEnvelopeRefusal, wire.EventEnvelopeTruncated,
}
