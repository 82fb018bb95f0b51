package seam

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Sizes of a race, and its duration at most.
const (
	MinExecutors = 2
	MaxExecutors = 16
	raceTimeout  = 20 * time.Second
)

// raceWorkflow is the workflow of the run that is raced for: one node with a side effect.
const raceWorkflow = "conformance-concurrent-claim"

// Race lets several executors execute one run at the same time, as if the queue had delivered it
// again while its owner was stalled but alive. They use the production code and run log; only the
// claim in the log decides which of them performs the effect (RFC 0150 §B).
type Race struct {
	Log      runlog.Log
	Redactor engine.Redactor
	Clock    func() time.Time
	Logger   *slog.Logger
}

// Claims is the result of a race.
type Claims struct {
	RunID string
	// InvocationID is the id under which the effect was performed.
	InvocationID string
	// Minted has the id that each executor had for the effect when it claimed the run.
	Minted []string
	// Delivered counts how often the effect was performed.
	Delivered int
}

// Run holds a race for a new run of a tenant.
func (r Race) Run(ctx context.Context, tenant string, executors int) (Claims, error) {
	if executors < MinExecutors || executors > MaxExecutors {
		return Claims{}, fault.New(fault.InvalidArgument, "/executors: want %d to %d", MinExecutors, MaxExecutors)
	}
	ctx, cancel := context.WithTimeout(ctx, raceTimeout)
	defer cancel()
	entry, err := raceDefinition()
	if err != nil {
		return Claims{}, err
	}
	run := subject.Run{Tenant: tenant, WorkflowID: raceWorkflow, RunID: "run_" + strings.ToLower(rand.Text())}
	first := frame.NewOpen(run, strictjson.Render(&wire.RunRecord{
		RunID: run.RunID, WorkflowID: run.WorkflowID, WorkflowDigest: entry.Digest,
		Owner: wire.Owner{Tenant: tenant}, CreatedAt: wire.FormatTime(r.Clock()), EngineVersion: wire.EngineVersion,
		Opened: true, NoSecrets: true, // the queue delivers an opened run to no other executor
	})).By(rand.Text())
	if first.Pos, err = r.Log.Append(ctx, first, 0); err != nil {
		return Claims{}, fmt.Errorf("create the run of a race: %w", err)
	}
	c := &course{missing: executors, all: make(chan struct{})}
	var wg sync.WaitGroup
	for i := range executors {
		log := &racerLog{Log: r.Log, course: c}
		e := r.executor(fmt.Sprintf("racer-%d-%s", i, run.RunID), log, entry, c)
		wg.Go(func() {
			defer log.arrive(ctx, nil) // an executor that fails before it claims the run holds up no other
			e.Execute(ctx, handed{first})
		})
	}
	wg.Wait()
	if c.performed.Load() == 0 {
		return Claims{}, fault.New(fault.ServiceUnavailable, "no executor could claim the run in time; try again").After(time.Second)
	}
	return Claims{RunID: run.RunID, InvocationID: c.performedAs, Minted: c.minted, Delivered: int(c.performed.Load())}, nil
}

func raceDefinition() (*definition.Entry, error) {
	def, problems := workflow.Parse([]byte(`{"id":"` + raceWorkflow + `","name":"Concurrent claims","version":"1","nodes":[{"id":"effect","typeId":"` +
		node.TypeSideEffect + `","name":"Effect","position":{"x":0,"y":0},"config":{},"inputs":{}}],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`))
	if len(problems) > 0 {
		return nil, fmt.Errorf("definition of a race: %s", problems[0].Message)
	}
	flow, problems := definition.Compile(def)
	if len(problems) > 0 {
		return nil, fmt.Errorf("definition of a race: %s", problems[0].Message)
	}
	return &definition.Entry{Def: def, Graph: workflow.Compile(def), Flow: flow, Digest: def.Digest()}, nil
}

