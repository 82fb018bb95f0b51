package admission_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/admission"
)

// one is a host with one tenant.
var one = admission.Tenants{Of: func(string) (tenant, keyID string) { return "acme", "key_1" }, Sole: true}

// byCredential takes a credential for the name of its tenant.
var byCredential = admission.Tenants{Of: func(credential string) (tenant, keyID string) { return credential, credential }}

func clock() time.Time { return time.Unix(1000, 0) }

// refused checks the error of a rejected request, and returns its Retry-After.
func refused(t *testing.T, err error) time.Duration {
	t.Helper()
	e, ok := fault.As(err)
	require.True(t, ok)
	require.Equal(t, fault.ServiceUnavailable, e.Code)
	require.Positive(t, e.RetryAfter)
	return e.RetryAfter
}

func TestClassOf_PutsStartsFirstAndAnswersLast(t *testing.T) {
	t.Parallel()
	for class, methods := range map[admission.Class][]string{
		admission.Start: {openwopv1.Engine_CreateRun_FullMethodName, openwopv1.Engine_ForkRun_FullMethodName, hostv1.Host_ForkNode_FullMethodName},
		admission.Urgent: {
			openwopv1.Engine_CancelRun_FullMethodName, openwopv1.Engine_BulkCancelRuns_FullMethodName,
			openwopv1.Engine_PauseRun_FullMethodName,
			openwopv1.Engine_ResumeRun_FullMethodName, openwopv1.Engine_ResolveInterruptByRun_FullMethodName,
			openwopv1.Engine_ResolveInterruptByToken_FullMethodName,
		},
		admission.Ordinary: {
			openwopv1.Engine_GetRun_FullMethodName, hostv1.Host_PollRunEvents_FullMethodName,
			hostv1.Host_PutWorkflow_FullMethodName, "/unknown",
		},
		admission.Free: {openwopv1.Engine_GetCapabilities_FullMethodName, "/grpc.health.v1.Health/Check"},
	} {
		for _, m := range methods {
			require.Equal(t, class, admission.ClassOf(m), m)
		}
	}
}

func TestGate_ReservesAnEighthForUrgentRequests(t *testing.T) {
	t.Parallel()
	g := admission.NewGate(admission.Config{MaxRequests: 16}, clock, one)
	for range 14 {
		_, err := g.Enter(admission.Ordinary, g.Identify("", ""))
		require.NoError(t, err)
	}
	_, err := g.Enter(admission.Ordinary, g.Identify("", ""))
	refused(t, err)
	_, err = g.Enter(admission.Start, g.Identify("", ""))
	refused(t, err)
	leave, err := g.Enter(admission.Urgent, g.Identify("", ""))
	require.NoError(t, err)
	_, err = g.Enter(admission.Urgent, g.Identify("", ""))
	require.NoError(t, err)
	_, err = g.Enter(admission.Urgent, g.Identify("", ""))
	refused(t, err)
	_, err = g.Enter(admission.Free, g.Identify("", ""))
	require.NoError(t, err)
	leave()
	_, err = g.Enter(admission.Urgent, g.Identify("", ""))
	require.NoError(t, err, "the place is given back")
}

func TestGate_LimitsStartsOnly(t *testing.T) {
	t.Parallel()
	g := admission.NewGate(admission.Config{MaxStarts: 1}, clock, one)
	leave, err := g.Enter(admission.Start, g.Identify("", ""))
	require.NoError(t, err)
	var waits []time.Duration
	for range 4 {
		_, err = g.Enter(admission.Start, g.Identify("", ""))
		waits = append(waits, refused(t, err))
	}
	require.Equal(t, []time.Duration{
		time.Second,
		2 * time.Second,
		3 * time.Second,
		time.Second,
	}, waits, "they do not come again together")
	_, err = g.Enter(admission.Ordinary, g.Identify("", ""))
	require.NoError(t, err)
	leave()
	_, err = g.Enter(admission.Start, g.Identify("", ""))
	require.NoError(t, err)
}

// slow is a dispatcher whose runs start late.
type slow struct {
	dispatcherv1.DispatcherClient
	begins time.Duration
	err    error
}

func (s slow) StartRun(context.Context, *dispatcherv1.StartRunRequest, ...grpc.CallOption) (*dispatcherv1.StartRunResponse, error) {
	return &dispatcherv1.StartRunResponse{BeginDelayMs: s.begins.Milliseconds()}, s.err
}

func (s slow) ForkRun(context.Context, *dispatcherv1.ForkRunRequest, ...grpc.CallOption) (*dispatcherv1.ForkRunResponse, error) {
	return &dispatcherv1.ForkRunResponse{BeginDelayMs: s.begins.Milliseconds()}, s.err
}

