package rest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"waybill.dev/waybill/internal/rpc/rpctest"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway"
)

// late is a dispatcher whose runs start after ten seconds; it counts calls.
type late struct {
	dispatcherv1.DispatcherClient
	starts int
}

func (l *late) StartRun(ctx context.Context, req *dispatcherv1.StartRunRequest, opts ...grpc.CallOption) (*dispatcherv1.StartRunResponse, error) {
	l.starts++
	res, err := l.DispatcherClient.StartRun(ctx, req, opts...)
	if err == nil {
		res.BeginDelayMs = 10_000
	}
	return res, err
}

// silent is a redactor that must not be called.
type silent struct{ redactorv1.RedactorClient }

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("not to be read")
}

// overloaded is a host that refuses starts.
func overloaded(t *testing.T) (*host, *late) {
	t.Helper()
	now, l := time.Unix(1_700_000_000, 0), &late{}
	h := newHostWith(t, func(d *gateway.Deps) {
		l.DispatcherClient = d.Dispatcher
		d.Dispatcher, d.Redactor, d.Clock = l, silent{}, func() time.Time { return now }
	}, func(c *gateway.Config) { c.Admission.StartDelay = 500 * time.Millisecond })
	for range 100 {
		if h.as(t, full, "POST", "/v1/runs", `{"workflowId":"wf"}`).Code == http.StatusServiceUnavailable {
			l.starts = 0
			return h, l
		}
		now = now.Add(20 * time.Millisecond)
	}
	require.Fail(t, "all was taken")
	return nil, nil
}

// OpenWOP host contract §2.0 and §11.3: the capacity gate comes before the credential, the body and
// every side effect.
func TestOverload_RejectsStartsBeforeAnySideEffect(t *testing.T) {
	t.Parallel()
	h, dispatcher := overloaded(t)
	for _, credential := range []string{full, "Bearer unknown", ""} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/runs", unread{t})
		r.Header.Set("Authorization", credential)
		r.Header.Set("Idempotency-Key", "k1")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		e := refused(t, w, fault.ServiceUnavailable)
		after, err := strconv.Atoi(w.Header().Get("Retry-After"))
		require.NoError(t, err)
		require.EqualValues(t, after, e.Details["retryAfter"], "the header and the details agree")
		require.Positive(t, after)
	}
	refused(t, h.as(t, full, "POST", "/v1/runs/run_1:fork", `{"mode":"replay"}`), fault.ServiceUnavailable)
	require.Zero(t, dispatcher.starts)
}

func TestOverload_AnswersOtherRequests(t *testing.T) {
	t.Parallel()
	h, _ := overloaded(t)
	for _, ask := range [][2]string{
		{"GET", "/v1/runs/run_1"},
		{"GET", "/v1/runs"},
		{"GET", "/.well-known/openwop"},
		{"GET", "/v1/openapi.json"},
		{"GET", "/healthz"},
		{"POST", "/v1/runs/run_1/cancel"},
	} {
		require.Equal(t, http.StatusOK, h.as(t, full, ask[0], ask[1], "").Code, ask)
	}
}

// OpenWOP host contract §9.4: gRPC calls count as well and get Retry-After in a trailer.
func TestOverload_RefusesStartsOverGRPC(t *testing.T) {
	t.Parallel()
	h, dispatcher := overloaded(t)
	conn, _ := rpctest.Serve(t, h.svc.Server())
	var trailer metadata.MD
	_, err := openwopv1.NewEngineClient(conn).CreateRun(t.Context(), &openwopv1.CreateRunRequest{WorkflowId: "wf"}, grpc.Trailer(&trailer))
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), status.Code(err))
	require.NotEqual(t, codes.Unauthenticated, status.Code(err))
	require.NotEmpty(t, trailer.Get("retry-after"))
	require.Zero(t, dispatcher.starts)
}