// executor returns the executor of a process that takes part.
func (r Race) executor(process string, log runlog.Log, entry *definition.Entry, c *course) *engine.Executor {
	return engine.New(engine.Config{
		Limits:   machine.Limits{MaxNodeExecutions: 1, MaxDuration: raceTimeout, MaxParallel: 1},
		AckWait:  runlog.AckWait,
		MaxBatch: 1,
	}, engine.Deps{
		Storage:   engine.Storage{Log: log, Definitions: only{entry}},
		Services:  engine.Services{Redactor: r.Redactor, Models: c},
		Rules:     engine.Rules{Types: node.Builtin().Conformance(nil)},
		Processes: engine.Processes{Leases: alive(process)},
		Timers:    engine.Timers{Wait: func(subject.Run, frame.Head, time.Time) {}, Forget: func(string, string) {}},
		Telemetry: engine.Telemetry{Logger: r.Logger},
		Clock:     r.Clock,
	})
}

// course is where a race is held. It performs the effect and counts.
type course struct {
	performed atomic.Int32

	mu          sync.Mutex // guards all below
	minted      []string
	performedAs string
	missing     int
	all         chan struct{} // closed when no executor is missing
}

// Run performs the effect.
func (c *course) Run(ctx context.Context, t model.Task, j model.Journal) model.Result {
	c.performed.Add(1)
	c.mu.Lock()
	c.performedAs = model.InvocationID(t, 0, effectPeer)
	c.mu.Unlock()
	return sideEffect{}.Run(ctx, t, j)
}

// arrive counts an executor, with the id that it has for the effect.
func (c *course) arrive(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != "" {
		c.minted = append(c.minted, id)
	}
	if c.missing--; c.missing == 0 {
		close(c.all)
	}
}

// racerLog is the log as one executor sees it. The first append claims the run: it waits until
// every executor is about to claim it.
type racerLog struct {
	runlog.Log

	course *course
	once   sync.Once
}

func (l *racerLog) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	l.arrive(ctx, f)
	return l.Log.Append(ctx, f, after)
}

// Stage implements runlog.Stager.
func (l *racerLog) Stage(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	l.arrive(ctx, f)
	return runlog.Stage(ctx, l.Log, f, after)
}

// Keep implements runlog.Stager.
func (l *racerLog) Keep(ctx context.Context, pos uint64) error { return runlog.Keep(ctx, l.Log, pos) }

func (l *racerLog) arrive(ctx context.Context, f *frame.Frame) {
	l.once.Do(func() {
		l.course.arrive(invocationOf(f))
		select {
		case <-l.course.all:
		case <-ctx.Done():
		}
	})
}

// invocationOf returns the id of the call that a frame begins; empty if it begins none.
func invocationOf(f *frame.Frame) string {
	if f == nil {
		return ""
	}
	events, _ := f.Events() // of a frame that this process made
	for _, e := range events {
		if e.Type == wire.EventNodeStarted {
			return node.InvocationID(f.Run.Tenant, f.Run.RunID, e.NodeID, 0, effectPeer)
		}
	}
	return ""
}

// only is a registry with one definition.
type only struct{ entry *definition.Entry }

func (o only) ByDigest(context.Context, string) (*definition.Entry, error) { return o.entry, nil }

// alive is the lease of a process among others that all live: none may take a run over.
type alive string

func (a alive) Process() string                           { return string(a) }
func (alive) Await(context.Context, string) error         { return nil }
func (alive) Alive(context.Context, string) (bool, error) { return true, nil }

// handed is a delivery that no queue tracks.
type handed struct{ frame *frame.Frame }

func (h handed) Frame() *frame.Frame { return h.frame }
func (handed) Redelivered() bool     { return true }
func (handed) Tries() int            { return 1 }
func (handed) Extend() error         { return nil }
func (handed) Ack() error            { return nil }
func (handed) Retry() error          { return nil }
func (handed) Return() error         { return nil }
