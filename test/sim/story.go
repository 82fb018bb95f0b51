package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/test/fixture"
)

// Story is a run of given workflows with a list of actions. No action waits for a time: each line
// waits for signs in the logs. The same actions therefore apply to the same state, whichever
// process dies.
type Story struct {
	Name string
	// Workflows are the registered documents; the first run is of Workflow.
	Workflows            []json.RawMessage
	Workflow             string
	Inputs, Configurable json.RawMessage
	TestKey              bool
	// Races reports that nodes run concurrently in no fixed order.
	Races bool
	// Says are the scripted model's answers in order, by node.
	Says  map[string][]mock.Entry
	Lines []Line
}

type (
	// Line is an action on a run of a story.
	Line = fixture.Step
	// Sign is an event that a line waits for.
	Sign = fixture.Sign
)

// Begun and Forked are the ids of a story's root runs.
const (
	Begun  = "run-0"
	Forked = "run-1"
)

// Stage returns the scenario of a story. Only the behaviour of processes depends on the seed.
func Stage(s Story) Scenario { return Scenario{Seed: 1, Dispatchers: 2, Story: &s} }

// register registers the workflows of the story.
func (s *Story) register(r *definition.Registry) error {
	for _, doc := range s.Workflows {
		def, problems := workflow.Parse(doc)
		if len(problems) > 0 {
			return fmt.Errorf("workflow of the story %s is invalid: %v", s.Name, problems)
		}
		if _, _, err := r.Put(context.Background(), tenant, def, false); err != nil {
			return err
		}
	}
	return nil
}

// find returns the run of a line or a sign; nil if it does not exist yet.
func (w *World) find(of string) *history {
	if of == "" {
		of = Begun
	}
	if h := w.runs[of]; h != nil {
		return h
	}
	for _, id := range w.runIDs() {
		if h := w.runs[id]; h.record.WorkflowID == of && id != Forked {
			return h
		}
	}
	return nil
}

// seen reports whether a sign is in the logs.
func (w *World) seen(s Sign) bool {
	h := w.find(s.Of)
	return h != nil && h.lastOf(s.Event) >= 0
}

// lastOf returns the sequence of the last event of a sign: -1 if there is none, 0 if the sign is
// empty.
func (h *history) lastOf(event string) int {
	typ, node, _ := strings.Cut(event, "@")
	for i := len(h.events) - 1; i >= 0 && event != ""; i-- {
		if e := h.events[i]; string(e.Type) == typ && e.NodeID == node {
			return i
		}
	}
	if event == "" {
		return 0
	}
	return -1
}

// storyRunner executes the lines of a story.
type storyRunner struct {
	client
	story *Story
	// watch is a process that only reads the logs and is never killed.
	watch *process
}

func (w *World) newStoryRunner() *storyRunner {
	watch := &process{w: w, name: "watch", ctx: w.background(), cancel: func() {}}
	return &storyRunner{client: client{w: w, name: "c0"}, story: w.scenario.Story, watch: watch}
}

func (t *storyRunner) run() {
	defer func() {
		t.w.mu.Lock()
		t.w.clients--
		t.w.mu.Unlock()
	}()
	t.must("begins", Begun, func(ctx context.Context, p *process, _ string) error {
		_, err := p.dispatcher.StartRun(ctx, &dispatcherv1.StartRunRequest{
			Tenant: tenant, Principal: t.name, WorkflowId: t.story.Workflow, RunId: Begun, RequestDigest: "digest", Transport: "rest",
			Inputs: t.story.Inputs, Configurable: t.story.Configurable, TestKey: t.story.TestKey,
		})
		return err
	})
	for i, l := range t.story.Lines {
		run, err := t.await(i, l)
		if err != nil {
			return // the simulation is over
		}
		t.must(l.Do, run, func(ctx context.Context, p *process, run string) error { return acts[l.Do](ctx, p, run, l) })
	}
}

