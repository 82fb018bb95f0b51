package dispatcher_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/kv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog/memory"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/engine/lease"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// readModel names the owner of the one run, as its log has it.
type readModel struct {
	noTimers
	log *memory.Log
}

func (m readModel) ListOwnedRuns(_ context.Context, r *eventlogv1.ListOwnedRunsRequest, _ ...grpc.CallOption) (*eventlogv1.ListOwnedRunsResponse, error) {
	out, owner := &eventlogv1.ListOwnedRunsResponse{}, frame.Ownership{}
	for _, f := range m.log.Frames() {
		owner = owner.After(f)
	}
	if owner.Owner == r.GetProcess() && r.GetAfter().GetRunId() == "" {
		out.Runs = append(out.Runs, &eventlogv1.OwnedRun{
			Tenant:     lostRun.Tenant,
			WorkflowId: lostRun.WorkflowID,
			RunId:      lostRun.RunID,
		})
	}
	return out, nil
}

// fleet are the stores that dispatchers share.
type fleet struct {
	log                *memory.Log
	leases, quarantine kv.Store
}

// begin runs a dispatcher until kill is called or the test ends.
func (f fleet) begin(t *testing.T) (s *dispatcher.Service, kill func()) {
	t.Helper()
	providers, err := provider.NewRegistry()
	require.NoError(t, err)
	s, err = dispatcher.New(dispatcher.DefaultConfig(), dispatcher.Deps{
		Storage: dispatcher.Storage{
			Log:        f.log,
			Workflows:  kvmemory.New(),
			Claims:     kvmemory.New(),
			Quarantine: f.quarantine,
			Leases:     f.leases,
		},
		Queueing: dispatcher.Queueing{Queue: f.log},
		Services: dispatcher.Services{Redactor: noSecrets{}, EventLog: readModel{log: f.log}},
		Calls:    dispatcher.Calls{Providers: providers},
		Clock:    time.Now,
		Logger:   slog.Default(),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	kill = func() { cancel(); <-done }
	t.Cleanup(kill)
	return s, kill
}

// processes are those that have a lease record, by state.
func (f fleet) processes(t *testing.T) map[lease.State][]string {
	t.Helper()
	all, err := kv.List(t.Context(), f.leases, "dispatcher.")
	require.NoError(t, err)
	out := map[lease.State][]string{}
	for _, e := range all {
		var r lease.Record
		require.NoError(t, json.Unmarshal(e.Value, &r))
		out[r.State] = append(out[r.State], r.Process)
	}
	return out
}

// append appends a frame to the one run.
func (f fleet) append(t *testing.T, kind subject.Kind, writer string, events ...wire.Event) {
	t.Helper()
	last, err := f.log.Last(t.Context(), lostRun)
	require.NoError(t, err)
	_, err = f.log.Append(t.Context(), frame.New(lostRun, kind, last.Head(), events).By(writer), last.Pos)
	require.NoError(t, err)
}

// A quarantined run stays in quarantine when the dispatcher that owned it ends: nothing is appended to
// its log, and no dispatcher tries it again.
func TestQuarantine_OutlivesTheDispatcherThatOwnedTheRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		drain   bool
		damaged bool
		reason  string
	}{
		"drained":                {drain: true, reason: "definition_missing"},
		"killed":                 {reason: "definition_missing"},
		"drained, a damaged log": {drain: true, damaged: true, reason: "log_damaged"},
		"killed, a damaged log":  {damaged: true, reason: "log_damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := fleet{memory.New(), kvmemory.New(), kvmemory.New()}
				f.log.SetRetryDelay(100 * time.Millisecond)
				s, kill := f.begin(t)
				time.Sleep(time.Second) //nolint:forbidigo // in a bubble
				owner := f.processes(t)[lease.Held][0]
				startLost(t, f.log)
				begin := wire.Draft{Type: wire.EventRunStarted, Payload: []byte(`{}`)}.Place("run_1", 0, time.Now())
				f.append(t, subject.Step, owner+"-7@1", begin)
				f.append(t, subject.Wake, owner+"-8")
				if c.damaged {
					f.log.Damage(2)
				}
				list := func(s *dispatcher.Service) []*dispatcherv1.QuarantinedRun {
					res, err := s.ListQuarantinedRuns(t.Context(), &dispatcherv1.ListQuarantinedRunsRequest{Tenant: "acme", Limit: 10})
					require.NoError(t, err)
					return res.GetRuns()
				}
				time.Sleep(3 * time.Second) //nolint:forbidigo // in a bubble
				require.Len(t, list(s), 1)
				before := list(s)[0]
				require.Equal(t, c.reason, before.GetReason())
				frames := len(f.log.Frames())

				other, _ := f.begin(t)
				if c.drain {
					s.Drain(t.Context())
				}
				kill()
				time.Sleep(40 * time.Second) //nolint:forbidigo // in a bubble: less than the time to the next check
				require.NotContains(t, f.processes(t), lease.Expired)
				require.NotContains(t, f.processes(t), lease.Released, "its runs were handed on")
				require.Len(t, f.log.Frames(), frames, "nothing is appended")
				require.Equal(t, before, list(other)[0], "no dispatcher tried it again")

				if c.damaged {
					f.log.Damage(2) // it is whole again
				}
				res, err := other.EndQuarantinedRun(t.Context(), &dispatcherv1.EndQuarantinedRunRequest{
					Tenant:  "acme",
					RunId:   "run_1",
					EndedBy: "ops",
				})
				require.NoError(t, err)
				require.Equal(t, "cancelled", res.GetStatus())
				require.Empty(t, list(other))
			})
		})
	}
}
