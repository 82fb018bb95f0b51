package eventlog_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/eventlog/logtest"
)

func TestExportRun_FitsIntoWhatItIsGiven(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	big := string(bytes.Repeat([]byte("x"), 1<<17))
	for range 12 {
		w.Step(logtest.Log(big))
	}
	export := func(change func(*eventlogv1.ExportRunRequest)) (events int, truncated bool, size int) {
		req := &eventlogv1.ExportRunRequest{Tenant: w.Run().Tenant, RunId: "run-1"}
		change(req)
		res, err := r.ExportRun(within(t), req)
		require.NoError(t, err)
		var b struct {
			Events    []json.RawMessage
			Truncated bool
		}
		require.NoError(t, json.Unmarshal(res.GetBundle(), &b))
		return len(b.Events), b.Truncated, len(res.GetBundle())
	}
	events, truncated, size := export(func(*eventlogv1.ExportRunRequest) {})
	require.Equal(t, len(w.Docs(0)), events, "content takes no room: all of the course is in it")
	require.False(t, truncated)
	require.Less(t, size, 10_000)

	fewer, truncated, small := export(func(req *eventlogv1.ExportRunRequest) { req.MaxBytes = int64(size) - 1 })
	require.True(t, truncated)
	require.Less(t, fewer, events)
	require.Less(t, small, size)

	one, truncated, _ := export(func(req *eventlogv1.ExportRunRequest) { req.MaxEvents = 1 })
	require.Equal(t, 1, one)
	require.True(t, truncated)

	_, err := r.ExportRun(within(t), &eventlogv1.ExportRunRequest{Tenant: "another", RunId: "run-1"})
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
}