// await waits until the signs of a line are in the logs, and returns the line's run.
func (t *storyRunner) await(i int, l Line) (run string, err error) {
	ready := func() time.Time {
		for _, s := range l.After {
			if !t.w.seen(s) {
				return time.Now().Add(2 * idle)
			}
		}
		return time.Time{}
	}
	ctx, cancel := context.WithCancel(t.watch.ctx)
	defer cancel()
	go func() {
		select {
		case <-t.w.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	err = t.watch.wait(ctx, &call{at: atSign, detail: fmt.Sprintf("line %d, to %s", i, l.Do), ready: ready, perform: func() error {
		run = t.w.find(l.Of).id
		return nil
	}})
	return run, err
}

// acts maps a line's action to its implementation.
var acts = map[string]func(ctx context.Context, p *process, run string, l Line) error{
	"answer": func(ctx context.Context, p *process, run string, l Line) error {
		_, err := p.dispatcher.ResolveInterrupt(ctx, &dispatcherv1.ResolveInterruptRequest{
			Tenant: tenant, RunId: run, NodeId: l.Node, ResumeValue: []byte(l.With), Principal: "c0",
		})
		return err
	},
	"pause": func(ctx context.Context, p *process, run string, l Line) error {
		_, err := p.dispatcher.PauseRun(ctx, &dispatcherv1.PauseRunRequest{Tenant: tenant, RunId: run, DrainPolicy: l.With, PausedBy: "c0"})
		return err
	},
	"resume": func(ctx context.Context, p *process, run string, _ Line) error {
		_, err := p.dispatcher.ResumeRun(ctx, &dispatcherv1.ResumeRunRequest{Tenant: tenant, RunId: run, Reason: "back"})
		return err
	},
	"cancel": func(ctx context.Context, p *process, run string, _ Line) error {
		_, err := p.dispatcher.CancelRun(ctx, &dispatcherv1.CancelRunRequest{Tenant: tenant, RunId: run, Reason: "enough", CancelledBy: "c0"})
		return err
	},
	"fork": func(ctx context.Context, p *process, run string, l Line) error {
		from := 0
		if err := p.call(ctx, atSign, "fork position "+run, func() error { from = p.w.runs[run].lastOf(l.From); return nil }); err != nil {
			return err
		}
		_, err := p.dispatcher.ForkRun(ctx, &dispatcherv1.ForkRunRequest{
			Tenant: tenant, SourceRunId: run, RunId: Forked, RequestDigest: "fork", Mode: l.With, FromSeq: int32(from), //nolint:gosec // G115: of a story
			TestKey: true,
		})
		return err
	},
	"edit": func(ctx context.Context, p *process, run string, l Line) error {
		return forkNode(ctx, p, run, &dispatcherv1.NodeEdit{NodeId: l.Node, Outputs: []byte(l.With)})
	},
	"try": func(ctx context.Context, p *process, run string, l Line) error {
		return forkNode(ctx, p, run, &dispatcherv1.NodeEdit{NodeId: l.Node, Config: []byte(l.With), Only: true})
	},
}

// forkNode forks a run with an edited node.
func forkNode(ctx context.Context, p *process, run string, edit *dispatcherv1.NodeEdit) error {
	_, err := p.dispatcher.ForkRun(ctx, &dispatcherv1.ForkRunRequest{
		Tenant: tenant, SourceRunId: run, RunId: Forked, RequestDigest: "fork", Mode: "branch", Edit: edit, TestKey: true,
	})
	return err
}

// done lists the errors of an action that already took effect, although its answer was lost.
var done = []fault.Code{fault.Conflict, fault.RunTerminal, fault.InterruptResolved, fault.InterruptGone}

// must executes an action, and retries until an answer confirms it.
func (t *storyRunner) must(what, run string, do func(ctx context.Context, p *process, run string) error) {
	var err error
	for i := range tries {
		p := t.w.dispatcherAt(i)
		err = t.exchange(p, what+" "+run, func(ctx context.Context, p *process) error { return do(ctx, p, run) })
		if err == nil || i > 0 && slices.Contains(done, fault.CodeOf(err)) {
			return
		}
		if !again(err) {
			break
		}
		wait := time.NewTimer(time.Duration(i+1) * 100 * time.Millisecond)
		<-wait.C
	}
	t.w.promises.wrong(fmt.Errorf("story: %s of %s: %w", what, run, err))
}
