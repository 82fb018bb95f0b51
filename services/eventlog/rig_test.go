package eventlog_test

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/internal/rpc/rpctest"
	"waybill.dev/waybill/internal/runlog/memory"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// patience bounds every wait; a correct service needs milliseconds.
const patience = time.Minute

// rig is the service as other services see it: a client of a real server, over
// a log in memory and a SQLite file.
type rig struct {
	eventlogv1.EventLogClient
	log   *memory.Log
	svc   *eventlog.Service
	store *faultyStore
	path  string
	// stop ends the service's Run, stopServer its server.
	stop, stopServer func()
}

func newRig(t testing.TB) *rig {
	t.Helper()
	return openRig(t, memory.New(), filepath.Join(t.TempDir(), "eventlog.db"), eventlog.DefaultConfig())
}

func openRig(t testing.TB, log *memory.Log, path string, cfg eventlog.Config) *rig {
	t.Helper()
	return openRigOn(t, log, log, path, cfg)
}

// openRigOn is a rig whose service reads another log, which wraps the rig's.
func openRigOn(t testing.TB, read eventlog.Log, log *memory.Log, path string, cfg eventlog.Config) *rig {
	t.Helper()
	r := newStoppedRigOn(t, read, log, path, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.svc.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(r.stop)
	return r
}

// newStoppedRig is a rig whose Run has not been called.
func newStoppedRig(t testing.TB, log *memory.Log, path string, cfg eventlog.Config) *rig {
	t.Helper()
	return newStoppedRigOn(t, log, log, path, cfg)
}

func newStoppedRigOn(t testing.TB, read eventlog.Log, log *memory.Log, path string, cfg eventlog.Config) *rig {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path}, quiet, time.Now)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	faulty := &faultyStore{Store: s}
	deps := eventlog.Deps{Log: read, Store: faulty, Logger: quiet}
	if l, ok := read.(tieredLog); ok {
		deps.Cold = l.store
	}
	svc, err := eventlog.New(cfg, deps)
	require.NoError(t, err)

	srv := rpc.NewServer(quiet, nil, nil)
	svc.Register(srv)
	conn, stopServer := rpctest.Serve(t, srv)
	return &rig{
		EventLogClient: eventlogv1.NewEventLogClient(conn),
		log:            log,
		svc:            svc,
		store:          faulty,
		path:           path,
		stopServer:     stopServer,
	}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (r *rig) get(t testing.TB, runID string) (*eventlogv1.GetRunResponse, error) {
	t.Helper()
	return r.GetRun(within(t), &eventlogv1.GetRunRequest{Tenant: logtest.Tenant, RunId: runID})
}

func (r *rig) read(t testing.TB, runID string, after, limit int32) *eventlogv1.ReadEventsResponse {
	t.Helper()
	resp, err := r.ReadEvents(within(t), &eventlogv1.ReadEventsRequest{
		Tenant: logtest.Tenant,
		RunId:  runID,
		After:  after,
		Limit:  limit,
	})
	require.NoError(t, err)
	return resp
}

// begin appends the start of a run of the tests' tenant.
func (r *rig) begin(t testing.TB, runID string) *logtest.Writer {
	t.Helper()
	return logtest.Begin(t, r.log, logtest.Record(runID))
}

// follow opens a stream.
func (r *rig) follow(t testing.TB, ctx context.Context, runID string, after int32, snapshots bool) grpc.ServerStreamingClient[eventlogv1.FollowResponse] {
	t.Helper()
	s, err := r.Follow(ctx, &eventlogv1.FollowRequest{
		Tenant:    logtest.Tenant,
		RunId:     runID,
		After:     after,
		Snapshots: snapshots,
	})
	require.NoError(t, err)
	return s
}

// rest receives until the stream ends.
func rest(t testing.TB, s grpc.ServerStreamingClient[eventlogv1.FollowResponse]) []*eventlogv1.Event {
	t.Helper()
	var events []*eventlogv1.Event
	for {
		resp, err := s.Recv()
		if err == io.EOF {
			return events
		}
		require.NoError(t, err)
		events = append(events, resp.GetEvents()...)
	}
}

// docs returns the documents of events, and checks them against the other fields.
func docs(t testing.TB, w *logtest.Writer, events []*eventlogv1.Event) []string {
	t.Helper()
	var out []string
	for _, e := range events {
		want := w.Events[e.GetSequence()]
		require.Equal(t, string(want.Type), e.GetType())
		require.Equal(t, string(want.AppendJSON(nil)), string(e.GetDocument()))
		out = append(out, string(e.GetDocument()))
	}
	return out
}
