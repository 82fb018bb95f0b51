package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/engine"
)

// reporter is a dispatcher that reports a status.
type reporter struct {
	dispatcherv1.DispatcherClient
	status *dispatcherv1.GetDispatchStatusResponse
	err    error
}

func (r *reporter) GetDispatchStatus(context.Context, *dispatcherv1.GetDispatchStatusRequest, ...grpc.CallOption) (*dispatcherv1.GetDispatchStatusResponse, error) {
	return r.status, r.err
}

// reader is a read model that reports a status.
type reader struct {
	eventlogv1.EventLogClient
	status *eventlogv1.GetReadModelStatusResponse
	err    error
}

func (r *reader) GetReadModelStatus(context.Context, *eventlogv1.GetReadModelStatusRequest, ...grpc.CallOption) (*eventlogv1.GetReadModelStatusResponse, error) {
	return r.status, r.err
}

func TestGetSystem_HasWhatEachServiceReports(t *testing.T) {
	t.Parallel()
	d := &reporter{status: &dispatcherv1.GetDispatchStatusResponse{
		Dispatchers: []*dispatcherv1.DispatcherStatus{{Process: "p1", Host: "pod", State: "held", Runs: 7}},
		Queue:       &dispatcherv1.QueueStatus{Waiting: 3, Taken: 7, Limited: 2},
		LogBytes:    proto.Int64(1 << 20), LogNewest: "2026-05-01T12:00:00.000Z",
		Providers: []*dispatcherv1.ProviderStatus{
			{Id: "openai", MaxConcurrent: 4, InFlight: 1, LastErrorCode: "provider_unavailable", LastErrorStatus: 503, LastErrorAt: "2026-05-01T11:00:00.000Z"},
			{Id: "sample"},
		},
	}}
	e := &reader{status: &eventlogv1.GetReadModelStatusResponse{End: 100, Applied: 98, Followers: 5}}
	s := engine.New(engine.Config{MaxStreams: 1}, engine.Deps{
		Clients:  engine.Clients{Dispatcher: d, EventLog: e},
		Warnings: func() []string { return []string{"the run log has lost records: 1"} },
		Clock:    time.Now,
	})
	res, err := s.GetSystem(t.Context(), &hostv1.GetSystemRequest{})
	require.NoError(t, err)
	require.Equal(t, "p1", res.GetDispatchers()[0].GetProcess())
	require.EqualValues(t, []int64{3, 7, 2}, []int64{res.GetQueue().GetWaiting(), res.GetQueue().GetTaken(), res.GetQueue().GetLimited()})
	require.EqualValues(t, []int64{1 << 20, 100, 98, 2}, []int64{res.GetLog().GetBytes(), res.GetLog().GetEnd(), res.GetReadModel().GetApplied(), res.GetReadModel().GetBehind()})
	limited, free := res.GetProviders()[0], res.GetProviders()[1]
	require.EqualValues(t, []int32{4, 1, 503}, []int32{limited.GetMaxConcurrent(), limited.GetInFlight(), limited.GetLastError().GetStatus()})
	require.Nil(t, limited.RequestsPerMinute, "no limit is not 0")
	require.Nil(t, free.GetLastError())
	require.Len(t, res.GetProblems(), 1)
	require.Equal(t, "host", res.GetProblems()[0].GetPart())
}

func TestGetSystem_AnUnknownSizeIsNotZero(t *testing.T) {
	t.Parallel()
	s := engine.New(engine.Config{MaxStreams: 1}, engine.Deps{
		Clients: engine.Clients{
			Dispatcher: &reporter{status: &dispatcherv1.GetDispatchStatusResponse{}},
			EventLog:   &reader{status: &eventlogv1.GetReadModelStatusResponse{}},
		},
		Clock: time.Now,
	})
	res, err := s.GetSystem(t.Context(), &hostv1.GetSystemRequest{})
	require.NoError(t, err)
	require.NotNil(t, res.GetLog())
	require.Nil(t, res.GetLog().Bytes)
}

// hanging is a dispatcher that never answers.
type hanging struct{ dispatcherv1.DispatcherClient }

func (hanging) GetDispatchStatus(ctx context.Context, _ *dispatcherv1.GetDispatchStatusRequest, _ ...grpc.CallOption) (*dispatcherv1.GetDispatchStatusResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A service that hangs does not hide the others.
func TestGetSystem_AnswersWhileAServiceHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &reader{status: &eventlogv1.GetReadModelStatusResponse{End: 100, Applied: 98}}
		s := engine.New(engine.Config{MaxStreams: 1}, engine.Deps{Clients: engine.Clients{Dispatcher: hanging{}, EventLog: e}, Clock: time.Now})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		res, err := s.GetSystem(ctx, &hostv1.GetSystemRequest{})
		require.NoError(t, err)
		require.EqualValues(t, 98, res.GetReadModel().GetApplied())
		require.Equal(t, "no dispatcher responds: unreachable", res.GetProblems()[0].GetMessage())
	})
}

// When a service is down, the answer has the rest, and no internal text.
func TestGetSystem_AnswersWithoutAService(t *testing.T) {
	t.Parallel()
	secret := errors.New("dial postgres://user:hunter2@db")
	d, e := &reporter{err: secret}, &reader{err: secret}
	s := engine.New(engine.Config{MaxStreams: 1}, engine.Deps{Clients: engine.Clients{Dispatcher: d, EventLog: e}, Clock: time.Now})
	res, err := s.GetSystem(t.Context(), &hostv1.GetSystemRequest{})
	require.NoError(t, err)
	require.Len(t, res.GetProblems(), 2)
	require.NotContains(t, res.String(), "hunter2")
	require.Nil(t, res.GetQueue())
	require.Nil(t, res.GetReadModel())

	e.status, e.err = &eventlogv1.GetReadModelStatusResponse{End: 5, Applied: 5}, nil
	d.status, d.err = &dispatcherv1.GetDispatchStatusResponse{}, nil
	res, err = s.GetSystem(t.Context(), &hostv1.GetSystemRequest{})
	require.NoError(t, err)
	require.Zero(t, res.GetReadModel().GetBehind())
	require.Equal(t, "the queue cannot be read", res.GetProblems()[0].GetMessage())
}
