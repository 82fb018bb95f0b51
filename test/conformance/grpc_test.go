package conformance

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
)

// engine connects to the host's gRPC API.
func engine(t *testing.T) openwopv1.EngineClient {
	t.Helper()
	conn, err := grpc.NewClient(shared.Host(t).GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return openwopv1.NewEngineClient(conn)
}

func as(t *testing.T, key string, more ...string) context.Context {
	t.Helper()
	ctx := within(t, time.Minute)
	if key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key)
	}
	return metadata.AppendToOutgoingContext(ctx, more...)
}

func TestGRPC_ServesTheSameDocuments(t *testing.T) {
	t.Parallel()
	e, c := engine(t), client(t, testKey)
	caps, err := e.GetCapabilities(as(t, ""), &openwopv1.GetCapabilitiesRequest{})
	require.NoError(t, err)
	require.Equal(t, string(do(t, c, http.MethodGet, wellKnown, "").Body), string(caps.GetDocument().GetJson()))

	def, err := e.GetWorkflow(as(t, testKey), &openwopv1.GetWorkflowRequest{WorkflowId: "three"})
	require.NoError(t, err)
	require.Equal(t, string(do(t, c, http.MethodGet, "/v1/workflows/three", "").Body), string(def.GetDefinition().GetJson()))

	res, err := e.CreateRun(as(t, testKey), &openwopv1.CreateRunRequest{
		WorkflowId: "three", Inputs: &openwopv1.JsonDocument{Json: []byte(`{"n":9007199254740993}`)}, Tags: []string{"grpc"},
	})
	require.NoError(t, err)
	require.Equal(t, "pending", res.GetStatus())
	require.Equal(t, c.Base+"/v1/runs/"+res.GetRunId()+"/events", res.GetEventsUrl())
	events, err := c.Finish(within(t, patience), res.GetRunId())
	require.NoError(t, err)
	require.NotContains(t, string(events[0].Payload), `"transport"`, "the protocol has no word for gRPC")

	snap, err := e.GetRun(as(t, testKey), &openwopv1.GetRunRequest{RunId: res.GetRunId()})
	require.NoError(t, err)
	rest := do(t, c, http.MethodGet, "/v1/runs/"+res.GetRunId(), "")
	require.Equal(t, string(rest.Body), string(snap.GetSnapshot().GetJson()))
	require.Contains(t, string(rest.Body), "9007199254740993")
}

func TestGRPC_StreamsLikeSSE(t *testing.T) {
	t.Parallel()
	e, c := engine(t), client(t, testKey)
	id, _ := run(t, c, talk(0, "a", "b"))
	for _, tc := range []struct {
		modes  []string
		query  string
		after  *int64
		buffer int32
	}{
		{nil, "", nil, 0},
		{[]string{"debug"}, "?streamMode=debug", nil, 0},
		{[]string{"updates", "messages"}, "?streamMode=updates,messages", nil, 0},
		{[]string{"values"}, "?streamMode=values", nil, 0},
		{[]string{"debug"}, "?streamMode=debug", proto.Int64(0), 0},
		{[]string{"debug"}, "?streamMode=debug", proto.Int64(3), 0},
		{[]string{"debug"}, "?streamMode=debug&bufferMs=100", nil, 100},
	} {
		s, err := e.StreamRunEvents(as(t, testKey), &openwopv1.StreamRunEventsRequest{
			RunId: id, StreamModes: tc.modes, LastSequence: tc.after, BufferMs: tc.buffer,
		})
		require.NoError(t, err)
		var headers []string
		if tc.after != nil {
			n, err := json.Marshal(*tc.after)
			require.NoError(t, err)
			headers = []string{"Last-Event-ID", string(n)}
		}
		for i, f := range frames(t, c, id, tc.query, headers...) {
			item, err := s.Recv()
			require.NoError(t, err)
			require.Equal(t, f.Event, item.GetEvent(), "%+v, frame %d", tc, i)
			require.Equal(t, f.Data, string(item.GetData().GetJson()))
			n, err := json.Marshal(item.GetSequence())
			require.NoError(t, err)
			require.Equal(t, f.ID, string(n))
		}
		_, err = s.Recv()
		require.ErrorIs(t, err, io.EOF, "it ends after the terminal event")
	}
}

