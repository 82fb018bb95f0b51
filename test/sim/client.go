package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/runlog"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// action is something that clients do. A new action needs an entry here. It records its promises in
// World.promises, and atEnd checks the log against them.
type action struct {
	// weight is the relative frequency of the action, in addition to the steps that every scenario
	// has.
	weight int
	do     func(c *client, s Step)
	// with lists the possible arguments; nil means none.
	with []string
}

var actions map[string]action

func init() { //nolint:gochecknoinits // the table and what it names refer to each other
	actions = map[string]action{
		"create":       {weight: 3, do: (*client).create},
		"create-once":  {weight: 1, do: (*client).createOnce},
		"create-other": {weight: 1, do: (*client).createOther},
		"cancel":       {weight: 3, do: (*client).cancelRun},
		"read":         {weight: 2, do: (*client).read},
		"pause":        {weight: 4, do: (*client).pause, with: []string{string(wire.DrainNot), string(wire.DrainCurrent)}},
		"resume":       {weight: 2, do: (*client).resume},
		"answer":       {weight: 8, do: (*client).answer, with: []string{"accept", "reject"}},
	}
}

// client is an external caller that retries until it gets an answer.
type client struct {
	w     *World
	name  string
	steps []Step
}

func (c *client) run() {
	defer func() {
		c.w.mu.Lock()
		c.w.clients--
		c.w.mu.Unlock()
	}()
	for _, s := range c.steps {
		t := time.NewTimer(s.After + time.Duration(len(c.name)+int(c.name[1]))*time.Microsecond)
		<-t.C
		actions[s.Do].do(c, s)
	}
}

// tries is the limit of a client's attempts.
const tries = 40

// ask sends a request to a dispatcher. If that dies, it retries with another one until it gets an
// answer.
func (c *client) ask(s Step, what string, times int, do func(ctx context.Context, p *process) error) error {
	var err error
	for i := range times {
		p := c.w.dispatcherAt(s.Slot + i)
		if err = c.exchange(p, fmt.Sprintf("%s %s %s", c.name, what, runID(s.Run)), do); !again(err) {
			return err
		}
		t := time.NewTimer(time.Duration(i+1) * 300 * time.Millisecond)
		<-t.C
	}
	return err
}

func again(err error) bool {
	return errors.Is(err, runlog.ErrUnavailable) || errors.Is(err, errDead) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || fault.CodeOf(err) == fault.ServiceUnavailable || fault.CodeOf(err) == fault.Conflict
}

// requestTimeout is a client's timeout for one answer.
const requestTimeout = 12 * time.Second

func (c *client) exchange(p *process, what string, do func(ctx context.Context, p *process) error) error {
	ctx, cancel := context.WithTimeout(context.WithValue(p.ctx, clientCall{}, c.name), requestTimeout)
	defer cancel()
	if err := p.call(ctx, atRequest, what, nil); err != nil {
		return err
	}
	answer := do(ctx, p)
	if err := p.call(ctx, atAnswer, fmt.Sprintf("%s: %v", what, answer), nil); err != nil {
		return err
	}
	return answer
}

func (c *client) start(ctx context.Context, p *process, s Step, digest string) (*dispatcherv1.StartRunResponse, error) {
	return p.dispatcher.StartRun(ctx, &dispatcherv1.StartRunRequest{
		Tenant: tenant, Principal: c.name, WorkflowId: flowID(c.w.scenario.of(s.Run)), RunId: runID(s.Run), RequestDigest: digest,
		Inputs: []byte(`{"given":"by the client, with ` + canary + `"}`), Transport: "rest",
	})
}

// create sends a request with an Idempotency-Key.
func (c *client) create(s Step) {
	err := c.ask(s, "creates", tries, func(ctx context.Context, p *process) error {
		res, err := c.start(ctx, p, s, "digest")
		if err == nil && res.GetRunId() != runID(s.Run) {
			c.w.promises.wrong(fmt.Errorf("promise: requested %s, got %s", runID(s.Run), res.GetRunId()))
		}
		return err
	})
	switch {
	case err == nil:
		c.w.promises.created(runID(s.Run))
	case !again(err):
		c.w.promises.wrong(fmt.Errorf("promise: %s was rejected: %w", runID(s.Run), err))
	}
}

// createOnce does not retry: the run may exist or not.
func (c *client) createOnce(s Step) {
	err := c.ask(s, "creates once", 1, func(ctx context.Context, p *process) error {
		_, err := c.start(ctx, p, s, "digest")
		return err
	})
	if err == nil {
		c.w.promises.created(runID(s.Run))
	}
}

