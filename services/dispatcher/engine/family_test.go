package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// library finds definitions by id and by digest.
type library struct {
	byID, byDigest map[string]*definition.Entry
}

func (l library) Get(_ context.Context, _, id string) (*definition.Entry, error) {
	if e := l.byID[id]; e != nil {
		return e, nil
	}
	return nil, fault.New(fault.WorkflowNotFound, "no such workflow")
}

func (l library) ByDigest(_ context.Context, digest string) (*definition.Entry, error) {
	if e := l.byDigest[digest]; e != nil {
		return e, nil
	}
	return nil, fault.New(fault.WorkflowNotFound, "no such document")
}

func (l library) add(t *testing.T, id, variables string, nodes ...string) {
	t.Helper()
	def, problems := workflow.Parse(fmt.Appendf(nil, `{"id":%q,"name":"n","version":"1","nodes":[%s],"edges":[],"triggers":[],"variables":[%s],"metadata":{},"settings":{"maxRetries":1}}`,
		id, strings.Join(nodes, ","), variables))
	require.Empty(t, problems)
	e := &definition.Entry{Def: def, Graph: workflow.Compile(def), Digest: def.Digest()}
	l.byID[id], l.byDigest[e.Digest] = e, e
}

// mortal is the log of a process that dies after a number of appends. stores decides whether the
// last one is stored.
type mortal struct {
	runlog.Log
	mu      sync.Mutex
	appends int // remaining appends; negative means no limit
	stores  bool
	dead    bool
	// before and after are called around appends.
	before, after func(kind subject.Kind, workflowID string)
	// reads is called before a run is read.
	reads func(runID string)
}

func (m *mortal) Run(ctx context.Context, r subject.Run) ([]*frame.Frame, error) {
	if m.reads != nil {
		m.reads(r.RunID)
	}
	return m.Log.Run(ctx, r)
}

func (m *mortal) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if m.before != nil {
		m.before(f.Kind, f.Run.WorkflowID)
	}
	if m.after != nil {
		defer m.after(f.Kind, f.Run.WorkflowID)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.dead:
		return 0, runlog.ErrUnavailable
	case m.appends == 0:
		m.dead = true
		if m.stores {
			_, _ = m.Log.Append(ctx, f, after)
		}
		return 0, runlog.ErrUnavailable
	}
	m.appends--
	return m.Log.Append(ctx, f, after)
}

func (m *mortal) died() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// family is a log that several processes share.
type family struct {
	log     *memory.Log
	defs    library
	starter *create.Starter
	ahead   time.Duration
}

func newFamily(t *testing.T) *family {
	t.Helper()
	f := &family{log: memory.New(), defs: library{map[string]*definition.Entry{}, map[string]*definition.Entry{}}}
	f.starter = f.startsOn(f.log)
	return f
}

func (f *family) startsOn(log runlog.Log) *create.Starter {
	return create.New(create.Deps{
		Storage:   create.Storage{Log: log, Definitions: f.defs},
		Redaction: create.Redaction{Redactor: &redactor{}},
		Checks:    create.Checks{Types: node.Builtin()},
		Limits:    create.Limits{MaxDuration: time.Hour, MaxDepth: 3},
		Clock:     f.now,
	})
}

func (f *family) now() time.Time { return time.Now().Add(f.ahead) }

// process is an executor with its own view of the log.
type process struct {
	*engine.Executor
	log *mortal
}

// process returns a process that dies after a number of appends; negative means never.
func (f *family) process(appends int, stores bool) process {
	log := &mortal{Log: f.log, appends: appends, stores: stores}
	return process{f.executorOn(log, time.Minute), log} // long enough that no delivery lapses
}

func (f *family) executorOn(log runlog.Log, heartbeat time.Duration) *engine.Executor {
	return engine.New(engine.Config{
		Limits: machine.Limits{MaxNodeExecutions: 50, MaxDuration: time.Hour, MaxParallel: 4}, AckWait: 3 * heartbeat,
	}, engine.Deps{
		Storage: engine.Storage{Log: log, Definitions: f.defs},
		Services: engine.Services{
			Redactor: &redactor{},
			Acceptor: noAcceptor{},
			Children: f.startsOn(log),
		},
		Rules: engine.Rules{Types: node.Builtin()},
		Timers: engine.Timers{
			Wait:   func(subject.Run, frame.Head, time.Time) {},
			Forget: func(string, string) {},
		},
		Telemetry: engine.Telemetry{Logger: slog.New(slog.DiscardHandler)},
		Clock:     f.now,
	})
}

