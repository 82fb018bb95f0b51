package create_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

func TestStart_RecordsWhenTheRunMayBeExecuted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	schedule := func(runID, inputs string) *wire.Schedule {
		_, err := r.Start(t.Context(), request("limited", runID, with(inputs, "")))
		require.NoError(t, err)
		first, err := r.log.First(t.Context(), subject.Run{Tenant: "acme", RunID: runID})
		require.NoError(t, err)
		rec, err := first.Record()
		require.NoError(t, err)
		return rec.Schedule
	}
	one := schedule("run_1", `{"who":"me"}`)
	require.Equal(t, 3, *one.Priority)
	require.Equal(t, 2, one.Concurrency.Limit)
	require.Nil(t, one.Rate)
	require.NotEqual(t, one, schedule("run_2", `{}`))
	require.Equal(t, one, schedule("run_3", `{"who":"me"}`))
	require.Equal(t, schedule("run_4", `{"who":"[REDACTED:s] it is"}`), schedule("run_5", `{"who":"hunter2-hunter2 it is"}`), "of what is recorded")
	require.NotContains(t, one.Concurrency.Key, "me", "a digest")
}
