package eventlog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/cold"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
)

// recorded returns the events of a log of package fold.
func recorded(t *testing.T, name string) (out []wire.Draft) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("fold", "testdata", name+".json"))
	require.NoError(t, err)
	var doc struct{ Events []wire.Event }
	require.NoError(t, json.Unmarshal(b, &doc))
	for _, e := range doc.Events {
		out = append(out, wire.Draft{Type: e.Type, NodeID: e.NodeID, Payload: e.Payload, CausationID: e.CausationID})
	}
	return out
}

func (r *rig) listAnswers(t *testing.T, outcome string, filters *eventlogv1.ListRunsRequest) ([]*hostv1.ModelAnswer, string) {
	t.Helper()
	if filters.GetTenant() == "" {
		filters.Tenant = logtest.Tenant
	}
	res, err := r.ListAnswers(within(t), &eventlogv1.ListAnswersRequest{Filters: filters, Outcome: outcome})
	require.NoError(t, err)
	return res.GetAnswers(), res.GetNextCursor()
}

func TestListAnswers_HasAcceptedDocumentsAndWhatWasRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ran(t, "value", 1, 1, logtest.RunCompleted, asked("openai", "large", "0.5")...)
	for _, name := range []string{"corrected", "exhausted"} {
		rec := logtest.Record(name)
		w := logtest.Begin(t, r.log, rec)
		w.Step(recorded(t, name)...)
	}
	logtest.Whole(t, r.log, "without-a-model")

	all, next := r.listAnswers(t, "", &eventlogv1.ListRunsRequest{})
	require.Empty(t, next)
	require.Len(t, all, 3)
	of := map[string]*hostv1.ModelAnswer{}
	for _, a := range all {
		of[a.GetRunId()] = a
	}
	value := of["value-0001"]
	require.Equal(t, "accepted", value.GetOutcome())
	require.Equal(t, "large", value.GetModel())
	require.EqualValues(t, 2, value.GetCalls())
	require.EqualValues(t, 200, value.GetInputTokens())
	require.Equal(t, 1.0, value.GetCostUsd())
	require.Len(t, value.GetDocuments(), 1)
	require.JSONEq(t, `{"value":{}}`, string(value.GetDocuments()[0].GetPayload().GetJson()))
	require.Equal(t, "schema-violation", value.GetRefusals()[0].GetReason())

	corrected := of["corrected"]
	require.Equal(t, "accepted", corrected.GetOutcome())
	require.Len(t, corrected.GetDocuments(), 1)
	require.NotEmpty(t, corrected.GetDocuments()[0].GetKind())
	require.True(t, json.Valid(corrected.GetDocuments()[0].GetPayload().GetJson()))
	require.EqualValues(t, 2, corrected.GetRefusals()[0].GetCount())

	exhausted := of["exhausted"]
	require.Equal(t, "refused", exhausted.GetOutcome())
	require.Empty(t, exhausted.GetDocuments())
	require.EqualValues(t, 3, exhausted.GetRefusals()[0].GetCount())

	refused, _ := r.listAnswers(t, "refused", &eventlogv1.ListRunsRequest{})
	require.Len(t, refused, 1)
	require.Equal(t, "exhausted", refused[0].GetRunId())
	theirs, _ := r.listAnswers(t, "", &eventlogv1.ListRunsRequest{Tenant: "another"})
	require.Empty(t, theirs)

	var paged []*hostv1.ModelAnswer
	for cursor := ""; ; {
		page, next := r.listAnswers(t, "", &eventlogv1.ListRunsRequest{Limit: 1, Cursor: cursor})
		paged = append(paged, page...)
		if cursor = next; cursor == "" {
			break
		}
	}
	require.Len(t, paged, 3)

	_, err := r.ListAnswers(within(t), &eventlogv1.ListAnswersRequest{Filters: &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant}, Outcome: "perhaps"})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
}

// everyRun lists all pages of one run each.
func everyRun(t *testing.T, r *rig) (ids []string) {
	t.Helper()
	for cursor := ""; ; {
		page, next := r.listAnswers(t, "", &eventlogv1.ListRunsRequest{Limit: 1, Cursor: cursor})
		for _, a := range page {
			ids = append(ids, a.GetRunId())
		}
		if cursor = next; cursor == "" {
			return ids
		}
	}
}

// damageSealed puts the frames of one sealed run into the object of another.
func damageSealed(t *testing.T, log tieredLog, bad, good subject.Run) {
	t.Helper()
	o, err := cold.Encode(mustRun(t, log, good))
	require.NoError(t, err)
	o.Run = bad
	require.NoError(t, log.store.Put(t.Context(), o))
}

func flowRun(n int) subject.Run {
	return subject.Run{Tenant: logtest.Tenant, WorkflowID: "flow", RunID: fmt.Sprintf("flow-%04d", n)}
}

// A permanently unreadable run is left out, and so is one that is erased while its page is read.
func TestListAnswers_LeavesOutRunsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	r, log := newTiered(t)
	for n := range 4 {
		r.ran(t, "flow", n, 1, logtest.RunCompleted, asked("openai", "large", "0.5")...)
	}
	r.sealAll(t, log)
	require.Equal(t, []string{"flow-0003", "flow-0002", "flow-0001", "flow-0000"}, everyRun(t, r))
	damageSealed(t, log, flowRun(2), flowRun(0))
	require.Equal(t, []string{"flow-0003", "flow-0001", "flow-0000"}, everyRun(t, r))
	require.Zero(t, r.svc.Rebuilds())

	var begun atomic.Bool
	var erased error
	r.store.tamper(nil, func(ctx context.Context) {
		if !begun.CompareAndSwap(false, true) {
			return // the read model reads frames, too
		}
		if _, erased = log.Mark(ctx, flowRun(3), frame.Requested); erased != nil {
			return
		}
		end, err := r.log.End(ctx)
		if erased = err; err == nil {
			erased = log.Purge(ctx, &frame.Frame{Run: flowRun(3), Kind: subject.Erase, Pos: end})
		}
	})
	require.Equal(t, []string{"flow-0001", "flow-0000"}, everyRun(t, r))
	require.NoError(t, erased)
}

// The same holds for lists of answered questions.
func TestListInterrupts_LeavesOutRunsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	r, log := newTiered(t)
	for n := range 3 {
		run := flowRun(n)
		r.ran(t, "flow", n, 1, logtest.RunCompleted, append(asks(t, run.RunID, "a"), answered(run.RunID, "a"))...)
	}
	r.sealAll(t, log)
	list := func() (ids []string) {
		res, err := r.ListInterrupts(within(t), &eventlogv1.ListInterruptsRequest{
			Tenant: logtest.Tenant, AnsweredOn: logtest.Epoch.UTC().Format("2006-01-02"),
		})
		require.NoError(t, err)
		for _, i := range res.GetInterrupts() {
			ids = append(ids, i.GetRunId())
		}
		return ids
	}
	require.Equal(t, []string{"flow-0002", "flow-0001", "flow-0000"}, list())
	damageSealed(t, log, flowRun(1), flowRun(0))
	r.svc.ForgetViews()
	require.Equal(t, []string{"flow-0002", "flow-0000"}, list())
}
