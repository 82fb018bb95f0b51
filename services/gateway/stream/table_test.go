package stream_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/stream"
)

func modes(t *testing.T, list ...string) stream.Modes {
	t.Helper()
	m, err := stream.ParseModes(list)
	require.NoError(t, err)
	return m
}

// The table of OpenWOP host contract §4.3, row by row.
func TestForm_FollowsTheTableOfModes(t *testing.T) {
	t.Parallel()
	const hidden, event, chunk, values = stream.Hidden, stream.AsEvent, stream.AsChunk, stream.AsValues
	rows := []struct {
		types                            []wire.EventType
		updates, values, messages, debug stream.Form
	}{
		{[]wire.EventType{"run.started", "run.completed", "run.failed", "run.cancelled", "run.paused", "run.resumed", "run.annotated"}, event, values, hidden, event},
		{[]wire.EventType{"node.started"}, hidden, values, hidden, event},
		{[]wire.EventType{"node.completed", "node.failed", "node.skipped", "node.suspended", "node.dispatched", "node.cancelled"}, event, values, hidden, event},
		{[]wire.EventType{"node.retried", "variable.changed", "version.pinned", "lease.acquired", "log.appended"}, hidden, hidden, hidden, event},
		{[]wire.EventType{"approval.requested", "approval.received", "clarification.requested", "clarification.resolved", "interrupt.requested", "interrupt.resolved", "artifact.created"}, event, values, hidden, event},
		{[]wire.EventType{"output.chunk"}, hidden, hidden, chunk, event},
		{[]wire.EventType{"cap.breached", "provider.usage", "model.capability.substituted", "envelope.truncated", "replay.diverged", "channel.written", "node.resumed", "acme.thing.happened"}, hidden, hidden, hidden, event},
	}
	for _, r := range rows {
		for _, typ := range r.types {
			require.Equal(t, r.updates, modes(t, "updates").Form(typ), "updates %s", typ)
			require.Equal(t, r.values, modes(t, "values").Form(typ), "values %s", typ)
			require.Equal(t, r.messages, modes(t, "messages").Form(typ), "messages %s", typ)
			require.Equal(t, r.debug, modes(t, "debug").Form(typ), "debug %s", typ)
		}
	}
}

func TestForm_MixedModesShowAnEventOnce(t *testing.T) {
	t.Parallel()
	m := modes(t, "updates,messages")
	require.Equal(t, stream.AsChunk, m.Form(wire.EventOutputChunk))
	require.Equal(t, stream.AsEvent, m.Form(wire.EventRunCompleted))
	require.Equal(t, stream.AsChunk, modes(t, "messages", "debug").Form(wire.EventOutputChunk), "the bare payload still")
}

func TestParseModes_DefaultsToUpdates(t *testing.T) {
	t.Parallel()
	require.Equal(t, modes(t, "updates"), modes(t))
}

func TestParseModes_ListsTheSingleModesWhenItRefuses(t *testing.T) {
	t.Parallel()
	for _, list := range [][]string{{"all"}, {""}, {"updates", "nope"}, {"values,updates"}, {"values", "debug"}} {
		_, err := stream.ParseModes(list)
		e, ok := fault.As(err)
		require.True(t, ok, list)
		require.Equal(t, fault.UnsupportedStreamMode, e.Code)
		require.Equal(t, []stream.Mode{"values", "updates", "messages", "debug"}, e.Details["supported"])
	}
}

func TestCheckBuffer_IsNotClamped(t *testing.T) {
	t.Parallel()
	require.NoError(t, stream.CheckBuffer(0))
	require.NoError(t, stream.CheckBuffer(5000))
	require.Error(t, stream.CheckBuffer(5001))
	require.Error(t, stream.CheckBuffer(-1))
}

func TestBatch_CarriesTheHighestIdAndGoesOutAtOnceWhenItMust(t *testing.T) {
	t.Parallel()
	var b stream.Batch
	require.True(t, b.Empty())
	require.False(t, b.Add(3, wire.EventNodeCompleted, []byte(`{"a":1}`)))
	require.True(t, b.Add(4, wire.EventNodeSuspended, []byte(`{"b":2}`)))
	require.Equal(t, stream.Item{Sequence: 4, Name: "batch", Data: []byte(`[{"a":1},{"b":2}]`)}, b.Flush())
	require.True(t, b.Empty())
	require.True(t, b.Add(5, wire.EventRunFailed, []byte(`{}`)))
}

func FuzzParseModes(f *testing.F) {
	f.Add("updates,messages")
	f.Fuzz(func(t *testing.T, s string) {
		if m, err := stream.ParseModes([]string{s}); err == nil {
			require.NotEqual(t, stream.Modes{}, m)
		}
	})
}
