package eventlog_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/eventlog/logtest"
)

// by appends a frame of a writer.
func by(w *logtest.Writer, writer string, drafts ...wire.Draft) {
	w.Append(w.Frame(subject.Step, drafts...).By(writer))
}

func TestListOwnedRuns_FollowsTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, two, free := r.begin(t, "run-1"), r.begin(t, "run-2"), r.begin(t, "run-3")
	by(one, "d1-7@1", logtest.RunStarted)
	by(two, "d1-8@4", logtest.RunStarted)
	by(free, frame.ExternalPrefix+"d1-9", logtest.RunStarted)
	by(r.begin(t, "run-4"), "d1-10", logtest.RunStarted) // of a version before runs had owners
	owned := func(process string, after *eventlogv1.OwnedRun, limit int32) []*eventlogv1.OwnedRun {
		t.Helper()
		end, err := r.log.End(t.Context())
		require.NoError(t, err)
		resp, err := r.ListOwnedRuns(within(t), &eventlogv1.ListOwnedRunsRequest{
			Process: process,
			After:   after,
			Limit:   limit,
			AtLeast: end,
		})
		require.NoError(t, err)
		require.Equal(t, end, resp.GetPosition())
		return resp.GetRuns()
	}
	got := owned("d1", nil, 0)
	require.Len(t, got, 2)
	require.Equal(t, "run-1", got[0].GetRunId())
	require.Equal(t, logtest.Tenant, got[0].GetTenant())
	require.Equal(t, "flow", got[0].GetWorkflowId())
	require.EqualValues(t, 1, got[0].GetOwner().GetEpoch())
	require.EqualValues(t, 4, got[1].GetOwner().GetEpoch())
	require.Equal(t, "d1", got[1].GetOwner().GetProcess())
	page := owned("d1", nil, 1)
	require.Len(t, page, 1)
	page = owned("d1", page[0], 1)
	require.Len(t, page, 1)
	require.Equal(t, "run-2", page[0].GetRunId())
	require.Empty(t, owned("d1", page[0], 1))
	require.Empty(t, owned("d2", nil, 0))

	by(one, "d2-1@2", logtest.Log("taken over"))
	by(two, "d1-8@4/released")
	require.Empty(t, owned("d1", nil, 0))
	require.Len(t, owned("d2", nil, 0), 1)
	by(one, "d2-1@2", logtest.RunCompleted)
	require.Empty(t, owned("d2", nil, 0), "it has ended")
}

// The owner is known since its first frame, also to a reader that loads the run later.
func TestGetRun_ShowsTheOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	by(w, "d1-8@4", logtest.RunStarted)
	by(w, "d1-8@4", logtest.Log("on it"))
	by(w, frame.ExternalPrefix+"d2-1", logtest.Log("not the owner's"))
	want := &eventlogv1.RunOwner{Process: "d1", Epoch: 4, Since: wire.FormatTime(r.log.Frames()[1].Stored)}
	got, err := r.get(t, "run-1")
	require.NoError(t, err)
	require.Equal(t, want.String(), got.GetOwner().String())
	list, err := r.ListRuns(within(t), &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant})
	require.NoError(t, err)
	require.Equal(t, want.String(), list.GetRuns()[0].GetOwner().String())
	by(w, "d1-8@4", logtest.RunCompleted)
	got, err = r.get(t, "run-1")
	require.NoError(t, err)
	require.Nil(t, got.GetOwner())
}

func TestListOwnedRuns_RefusesWhatItCannotAnswer(t *testing.T) {
	t.Parallel()
	cfg := eventlog.DefaultConfig()
	cfg.FreshTimeout = 50 * time.Millisecond
	r := openRig(t, memory.New(), filepath.Join(t.TempDir(), "eventlog.db"), cfg)
	_, err := r.ListOwnedRuns(within(t), &eventlogv1.ListOwnedRunsRequest{})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	_, err = r.ListOwnedRuns(within(t), &eventlogv1.ListOwnedRunsRequest{Process: "d1", AtLeast: 1 << 40})
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "the log has no such position yet")
}