func TestGRPC_CancelsLikeREST(t *testing.T) {
	t.Parallel()
	e, c := engine(t), client(t, testKey)
	live := create(t, c, `{"workflowId":"wait"}`).RunID
	done, _ := run(t, c, `{"workflowId":"noop"}`)
	res, err := e.CancelRun(as(t, testKey), &openwopv1.CancelRunRequest{RunId: live, Reason: proto.String("r")})
	require.NoError(t, err)
	require.Contains(t, []string{"cancelling", "cancelled"}, res.GetStatus())
	require.Nil(t, res.AlreadyTerminal)
	await(t, c, live, patience, "cancelled")
	res, err = e.CancelRun(as(t, testKey), &openwopv1.CancelRunRequest{RunId: done})
	require.NoError(t, err)
	require.True(t, res.GetAlreadyTerminal())
	bulk, err := e.BulkCancelRuns(as(t, testKey), &openwopv1.BulkCancelRunsRequest{RunIds: []string{done, live, "ghost"}})
	require.NoError(t, err)
	require.Len(t, bulk.GetResults(), 3)
	require.Equal(t, "run_terminal", bulk.GetResults()[0].GetError().GetCode())
	require.True(t, bulk.GetResults()[1].GetOk())
	require.Equal(t, "not_found", bulk.GetResults()[2].GetError().GetCode())
}

func TestGRPC_ReplaysUnderAKeyAsRESTDoes(t *testing.T) {
	t.Parallel()
	e, c := engine(t), client(t, testKey)
	var header metadata.MD
	req := &openwopv1.CreateRunRequest{WorkflowId: "noop"}
	first, err := e.CreateRun(as(t, testKey, "idempotency-key", "over-grpc"), req, grpc.Header(&header))
	require.NoError(t, err)
	require.Empty(t, header.Get("openwop-idempotent-replay"))
	again, err := e.CreateRun(as(t, testKey, "idempotency-key", "over-grpc"), req, grpc.Header(&header))
	require.NoError(t, err)
	require.Equal(t, first.GetRunId(), again.GetRunId())
	require.Equal(t, []string{"true"}, header.Get("openwop-idempotent-replay"))
	require.Equal(t, first.GetRunId(), create(t, c, `{"workflowId":"noop"}`, "Idempotency-Key", "over-grpc").RunID, "one operation, two transports")
	_, err = e.CreateRun(as(t, testKey, "idempotency-key", "over-grpc"), &openwopv1.CreateRunRequest{WorkflowId: "three"})
	requireFault(t, err, codes.Aborted, "idempotency_key_mismatch")
}

// requireFault checks an error's gRPC code and the envelope in its details.
func requireFault(t *testing.T, err error, code codes.Code, want string) {
	t.Helper()
	st, ok := status.FromError(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, code, st.Code(), "%v", err)
	details := st.Proto().GetDetails()
	require.Len(t, details, 1, "%v", err)
	require.Equal(t, "openwop.dev/spec/v1/ErrorEnvelope", details[0].GetTypeUrl())
	var e struct{ Error, Message string }
	require.NoError(t, json.Unmarshal(details[0].GetValue(), &e), "the value is JSON, not a packed message")
	require.Equal(t, want, e.Error)
	require.NotEmpty(t, e.Message)
	if published.schemas != nil {
		require.NoError(t, published.schemas.Validate("error-envelope.schema.json", details[0].GetValue()))
	}
}

