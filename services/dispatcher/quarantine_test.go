package dispatcher_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/kv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog/memory"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/engine/lease"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// noSecrets is a redactor that changes nothing.
type noSecrets struct{ redactorv1.RedactorClient }

func (noSecrets) Redact(_ context.Context, r *redactorv1.RedactRequest, _ ...grpc.CallOption) (*redactorv1.RedactResponse, error) {
	return &redactorv1.RedactResponse{Documents: r.GetDocuments()}, nil
}

// noTimers is a read model without timers.
type noTimers struct{ eventlogv1.EventLogClient }

func (noTimers) ListDueTimers(context.Context, *eventlogv1.ListDueTimersRequest, ...grpc.CallOption) (*eventlogv1.ListDueTimersResponse, error) {
	return &eventlogv1.ListDueTimersResponse{}, nil
}

// dispatcherOver is a dispatcher over memory.
func dispatcherOver(t *testing.T, log *memory.Log, leases kv.Store) *dispatcher.Service {
	t.Helper()
	providers, err := provider.NewRegistry()
	require.NoError(t, err)
	s, err := dispatcher.New(dispatcher.DefaultConfig(), dispatcher.Deps{
		Storage: dispatcher.Storage{
			Log:        log,
			Workflows:  kvmemory.New(),
			Claims:     kvmemory.New(),
			Quarantine: kvmemory.New(),
			Leases:     leases,
		},
		Queueing: dispatcher.Queueing{Queue: log},
		Services: dispatcher.Services{Redactor: noSecrets{}, EventLog: noTimers{}},
		Calls:    dispatcher.Calls{Providers: providers},
		Clock:    time.Now,
		Logger:   slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return s
}

// service is a dispatcher over memory that runs until the test ends.
func service(t *testing.T, log *memory.Log) *dispatcher.Service {
	t.Helper()
	s := dispatcherOver(t, log, kvmemory.New())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	return s
}

var lostRun = subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run_1"}

// startLost appends the start of a run without a definition.
func startLost(t *testing.T, log *memory.Log) {
	t.Helper()
	rec, err := json.Marshal(&wire.RunRecord{
		RunID:          "run_1",
		WorkflowID:     "wf",
		WorkflowDigest: "sha256:00",
		Owner:          wire.Owner{Tenant: "acme"},
		EngineVersion:  1,
		CreatedAt:      wire.FormatTime(time.Now()),
	})
	require.NoError(t, err)
	_, err = log.Append(t.Context(), frame.NewStart(lostRun, rec), 0)
	require.NoError(t, err)
}

func TestQuarantine_ARunWithoutItsDefinitionIsListedAndEnded(t *testing.T) {
	t.Parallel()
	log := memory.New()
	s := service(t, log)
	startLost(t, log)
	list := func(tenant string) []*dispatcherv1.QuarantinedRun {
		res, err := s.ListQuarantinedRuns(t.Context(), &dispatcherv1.ListQuarantinedRunsRequest{Tenant: tenant, Limit: 10})
		require.NoError(t, err)
		return res.GetRuns()
	}
	require.Eventually(t, func() bool { return len(list("acme")) == 1 }, 30*time.Second, 5*time.Millisecond)
	got := list("acme")[0]
	require.Equal(t, "definition_missing", got.GetReason())
	require.EqualValues(t, 10, got.GetTries())
	require.NotEmpty(t, got.GetSince())
	require.NotEmpty(t, got.GetNextCheckAt())
	require.Empty(t, list("other"))

	_, err := s.RetryQuarantinedRun(t.Context(), &dispatcherv1.RetryQuarantinedRunRequest{Tenant: "acme", RunId: "run_1"})
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	_, err = s.EndQuarantinedRun(t.Context(), &dispatcherv1.EndQuarantinedRunRequest{Tenant: "other", RunId: "run_1"})
	require.Equal(t, fault.NotQuarantined, fault.CodeOf(err))
	res, err := s.EndQuarantinedRun(t.Context(), &dispatcherv1.EndQuarantinedRunRequest{
		Tenant:  "acme",
		RunId:   "run_1",
		EndedBy: "ops",
	})
	require.NoError(t, err)
	require.Equal(t, "cancelled", res.GetStatus())
	require.Empty(t, list("acme"))
	last, err := log.Last(t.Context(), lostRun)
	require.NoError(t, err)
	require.Equal(t, []wire.EventType{wire.EventRunStarted, wire.EventRunCancelled}, last.Types)
}

func TestGetOwnership_NamesTheOwnerToTheRunsTenantOnly(t *testing.T) {
	t.Parallel()
	log, leases := memory.New(), kvmemory.New()
	startLost(t, log)
	now := time.Now()
	value, err := json.Marshal(lease.Record{
		Process:    "P1",
		Host:       "pod-1",
		State:      lease.Held,
		Renewed:    now,
		DurationMs: 60_000,
	})
	require.NoError(t, err)
	revision, err := leases.Update(t.Context(), "dispatcher.P1", value, 0)
	require.NoError(t, err)
	last, err := log.Last(t.Context(), lostRun)
	require.NoError(t, err)
	_, err = log.Append(t.Context(), frame.New(lostRun, subject.Step, last.Head(), nil).By(frame.Claimed("P1-7", 2, false)), last.Pos)
	require.NoError(t, err)
	s := dispatcherOver(t, log, leases) // which does not run: the lease of another does not expire

	req := &dispatcherv1.GetOwnershipRequest{Tenant: "acme", RunId: "run_1"}
	got, err := s.GetOwnership(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, "owned P1 pod-1", got.GetState()+" "+got.GetOwner()+" "+got.GetHost())
	require.EqualValues(t, 2, got.GetEpoch())
	require.NotEmpty(t, got.GetSince())
	require.Equal(t, wire.FormatTime(now.Add(time.Minute)), got.GetExpiresAt())
	_, err = s.GetOwnership(t.Context(), &dispatcherv1.GetOwnershipRequest{Tenant: "other", RunId: "run_1"})
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))

	require.NoError(t, leases.Delete(t.Context(), "dispatcher.P1", revision))
	got, err = s.GetOwnership(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, "expired", got.GetState())
	require.Empty(t, got.GetExpiresAt())
}