func (f *family) create(t *testing.T, workflowID, inputs string) {
	t.Helper()
	_, err := f.starter.Start(t.Context(), create.Request{
		Tenant:     "acme",
		Principal:  "ann",
		WorkflowID: workflowID,
		RunID:      "run_p",
		Inputs:     json.RawMessage(inputs),
	})
	require.NoError(t, err)
}

// drain executes the queue until it is empty or the process has died.
func (f *family) drain(t *testing.T, x process) {
	t.Helper()
	for range 200 {
		if waiting, _ := f.log.Backlog(); waiting == 0 || x.log.died() {
			return
		}
		d, err := f.log.Next(t.Context())
		require.NoError(t, err)
		x.Execute(t.Context(), d)
	}
	t.Fatal("the runs do not come to rest")
}

func (f *family) state(t *testing.T, runID string) *runstate.State {
	t.Helper()
	frames, err := f.log.Run(t.Context(), subject.Run{Tenant: "acme", RunID: runID})
	require.NoError(t, err)
	require.NoError(t, frame.VerifyChain(frames))
	st, _, err := machine.Load(frames)
	require.NoError(t, err)
	return st
}

// runs returns the ids of all runs in the order of their starts.
func (f *family) runs() []string {
	var out []string
	for _, fr := range f.log.Frames() {
		if fr.Kind == subject.Start {
			out = append(out, fr.Run.RunID)
		}
	}
	return out
}

// story returns the events of a run, as "type@node".
func (f *family) story(t *testing.T, runID string) string {
	t.Helper()
	frames, err := f.log.Run(t.Context(), subject.Run{Tenant: "acme", RunID: runID})
	require.NoError(t, err)
	var out []string
	for _, fr := range frames {
		events, err := fr.Events()
		require.NoError(t, err)
		for _, e := range events {
			out = append(out, strings.TrimSuffix(string(e.Type)+"@"+e.NodeID, "@"))
		}
	}
	return strings.Join(out, " ")
}

func call(config string) string { return nodeJSON("call", "core.subWorkflow", config) }

const (
	wholeStory   = "run.started node.started@call node.dispatched@call node.completed@call run.completed"
	waitingStory = "run.started node.started@call node.dispatched@call node.suspended@call node.resumed@call node.completed@call run.completed"
)

func (f *family) live() process { return f.process(-1, false) }

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

// gated is a parent whose child, and the child's child, wait for an approval.
func gated(t *testing.T, config string) *family {
	t.Helper()
	f := newFamily(t)
	f.defs.add(t, "leaf", ``, nodeJSON("gate", "core.approvalGate", approvalJSON))
	f.defs.add(t, "middle", ``, call(`{"workflowId":"leaf"`+config+`}`))
	f.defs.add(t, "parent", ``, call(`{"workflowId":"middle"`+config+`}`))
	f.create(t, "parent", `{}`)
	return f
}

func (f *family) answer(t *testing.T, x process, runID string) {
	t.Helper()
	_, err := x.Resolve(t.Context(), "acme", runID, engine.Answer{NodeID: "gate", Answer: interrupt.Answer{
		Value: json.RawMessage(`{"action":"accept"}`), By: interrupt.Responder{Principal: "ann"},
	}})
	require.NoError(t, err)
}

// fails ends a run with an error, as its executor would.
func (f *family) fails(t *testing.T, runID string, e *wire.NodeError) {
	t.Helper()
	frames, err := f.log.Run(t.Context(), subject.Run{Tenant: "acme", RunID: runID})
	require.NoError(t, err)
	head := frames[len(frames)-1].Head()
	failed := wire.Draft{
		Type:    wire.EventRunFailed,
		Payload: mustJSON(t, map[string]any{"error": e}),
	}.Place(runID, head.Next, f.now())
	_, err = f.log.Append(t.Context(), frame.New(frames[0].Run, subject.End, head, []wire.Event{failed}), head.Pos)
	require.NoError(t, err)
	parent := f.state(t, runID).Record.Parent
	wakeLost(t, f.live(), subject.Run{Tenant: "acme", RunID: parent.RunID})
}

// last returns the payload of a run's last event.
func (f *family) last(t *testing.T, runID string) string {
	t.Helper()
	frames, err := f.log.Run(t.Context(), subject.Run{Tenant: "acme", RunID: runID})
	require.NoError(t, err)
	events, err := frames[len(frames)-1].Events()
	require.NoError(t, err)
	return string(events[len(events)-1].Payload)
}
