package engine_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/engine/cleartext"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// aboutSSN copies a sensitive input, and waits for as long as another input says.
const aboutSSN = `{"id":"wf","name":"wf","version":"1","nodes":[
	{"id":"copy","typeId":"core.identity","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{"text":{"type":"variable","variableName":"ssn"}}},
	{"id":"wait","typeId":"core.delay","name":"n","position":{"x":0,"y":0},"config":{"ms":3600000},"inputs":{}},
	{"id":"last","typeId":"core.identity","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{"again":{"type":"connection","nodeId":"copy","outputKey":"text"}}}],
	"edges":[{"id":"e","sourceNodeId":"copy","targetNodeId":"wait"},{"id":"f","sourceNodeId":"wait","targetNodeId":"last"}],"triggers":[],
	"variables":[{"name":"ssn","type":"string","sensitive":true}],"metadata":{},"settings":{}}`

// sealed is a run with a sensitive input whose clear values are in a store.
type sealed struct {
	log   *memory.Log
	store kv.Store
	exec  *engine.Executor
	now   time.Time
}

const ssn = "123-45-6789"

func newSealed(t *testing.T) *sealed {
	t.Helper()
	def, problems := workflow.Parse([]byte(aboutSSN))
	require.Empty(t, problems)
	s := &sealed{log: memory.New(), store: kvmemory.New(), now: time.Now()}
	v, err := cleartext.New(s.store, []byte(strings.Repeat("k", 32)))
	require.NoError(t, err)
	s.exec = engine.New(engine.Config{
		Limits:  machine.Limits{MaxNodeExecutions: 10, MaxDuration: 48 * time.Hour, MaxParallel: 4},
		AckWait: 3 * time.Second,
	}, engine.Deps{
		Storage: engine.Storage{
			Log:         s.log,
			Cleartext:   v,
			Definitions: oneDefinition{&definition.Entry{Def: def, Graph: workflow.Compile(def), Digest: def.Digest()}},
		},
		Services: engine.Services{Redactor: &redactor{}, Acceptor: noAcceptor{}},
		Rules:    engine.Rules{Types: node.Builtin()},
		Timers: engine.Timers{
			Wait:   func(subject.Run, frame.Head, time.Time) {},
			Forget: func(string, string) {},
		},
		Telemetry: engine.Telemetry{Logger: slog.New(slog.DiscardHandler)},
		Clock:     func() time.Time { return s.now },
	})
	rec := &wire.RunRecord{
		RunID: "run_1", WorkflowID: "wf", Owner: wire.Owner{Tenant: "acme"}, EngineVersion: 1, Masking: "mask",
		Inputs: map[string]json.RawMessage{"ssn": json.RawMessage(`"` + ssn + `"`)},
	}
	clear, err := json.Marshal(rec)
	require.NoError(t, err)
	require.NoError(t, v.Put(t.Context(), theRun, 0, "starter", clear))
	masked, err := json.Marshal(node.NewMaskPolicy(def, node.Builtin()).Record(rec))
	require.NoError(t, err)
	_, err = s.log.Append(t.Context(), frame.NewStart(theRun, masked).By("starter"), 0)
	require.NoError(t, err)
	return s
}

// next executes the run and returns its state from the log.
func (s *sealed) next(t *testing.T) *runstate.State {
	t.Helper()
	d, err := s.log.Next(t.Context())
	require.NoError(t, err)
	s.exec.Execute(t.Context(), d)
	frames, err := s.log.Run(t.Context(), theRun)
	require.NoError(t, err)
	for _, f := range frames {
		require.NotContains(t, string(f.Body), ssn)
	}
	st, _, err := machine.Load(frames)
	require.NoError(t, err)
	return st
}

// wake wakes the run after an hour.
func (s *sealed) wake(t *testing.T) {
	t.Helper()
	s.now = s.now.Add(time.Hour)
	wakeLost(t, s.exec, theRun)
}

func (s *sealed) entries(t *testing.T) []kv.Entry {
	t.Helper()
	all, err := kv.List(t.Context(), s.store, "")
	require.NoError(t, err)
	return all
}

// OpenWOP host contract §10.3: the log has masks, and a dispatcher that folds it continues with the
// clear values. Otherwise a connection would pass the mask on.
func TestSealed_RunsGoOnWithTheClearValues(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	require.Equal(t, wire.StatusRunning, s.next(t).Status)
	require.Len(t, s.entries(t), 2, "the record and a frame")
	s.wake(t)
	st := s.next(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.JSONEq(t, `"[REDACTED]"`, string(st.Variables["again"]))
	for _, e := range s.entries(t) {
		require.Less(t, len(e.Value), 40, "the clear values are erased when the run ends")
	}
}

// With the masks as values the run would compute something else, so it fails.
func TestSealed_RunsEndWhenTheirValuesAreGone(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	s.next(t)
	for _, e := range s.entries(t) {
		_, err := s.store.Put(t.Context(), e.Key, []byte("nothing that opens"))
		require.NoError(t, err)
	}
	s.wake(t)
	st := s.next(t)
	require.Equal(t, wire.StatusFailed, st.Status)
	require.Equal(t, "internal_error", st.Error.Code)
	require.Equal(t, runstate.NodeCancelled, st.Nodes["wait"].Status)
	require.Nil(t, st.Nodes["last"], "no node ran with a mask")
}

// A change from outside keeps the clear values and stores its own.
func TestSealed_RunsCanBePausedAndResumed(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	s.next(t)
	_, err := s.exec.Pause(t.Context(), "acme", "run_1", wire.DrainNot, "later", "key")
	require.NoError(t, err)
	_, err = s.exec.Resume(t.Context(), "acme", "run_1", "now")
	require.NoError(t, err)
	s.now = s.now.Add(2 * time.Hour)
	st := s.next(t)
	for range 3 {
		if st.Status.Terminal() {
			break
		}
		s.wake(t)
		st = s.next(t)
	}
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.JSONEq(t, `"[REDACTED]"`, string(st.Variables["again"]))
}
