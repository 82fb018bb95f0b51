package engine_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/queuetime"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// oneDefinition returns the same definition for any digest.
type oneDefinition struct{ entry *definition.Entry }

func (o oneDefinition) ByDigest(context.Context, string) (*definition.Entry, error) {
	return o.entry, nil
}

func define(t testing.TB, nodes string, edges ...string) oneDefinition {
	t.Helper()
	def, problems := workflow.Parse([]byte(`{"id":"wf","name":"wf","version":"1","nodes":[` + nodes +
		`],"edges":[` + strings.Join(edges, ",") + `],"triggers":[],"variables":[],"metadata":{},"settings":{}}`))
	require.Empty(t, problems)
	compiled, problems := definition.Compile(def)
	require.Empty(t, problems)
	return oneDefinition{&definition.Entry{Def: def, Graph: workflow.Compile(def), Flow: compiled, Digest: def.Digest()}}
}

func nodeJSON(id, typ, config string) string {
	return fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"n","position":{"x":0,"y":0},"config":%s,"inputs":{}}`, id, typ, config)
}

// redactor replaces one secret.
type redactor struct {
	secret string
	// mark replaces it; empty: [REDACTED:s].
	mark string
	down atomic.Bool
	// away means that it cannot be reached.
	away  atomic.Bool
	calls atomic.Int32
	// most is the size from which documents are rejected with refusal; 0 accepts all.
	most    int
	refusal *fault.Error
}

func (r *redactor) Redact(_ context.Context, _, _ string, _ bool, docs [][]byte) ([][]byte, bool, error) {
	r.calls.Add(1)
	if r.down.Load() {
		return nil, false, errors.New("redactor is down")
	}
	if r.away.Load() {
		return nil, false, fault.New(fault.ServiceUnavailable, "no redactor can be reached")
	}
	changed := false
	out := make([][]byte, len(docs))
	for i, d := range docs {
		if r.most > 0 && len(d) > r.most {
			return nil, false, r.refusal
		}
		out[i] = d
		if r.secret != "" && strings.Contains(string(d), r.secret) {
			out[i], changed = []byte(strings.ReplaceAll(string(d), r.secret, cmp.Or(r.mark, "[REDACTED:s]"))), true
		}
	}
	return out, changed, nil
}

// models runs a function in place of a model node.
type models func(ctx context.Context, t model.Task, j model.Journal) model.Result

func (m models) Run(ctx context.Context, t model.Task, j model.Journal) model.Result {
	return m(ctx, t, j)
}

type noAcceptor struct{}

func (noAcceptor) Accept(context.Context, subject.Run, frame.Head, wire.Trust, model.AcceptRequest) (engine.Accepted, error) {
	return engine.Accepted{}, errors.New("not expected")
}

// acceptor is an engine.Acceptor as a function.
type acceptor func(ctx context.Context, r subject.Run, head frame.Head, req model.AcceptRequest) (engine.Accepted, error)

func (a acceptor) Accept(ctx context.Context, r subject.Run, head frame.Head, _ wire.Trust, req model.AcceptRequest) (engine.Accepted, error) {
	return a(ctx, r, head, req)
}

type rig struct {
	acceptor  engine.Acceptor
	log       *memory.Log
	exec      *engine.Executor
	red       *redactor
	mu        sync.Mutex
	sleep     []time.Time
	forgotten []string
	// said receives the log of executors created from here on; nil disables it.
	said io.Writer
	// count counts the work of executors created from here on; nil disables it. defs and models are
	// their collaborators.
	count  *tally
	defs   engine.Definitions
	models engine.Models
	// begins measures executors created from here on; nil disables it.
	begins *queuetime.Meter
	// quarantine receives runs of executors created from here on; nil disables it.
	quarantine engine.Quarantine
	// hold is Config.HoldResults of executors created from here on.
	hold time.Duration
	// alive gives each executor a process id with a lease that is held until the process is in
	// dead. peers connects the executors; nil disconnects them.
	alive bool
	dead  sync.Map
	peers engine.Peers
	// snapshots is used by executors created from here on; nil disables snapshots.
	snapshots *snapshot.Keeper
	// cleartext is the store of executors created from here on; nil means no store.
	cleartext engine.CleartextStore
	// limiter limits calls of executors created from here on; nil means no limits.
	limiter engine.Limiter
	// moreTypes are additional node types of executors created from here on.
	moreTypes node.Catalog
	// ahead is added to the wall clock.
	ahead atomic.Int64
}

func newRig(t *testing.T, defs engine.Definitions, m engine.Models) *rig {
	t.Helper()
	r := &rig{log: memory.New(), red: &redactor{}, acceptor: noAcceptor{}, defs: defs, models: m}
	r.exec = r.executor(defs, m)
	return r
}

// executor returns the executor of a new process.
func (r *rig) executor(defs engine.Definitions, m engine.Models) *engine.Executor {
	return r.executorOn(r.log, defs, m)
}

func (r *rig) executorOn(log runlog.Log, defs engine.Definitions, m engine.Models) *engine.Executor {
	logger := slog.New(slog.DiscardHandler)
	if r.said != nil {
		logger = slog.New(slog.NewJSONHandler(r.said, nil))
	}
	types := node.Builtin()
	maps.Copy(types, r.moreTypes)
	var count engine.Metrics
	if r.count != nil {
		count = r.count
	}
	var leases engine.Leases
	if r.alive {
		leases = living{rand.Text(), &r.dead}
	}
	return engine.New(engine.Config{
		Limits:  machine.Limits{MaxNodeExecutions: 10, MaxDuration: time.Hour, MaxParallel: 4},
		AckWait: 3 * time.Second, MaxBatch: 64, HoldResults: r.hold,
	}, engine.Deps{
		Storage: engine.Storage{
			Log:         log,
			Definitions: defs,
			Quarantine:  r.quarantine,
			Snapshots:   r.snapshots,
			Cleartext:   r.cleartext,
		},
		Services:  engine.Services{Redactor: r.red, Acceptor: r.acceptor, Models: m, Limiter: r.limiter},
		Rules:     engine.Rules{Types: types},
		Processes: engine.Processes{Leases: leases, Peers: r.peers},
		Timers: engine.Timers{
			Wait: func(_ subject.Run, _ frame.Head, due time.Time) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.sleep = append(r.sleep, due)
			},
			Forget: func(tenant, runID string) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.forgotten = append(r.forgotten, tenant+"/"+runID)
			},
		},
		Telemetry: engine.Telemetry{Metrics: count, FirstAppend: r.begins, Logger: logger},
		Clock:     func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) },
	})
}

var theRun = subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run_1"}

func (r *rig) create(t *testing.T) {
	t.Helper()
	rec, err := json.Marshal(&wire.RunRecord{
		RunID:         "run_1",
		WorkflowID:    "wf",
		Owner:         wire.Owner{Tenant: "acme"},
		EngineVersion: 1,
	})
	require.NoError(t, err)
	_, err = r.log.Append(t.Context(), frame.NewStart(theRun, rec), 0)
	require.NoError(t, err)
}

// next executes the next delivered run.
func (r *rig) next(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	d, err := r.log.Next(ctx)
	require.NoError(t, err)
	r.exec.Execute(t.Context(), d)
}

func (r *rig) state(t *testing.T) (*runstate.State, []*frame.Frame) {
	t.Helper()
	frames, err := r.log.Run(t.Context(), theRun)
	require.NoError(t, err)
	require.NoError(t, frame.VerifyChain(frames))
	st, _, err := machine.Load(frames)
	require.NoError(t, err)
	return st, frames
}
