package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// vault is a redactor that can lose its registrations, and rejects unregistered runs.
type vault struct {
	mu     sync.Mutex // guards the fields below
	known  map[string]bool
	opened int
	// before is called before a run is registered; nil disables it.
	before func()
}

func (v *vault) Open(_ context.Context, tenant, runID, ref string) error {
	if v.before != nil {
		v.before()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.opened++
	v.known[tenant+" "+runID] = ref == "main"
	return nil
}

func (v *vault) Close(_ context.Context, tenant, runID string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, tenant+" "+runID)
	return nil
}

func (v *vault) Redact(_ context.Context, tenant, runID string, registered bool, docs [][]byte) ([][]byte, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if registered && !v.known[tenant+" "+runID] {
		return nil, false, errors.New("not registered")
	}
	return docs, false, nil
}

// restart loses all registrations.
func (v *vault) restart() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.known)
}

// keeper is a redactor with its registrations.
type keeper interface {
	engine.Redactor
	engine.Secrets
}

func withKeys(t *testing.T, v keeper, m engine.Models) (*engine.Executor, *memory.Log) {
	t.Helper()
	log := memory.New()
	x := engine.New(engine.Config{
		Limits:  machine.Limits{MaxNodeExecutions: 10, MaxDuration: time.Hour, MaxParallel: 4},
		AckWait: 3 * time.Second,
	}, engine.Deps{
		Storage: engine.Storage{
			Log:         log,
			Definitions: define(t, nodeJSON("a", node.TypeCallPrompt, "{}")),
		},
		Services: engine.Services{Redactor: v, Secrets: v, Acceptor: noAcceptor{}, Models: m},
		Rules:    engine.Rules{Types: node.Builtin()},
		Timers: engine.Timers{
			Wait:   func(subject.Run, frame.Head, time.Time) {},
			Forget: func(string, string) {},
		},
		Telemetry: engine.Telemetry{Logger: slog.New(slog.DiscardHandler)},
		Clock:     time.Now,
	})
	rec, err := json.Marshal(&wire.RunRecord{
		RunID: "run_1", WorkflowID: "wf", Owner: wire.Owner{Tenant: "acme"}, EngineVersion: 1, CredentialRef: "main",
	})
	require.NoError(t, err)
	_, err = log.Append(t.Context(), frame.NewStart(theRun, rec), 0)
	require.NoError(t, err)
	return x, log
}

func handOut(t *testing.T, x *engine.Executor, log *memory.Log) wire.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	d, err := log.Next(ctx)
	require.NoError(t, err)
	x.Execute(t.Context(), d)
	frames, err := log.Run(t.Context(), theRun)
	require.NoError(t, err)
	st, _, err := machine.Load(frames)
	require.NoError(t, err)
	return st.Status
}

// A redactor that restarts during a model call rejects the call's answer. The next session
// registers the run's keys again (OpenWOP envelope contract §11, registry).
func TestExecute_RegistersTheRunsKeysInEachSession(t *testing.T) {
	t.Parallel()
	v := &vault{known: map[string]bool{}}
	calls := 0
	x, log := withKeys(t, v, models(func(_ context.Context, task model.Task, _ model.Journal) model.Result {
		require.Equal(t, "main", task.CredentialRef)
		if calls++; calls == 1 {
			v.restart()
		}
		return model.Result{
			Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(`"a long answer"`)}},
			Trust:  wire.Trusted,
		}
	}))
	require.Equal(t, wire.StatusRunning, handOut(t, x, log), "its answer is not recorded")
	require.Equal(t, wire.StatusCompleted, handOut(t, x, log))
	require.Equal(t, 2, v.opened)
	require.Empty(t, v.known, "the end of the run unregisters its keys")
}

// A run ends while a cancellation is in progress. The cancellation registers the run's keys again,
// after the end unregistered them, and must unregister them.
func TestCancel_ForgetsTheKeysOfARunThatEndedConcurrently(t *testing.T) {
	t.Parallel()
	v := &vault{known: map[string]bool{}}
	x, log := withKeys(t, v, nil)
	v.before = func() {
		start := log.Frames()[0]
		end := frame.New(theRun, subject.End, start.Head(), []wire.Event{
			wire.Draft{Type: wire.EventRunStarted}.Place("run_1", 0, time.Now()),
			wire.Draft{Type: wire.EventRunCompleted}.Place("run_1", 1, time.Now()),
		})
		_, err := log.Append(t.Context(), end, start.Pos)
		require.NoError(t, err)
	}
	st, already, err := x.Cancel(t.Context(), "acme", "run_1", "a long reason", "key")
	require.NoError(t, err)
	require.True(t, already)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.Equal(t, 1, v.opened)
	require.Empty(t, v.known)
}

func TestCancel_ForgetsTheRunsKeys(t *testing.T) {
	t.Parallel()
	v := &vault{known: map[string]bool{}}
	x, _ := withKeys(t, v, nil)
	st, _, err := x.Cancel(t.Context(), "acme", "run_1", "a long reason", "key")
	require.NoError(t, err)
	require.Equal(t, wire.StatusCancelled, st.Status)
	require.Equal(t, 1, v.opened)
	require.Empty(t, v.known)
}
