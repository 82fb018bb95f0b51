package eventlog_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/eventlog/logtest"
)

// A search that takes too long ends with an error that says so; other lists have no such limit.
func TestListRuns_LimitsTheTimeOfASearch(t *testing.T) {
	t.Parallel()
	log, path := memory.New(), filepath.Join(t.TempDir(), "eventlog.db")
	cfg := eventlog.DefaultConfig()
	cfg.Words = true
	r := openRig(t, log, path, cfg)
	rec := logtest.Record("a")
	rec.Inputs = map[string]json.RawMessage{"mail": json.RawMessage(`"refund"`)}
	logtest.Begin(t, log, rec)
	query := &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant, Text: "refund"}
	found, err := r.ListRuns(within(t), query)
	require.NoError(t, err)
	require.Len(t, found.GetRuns(), 1)
	r.stop()
	r.stopServer()

	cfg.SearchTimeout = time.Nanosecond
	r = openRig(t, log, path, cfg)
	_, err = r.ListRuns(within(t), query)
	requireSlow(t, err)
	_, err = r.CountRuns(within(t), &eventlogv1.CountRunsRequest{Filters: query})
	requireSlow(t, err)
	_, err = r.ListRuns(within(t), &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant})
	require.NoError(t, err)
}

func requireSlow(t *testing.T, err error) {
	t.Helper()
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	require.ErrorContains(t, err, "took longer")
}