func TestGate_LearnsFromTheDispatchersAnswers(t *testing.T) {
	t.Parallel()
	start := func(d dispatcherv1.DispatcherClient) { _, _ = d.StartRun(t.Context(), nil) }
	fork := func(d dispatcherv1.DispatcherClient) { _, _ = d.ForkRun(t.Context(), nil) }
	for _, tt := range []struct {
		name string
		slow slow
		call func(dispatcherv1.DispatcherClient)
		want bool // starts are rejected
	}{
		{"runs begin in time", slow{begins: 400 * time.Millisecond}, start, false},
		{"runs begin late", slow{begins: 3 * time.Second}, start, true},
		{"forks begin late", slow{begins: 3 * time.Second}, fork, true},
		{"it takes none", slow{err: fault.New(fault.ServiceUnavailable, "full")}, start, true},
		{"it does not answer in time", slow{err: context.DeadlineExceeded}, start, true},
		{"the caller was wrong", slow{err: fault.New(fault.WorkflowNotFound, "none")}, start, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			now := clock()
			g := admission.NewGate(admission.Config{StartDelay: 500 * time.Millisecond}, func() time.Time { return now }, one)
			rejected := 0
			for range 20 { // in each fifth of a second
				for range 10 {
					leave, err := g.Enter(admission.Start, g.Identify("", ""))
					if err != nil {
						refused(t, err)
						rejected++
						continue
					}
					tt.call(g.ObserveStarts(tt.slow))
					leave()
				}
				_, err := g.Enter(admission.Ordinary, g.Identify("", ""))
				require.NoError(t, err)
				now = now.Add(200 * time.Millisecond)
			}
			require.Equal(t, tt.want, rejected > 0, "%d refused", rejected)
			require.Less(t, rejected, 190, "some are always admitted, so that recovery is detected")
		})
	}
}

// The tenant of the credential decides, over gRPC as over REST.
func TestGate_RejectsTheTenantAboveItsShare(t *testing.T) {
	t.Parallel()
	now := clock()
	whose := func(credential string) (tenant, keyID string) {
		return map[string]string{"Bearer a1": "a", "Bearer a2": "a", "Bearer b": "b"}[credential], credential
	}
	g := admission.NewGate(admission.Config{StartDelay: 500 * time.Millisecond}, func() time.Time { return now }, admission.Tenants{Of: whose})
	d := g.ObserveStarts(slow{begins: time.Second})
	start := func(credential string) error {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", credential))
		_, err := g.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: openwopv1.Engine_CreateRun_FullMethodName}, func(ctx context.Context, _ any) (any, error) {
			return d.StartRun(ctx, nil)
		})
		return err
	}
	refusedOf := map[string]int{}
	for range 50 { // in each fifth of a second
		for range 30 {
			for _, credential := range []string{"Bearer a1", "Bearer a2"} {
				if start(credential) != nil {
					refusedOf["a"]++
				}
			}
		}
		if start("Bearer b") != nil {
			refusedOf["b"]++
		}
		now = now.Add(200 * time.Millisecond)
	}
	require.Zero(t, refusedOf["b"])
	require.Greater(t, refusedOf["a"], 1500, "of 3,000")
}

func TestGate_AdmitsAllWithoutALimit(t *testing.T) {
	t.Parallel()
	g := admission.NewGate(admission.Config{}, clock, one)
	for range 10_000 {
		_, err := g.Enter(admission.Start, g.Identify("", ""))
		require.NoError(t, err)
	}
}

func TestGate_CountsRejectionsByReason(t *testing.T) {
	t.Parallel()
	g := admission.NewGate(admission.Config{MaxRequests: 2, MaxStarts: 1}, clock, one)
	for _, c := range []admission.Class{admission.Start, admission.Start, admission.Ordinary, admission.Urgent} {
		_, _ = g.Enter(c, g.Identify("", ""))
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(g.Collectors()...)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP waybill_gateway_refused_total Requests rejected by admission control, by reason.
# TYPE waybill_gateway_refused_total counter
waybill_gateway_refused_total{reason="bytes"} 0
waybill_gateway_refused_total{reason="grpc_streams"} 0
waybill_gateway_refused_total{reason="requests"} 1
waybill_gateway_refused_total{reason="start_delay"} 0
waybill_gateway_refused_total{reason="starts"} 1
waybill_gateway_refused_total{reason="unknown_callers"} 0
# HELP waybill_gateway_requests_in_flight Requests in progress, excluding streams.
# TYPE waybill_gateway_requests_in_flight gauge
waybill_gateway_requests_in_flight 2
# HELP waybill_gateway_start_rate_limit Admitted starts of runs per second; +Inf means no limit.
# TYPE waybill_gateway_start_rate_limit gauge
waybill_gateway_start_rate_limit +Inf
`), "waybill_gateway_refused_total", "waybill_gateway_requests_in_flight", "waybill_gateway_start_rate_limit"))
}

func TestConfig_ReportsInvalidSettings(t *testing.T) {
	t.Parallel()
	require.NoError(t, admission.DefaultConfig().Validate())
	require.NoError(t, admission.Config{}.Validate())
	require.ErrorContains(t, admission.Config{MaxRequests: -1}.Validate(), "maxRequests -1")
	require.ErrorContains(t, admission.Config{MaxStarts: -1}.Validate(), "maxStarts -1")
	for _, d := range []time.Duration{time.Millisecond, time.Hour, -1} {
		require.ErrorContains(t, admission.Config{StartDelay: d}.Validate(), "startDelay")
	}
}