// errTaken reports an answer that should have been an error.
var errTaken = errors.New("want idempotency_key_mismatch")

// createOther repeats a key with a different request, after the first was answered.
func (c *client) createOther(s Step) {
	if !c.w.promises.knows(runID(s.Run)) {
		return
	}
	err := c.ask(s, "creates another", tries, func(ctx context.Context, p *process) error {
		_, err := c.start(ctx, p, s, "another digest")
		return err
	})
	if !again(err) && fault.CodeOf(err) != fault.IdempotencyKeyMismatch {
		c.w.promises.wrong(fmt.Errorf("promise: different request with the key of %s: %w", runID(s.Run), errors.Join(errTaken, err)))
	}
}

// cancelRun cancels until the answer says that the run has ended.
func (c *client) cancelRun(s Step) {
	var status wire.Status
	var already bool
	known := c.w.promises.knows(runID(s.Run))
	err := c.ask(s, "cancels", tries, func(ctx context.Context, p *process) error {
		res, err := p.dispatcher.CancelRun(ctx, &dispatcherv1.CancelRunRequest{Tenant: tenant, RunId: runID(s.Run), Reason: "enough", CancelledBy: c.name})
		status, already = wire.Status(res.GetStatus()), res.GetAlreadyTerminal()
		return err
	})
	switch {
	case err == nil:
		c.w.promises.ended(runID(s.Run), status, already)
	case known && fault.CodeOf(err) == fault.RunNotFound:
		c.w.promises.wrong(fmt.Errorf("promise: %s was created but is not found", runID(s.Run)))
	}
}

// read reads the run from the log.
func (c *client) read(s Step) {
	var seen *history
	var status wire.Status
	p := c.w.dispatcherAt(s.Slot)
	err := p.call(p.ctx, atRequest, c.name+" reads "+runID(s.Run), func() error {
		if seen = c.w.runs[runID(s.Run)]; seen != nil {
			status = seen.state.Status
		}
		return nil
	})
	if err == nil && status.Terminal() {
		c.w.promises.ended(runID(s.Run), status, true)
	}
}

// pause sends one request and retries while the outcome is unknown. It ignores a run that cannot be
// paused now.
func (c *client) pause(s Step) {
	err := c.ask(s, "pauses "+s.With, tries, func(ctx context.Context, p *process) error {
		_, err := p.dispatcher.PauseRun(ctx, &dispatcherv1.PauseRunRequest{Tenant: tenant, RunId: runID(s.Run), DrainPolicy: s.With, PausedBy: c.name})
		return err
	})
	if err == nil && s.With == string(wire.DrainNot) {
		c.w.promises.happened(runID(s.Run), wire.EventRunPaused, "")
	}
}

func (c *client) resume(s Step) {
	err := c.ask(s, "resumes", 3, func(ctx context.Context, p *process) error {
		_, err := p.dispatcher.ResumeRun(ctx, &dispatcherv1.ResumeRunRequest{Tenant: tenant, RunId: runID(s.Run)})
		return err
	})
	if err == nil {
		c.w.promises.happened(runID(s.Run), wire.EventRunResumed, "")
	}
}

// answer decides every open gate of the run.
func (c *client) answer(s Step) {
	flow := c.w.scenario.Flows[c.w.scenario.of(s.Run)]
	for i, n := range flow.Nodes {
		if n.Kind != kindGate {
			continue
		}
		err := c.ask(s, "answers "+s.With+" at "+nodeID(i)+" of", 12, func(ctx context.Context, p *process) error {
			_, err := p.dispatcher.ResolveInterrupt(ctx, &dispatcherv1.ResolveInterruptRequest{
				Tenant: tenant, RunId: runID(s.Run), NodeId: nodeID(i), ResumeValue: []byte(`{"action":"` + s.With + `"}`), Principal: c.name,
			})
			return err
		})
		if err == nil {
			c.w.promises.decided(runID(s.Run), nodeID(i), s.With)
		}
	}
}

// tidy resumes paused runs until the simulation is over, so that none stays paused.
func (c *client) tidy() {
	const every = 7 * time.Second
	t := time.NewTicker(every)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-c.w.over:
			return
		case <-t.C:
		}
		p := c.w.dispatcherAt(n)
		var paused []int
		err := p.call(p.ctx, atRequest, c.name, func() error {
			for i := range maxRuns {
				if h := c.w.runs[runID(i)]; h != nil && h.state.Status == wire.StatusPaused {
					paused = append(paused, i)
				}
			}
			return nil
		})
		if err != nil {
			continue
		}
		for _, i := range paused {
			c.resume(Step{Run: i, Slot: n})
		}
	}
}
