package dispatcher_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

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

// service is a dispatcher over memory that runs until the test ends.
func service(t *testing.T, log *memory.Log, owners dispatcher.Owners) *dispatcher.Service {
	t.Helper()
	providers, err := provider.NewRegistry()
	require.NoError(t, err)
	s, err := dispatcher.New(dispatcher.DefaultConfig(), dispatcher.Deps{
		Log: log, Queue: log, Workflows: kvmemory.New(), Claims: kvmemory.New(), Quarantine: kvmemory.New(), Owners: owners,
		Redactor: noSecrets{}, EventLog: noTimers{}, Providers: providers, Clock: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
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

// startLost appends the start of a run whose definition is not there.
func startLost(t *testing.T, log *memory.Log) {
	t.Helper()
	rec, err := json.Marshal(&wire.RunRecord{
		RunID: "run_1", WorkflowID: "wf", WorkflowDigest: "sha256:00", Owner: wire.Owner{Tenant: "acme"}, EngineVersion: 1, CreatedAt: wire.FormatTime(time.Now()),
	})
	require.NoError(t, err)
	_, err = log.Append(t.Context(), frame.NewStart(lostRun, rec), 0)
	require.NoError(t, err)
}

func TestQuarantine_ARunWithoutItsDefinitionIsListedAndEnded(t *testing.T) {
	t.Parallel()
	log := memory.New()
	s := service(t, log, nil)
	startLost(t, log)
	list := func(tenant string) []*dispatcherv1.QuarantinedRun {
		res, err := s.ListQuarantinedRuns(t.Context(), &dispatcherv1.ListQuarantinedRunsRequest{Tenant: tenant, Limit: 10})
		require.NoError(t, err)
		return res.GetRuns()
	}
	require.Eventually(t, func() bool { return len(list("acme")) == 1 }, 5*time.Second, 5*time.Millisecond)
	got := list("acme")[0]
	require.Equal(t, "definition_missing", got.GetReason())
	require.EqualValues(t, 10, got.GetTries())
	require.NotEmpty(t, got.GetSince())
	require.NotEmpty(t, got.GetNextCheckAt())
	require.Empty(t, list("other"))

	_, err := s.RetryQuarantinedRun(t.Context(), &dispatcherv1.RetryQuarantinedRunRequest{Tenant: "acme", RunId: "run_1"})
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	_, err = s.EndQuarantinedRun(t.Context(), &dispatcherv1.EndQuarantinedRunRequest{Tenant: "other", RunId: "run_1"})
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
	res, err := s.EndQuarantinedRun(t.Context(), &dispatcherv1.EndQuarantinedRunRequest{Tenant: "acme", RunId: "run_1", EndedBy: "ops"})
	require.NoError(t, err)
	require.Equal(t, "cancelled", res.GetStatus())
	require.Empty(t, list("acme"))
	last, err := log.Last(t.Context(), lostRun)
	require.NoError(t, err)
	require.Equal(t, []wire.EventType{wire.EventRunStarted, wire.EventRunCancelled}, last.Types)
}

func TestGetOwnership_IsUnknownWhereOwnersAreNotRecorded(t *testing.T) {
	t.Parallel()
	log := memory.New()
	startLost(t, log)
	got, err := service(t, log, nil).GetOwnership(t.Context(), &dispatcherv1.GetOwnershipRequest{Tenant: "acme", RunId: "run_1"})
	require.NoError(t, err)
	require.Equal(t, "unknown", got.GetState())
}

// owners knows the owner of every run.
type owners struct{}

func (owners) Of(_ context.Context, r subject.Run) (dispatcher.Ownership, error) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return dispatcher.Ownership{State: dispatcher.OwnerOwned, Owner: "of " + r.WorkflowID, Host: "pod-1", Epoch: 2, Since: at, ExpiresAt: at.Add(time.Minute)}, nil
}

func TestGetOwnership_NamesTheOwnerToTheRunsTenantOnly(t *testing.T) {
	t.Parallel()
	log := memory.New()
	startLost(t, log)
	req := &dispatcherv1.GetOwnershipRequest{Tenant: "acme", RunId: "run_1"}
	s := service(t, log, owners{})
	got, err := s.GetOwnership(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, "owned of wf pod-1", got.GetState()+" "+got.GetOwner()+" "+got.GetHost())
	require.EqualValues(t, 2, got.GetEpoch())
	require.Equal(t, "2026-01-02T03:04:05.000Z", got.GetSince())
	require.Equal(t, "2026-01-02T03:05:05.000Z", got.GetExpiresAt())
	_, err = s.GetOwnership(t.Context(), &dispatcherv1.GetOwnershipRequest{Tenant: "other", RunId: "run_1"})
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
}