func TestGRPC_ErrorsCarryTheEnvelope(t *testing.T) {
	t.Parallel()
	client(t, "") // load the schemas
	e := engine(t)
	get := func(ctx context.Context, id string) error {
		_, err := e.GetRun(ctx, &openwopv1.GetRunRequest{RunId: id})
		return err
	}
	create := func(ctx context.Context, req *openwopv1.CreateRunRequest) error {
		_, err := e.CreateRun(ctx, req)
		return err
	}
	stream := func(ctx context.Context, req *openwopv1.StreamRunEventsRequest) error {
		s, err := e.StreamRunEvents(ctx, req)
		require.NoError(t, err)
		_, err = s.Recv()
		return err
	}
	done, _ := run(t, client(t, testKey), `{"workflowId":"noop"}`)
	requireFault(t, get(as(t, ""), done), codes.Unauthenticated, "unauthenticated")
	requireFault(t, get(as(t, "unknown"), "ghost"), codes.Unauthenticated, "unauthenticated")
	requireFault(t, get(as(t, writerKey), done), codes.PermissionDenied, "forbidden")
	requireFault(t, get(as(t, otherKey), done), codes.NotFound, "run_not_found")
	requireFault(t, get(as(t, testKey), "a.b.>"), codes.NotFound, "run_not_found")
	requireFault(t, create(as(t, testKey), &openwopv1.CreateRunRequest{}), codes.InvalidArgument, "validation_error")
	requireFault(t, create(as(t, testKey), &openwopv1.CreateRunRequest{WorkflowId: "ghost"}), codes.NotFound, "workflow_not_found")
	requireFault(t, create(as(t, testKey), &openwopv1.CreateRunRequest{WorkflowId: "noop", TenantId: proto.String("beta")}), codes.PermissionDenied, "forbidden")
	requireFault(t, create(as(t, readerKey), &openwopv1.CreateRunRequest{WorkflowId: "noop"}), codes.PermissionDenied, "forbidden")
	requireFault(t, create(as(t, testKey), &openwopv1.CreateRunRequest{WorkflowId: "gated"}), codes.FailedPrecondition, "capability_required")
	requireFault(t, stream(as(t, ""), &openwopv1.StreamRunEventsRequest{RunId: done}), codes.Unauthenticated, "unauthenticated")
	requireFault(t, stream(as(t, otherKey), &openwopv1.StreamRunEventsRequest{RunId: done}), codes.NotFound, "run_not_found")
	requireFault(t, stream(as(t, testKey), &openwopv1.StreamRunEventsRequest{RunId: done, StreamModes: []string{"all"}}), codes.InvalidArgument, "unsupported_stream_mode")
	requireFault(t, stream(as(t, testKey), &openwopv1.StreamRunEventsRequest{RunId: done, BufferMs: 5001}), codes.InvalidArgument, "validation_error")
}

// OpenWOP host contract §9.4: the trailers carry what REST sends in headers.
func TestGRPC_TrailersHaveTheTraceAndTheRetryDelay(t *testing.T) {
	t.Parallel()
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	e := engine(t)
	var trailer metadata.MD
	ended, _ := run(t, client(t, testKey), `{"workflowId":"noop"}`)
	for _, key := range []string{testKey, "unknown"} {
		_, _ = e.GetRun(as(t, key, "traceparent", trace), &openwopv1.GetRunRequest{RunId: ended}, grpc.Trailer(&trailer))
		require.Equal(t, []string{trace}, trailer.Get("traceparent"), key)
	}
	s, err := e.StreamRunEvents(as(t, testKey, "traceparent", trace), &openwopv1.StreamRunEventsRequest{RunId: ended})
	require.NoError(t, err)
	for err == nil {
		_, err = s.Recv()
	}
	require.Equal(t, []string{trace}, s.Trailer().Get("traceparent"))

	_, err = e.GetRun(as(t, testKey, "traceparent", "nonsense"), &openwopv1.GetRunRequest{RunId: ended}, grpc.Trailer(&trailer))
	require.NoError(t, err, "a malformed one is ignored")
	require.Empty(t, trailer.Get("traceparent"))

	busy := &openwopv1.CreateRunRequest{WorkflowId: "wait", ScopeId: proto.String("over-grpc")}
	first, err := e.CreateRun(as(t, testKey, "x-dedup", "enforce"), busy)
	require.NoError(t, err)
	_, err = e.CreateRun(as(t, testKey, "x-dedup", "enforce"), busy, grpc.Trailer(&trailer))
	requireFault(t, err, codes.AlreadyExists, "run_already_active")
	require.Equal(t, []string{"5"}, trailer.Get("retry-after"))
	_, err = e.CancelRun(as(t, testKey), &openwopv1.CancelRunRequest{RunId: first.GetRunId()})
	require.NoError(t, err)
}

