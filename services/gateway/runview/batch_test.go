package runview_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/runview"
)

func TestCheckBuffer_TakesZeroToFiveSeconds(t *testing.T) {
	t.Parallel()
	for _, ms := range []int32{0, 1, 250, 4999, runview.MaxBufferMs} {
		require.NoError(t, runview.CheckBuffer(ms), ms)
	}
}

func TestCheckBuffer_RefusesInsteadOfClamping(t *testing.T) {
	t.Parallel()
	for _, ms := range []int32{-1, -5000, runview.MaxBufferMs + 1, 1 << 30} {
		err := runview.CheckBuffer(ms)
		e, ok := fault.As(err)
		require.True(t, ok, ms)
		require.Equal(t, fault.ValidationError, e.Code)
		require.Equal(t, []fault.Problem{{In: fault.Query, Path: "bufferMs", Message: "want an integer from 0 to 5000"}}, e.Details["problems"])
	}
}

func TestBatch_ZeroValueIsEmpty(t *testing.T) {
	t.Parallel()
	var b runview.Batch
	require.True(t, b.Empty())
}

func TestBatch_FlushGivesDocumentsInOrderUnderTheLastSequence(t *testing.T) {
	t.Parallel()
	var b runview.Batch
	for i := range 3 {
		require.False(t, b.Add(i+4, "node.completed", fmt.Appendf(nil, `{"sequence": %d}`, i+4)))
	}
	require.False(t, b.Empty())
	it := b.Flush()
	require.Equal(t, 6, it.Sequence)
	require.Equal(t, runview.NameBatch, it.Name)
	require.Equal(t, `[{"sequence": 4},{"sequence": 5},{"sequence": 6}]`, string(it.Data))
	require.True(t, b.Empty())
}

func TestBatch_StartsAgainAfterAFlush(t *testing.T) {
	t.Parallel()
	var b runview.Batch
	b.Add(1, "node.completed", []byte(`{"a":1}`))
	first := b.Flush()
	b.Add(2, "node.completed", []byte(`{"a":2}`))
	second := b.Flush()
	require.Equal(t, `[{"a":1}]`, string(first.Data), "a flushed batch is not written to again")
	require.Equal(t, `[{"a":2}]`, string(second.Data))
	require.Equal(t, 2, second.Sequence)
}

func TestBatch_IsUrgentWhenTheRunEndsOrWaits(t *testing.T) {
	t.Parallel()
	urgent := map[wire.EventType]bool{
		wire.EventRunCompleted: true, wire.EventRunFailed: true, wire.EventRunCancelled: true, wire.EventNodeSuspended: true,
		wire.EventRunStarted: false, wire.EventNodeCompleted: false, wire.EventRunPaused: false, wire.EventOutputChunk: false,
		"vendor.acme.thing": false,
	}
	for typ, want := range urgent {
		var b runview.Batch
		require.Equal(t, want, b.Add(0, typ, []byte(`{}`)), typ)
		require.False(t, b.Empty(), "urgent or not, the document is in the batch")
	}
}

func TestBatch_IsOneJSONArrayOfAnySize(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 10, 1000} {
		var b runview.Batch
		for i := range n {
			b.Add(i, "log.appended", fmt.Appendf(nil, `{"n":%d}`, i))
		}
		var docs []struct{ N int }
		it := b.Flush()
		require.NoError(t, json.Unmarshal(it.Data, &docs))
		require.Len(t, docs, n)
		require.Equal(t, n-1, docs[n-1].N)
		require.Equal(t, n-1, it.Sequence)
	}
}

func BenchmarkBatch(b *testing.B) {
	doc := []byte(`{"eventId":"evt_1","runId":"run_1","type":"node.completed","sequence":7,"payload":{}}`)
	b.ReportAllocs()
	for b.Loop() {
		var batch runview.Batch
		for i := range 64 {
			batch.Add(i, wire.EventNodeCompleted, doc)
		}
		_ = batch.Flush()
	}
}