// JSON bytes in a gRPC request follow the rules of a REST body.
func TestGRPC_ValidatesJSONFields(t *testing.T) {
	t.Parallel()
	client(t, "")
	e := engine(t)
	for name, doc := range map[string]string{
		"not JSON": `{`, "two documents": `{} {}`, "a list": `[]`, "a member twice": `{"a":1,"a":2}`, "invalid UTF-8": "{\"a\":\"\xff\"}", "too deep": nested(70),
	} {
		_, err := e.CreateRun(as(t, testKey), &openwopv1.CreateRunRequest{WorkflowId: "noop", Inputs: &openwopv1.JsonDocument{Json: []byte(doc)}})
		require.Error(t, err, name)
		requireFault(t, err, codes.InvalidArgument, "validation_error")
	}
}

func TestGRPC_ADisconnectCancelsNothing(t *testing.T) {
	t.Parallel()
	e, c := engine(t), client(t, testKey)
	id := create(t, c, talk(300, "a", "b", "c")).RunID // it must survive the client's disconnect
	ctx, cancel := context.WithCancel(as(t, testKey))
	s, err := e.StreamRunEvents(ctx, &openwopv1.StreamRunEventsRequest{RunId: id, StreamModes: []string{"debug"}})
	require.NoError(t, err)
	_, err = s.Recv()
	require.NoError(t, err)
	cancel()
	for err == nil {
		_, err = s.Recv()
	}
	require.NotErrorIs(t, err, io.EOF)
	require.Equal(t, "completed", await(t, c, id, patience, "completed", "cancelled", "failed").Status)
}

// §9.4: methods of families that this host does not advertise, and their REST routes.
func TestGRPC_AnUnsupportedMethodReturnsTheEnvelope(t *testing.T) {
	t.Parallel()
	conn, err := grpc.NewClient(shared.Host(t).GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	for key, want := range map[string]struct {
		grpc codes.Code
		http int
		code string
	}{"": {codes.Unauthenticated, http.StatusUnauthorized, "unauthenticated"}, testKey: {codes.Unimplemented, http.StatusNotFound, "not_found"}} {
		st := status.Convert(conn.Invoke(as(t, key), "/openwop.v1.Engine/GetArtifact", &openwopv1.GetRunRequest{RunId: "run"}, &openwopv1.GetRunResponse{}))
		require.Equal(t, want.grpc, st.Code(), key)
		require.Len(t, st.Proto().GetDetails(), 1)
		require.Equal(t, "openwop.dev/spec/v1/ErrorEnvelope", st.Proto().GetDetails()[0].GetTypeUrl())
		var envelope struct{ Error, Message string }
		require.NoError(t, json.Unmarshal(st.Proto().GetDetails()[0].GetValue(), &envelope))
		require.Equal(t, want.code, envelope.Error)
		require.NotEmpty(t, envelope.Message)

		a := do(t, client(t, key), http.MethodGet, "/v1/runs/run/artifacts/artifact", "")
		require.Equal(t, want.http, a.Status, key)
		require.Equal(t, want.code, a.Code(), key)
	}
}
