package journal

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/test/harness"
)

// clientsPerGroup is the number of concurrent clients of one run.
const clientsPerGroup = 4

// contend creates waiting runs, one after another. Concurrently, two clients answer each, one
// cancels it, and one reads it.
func (j *Journal) contend(ctx context.Context, t testing.TB, host *harness.Host, first int) {
	clients := make([]*harness.Client, clientsPerGroup)
	for i := range clients {
		clients[i] = client(host)
	}
	for n := 0; ctx.Err() == nil; n++ {
		run := j.createOne(ctx, t, clients[0], `{"workflowId":"`+GateWorkflow+`"}`, "")
		if run == "" || !settle(ctx, clients[0], run) {
			continue
		}
		var wg sync.WaitGroup
		wg.Go(func() { j.answer(ctx, clients[0], first, run, "accept") })
		wg.Go(func() { j.answer(ctx, clients[1], first+1, run, "reject") })
		if n%3 != 0 {
			wg.Go(func() { j.cancel(ctx, clients[2], first+2, run) })
		}
		wg.Go(func() {
			for range 3 {
				j.read(ctx, clients[3], first+3, run)
			}
		})
		wg.Wait()
		j.read(ctx, clients[0], first, run)
	}
}

// settle polls until a run waits or has ended. It returns false if ctx has ended.
func settle(ctx context.Context, c *harness.Client, run string) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if a, err := c.Do(ctx, http.MethodGet, "/v1/runs/"+run, ""); err == nil && a.Status == http.StatusOK {
			var v struct{ Status string }
			if a.JSON(&v) == nil && v.Status != "pending" && v.Status != "running" {
				return true
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

func (j *Journal) answer(ctx context.Context, c *harness.Client, id int, run, value string) {
	call := j.now()
	a, err := c.Do(ctx, http.MethodPost, "/v1/runs/"+run+"/interrupts/gate", `{"resumeValue":{"action":"`+value+`"}}`)
	j.record(run, id, call, input{opAnswer, value}, output{outcome: outcomeOf(a, err)})
}

func (j *Journal) cancel(ctx context.Context, c *harness.Client, id int, run string) {
	call := j.now()
	a, err := c.Do(ctx, http.MethodPost, "/v1/runs/"+run+"/cancel", "")
	out := output{outcome: outcomeOf(a, err)}
	if out.outcome == taken && strings.Contains(string(a.Body), "alreadyTerminal") {
		out.outcome = refused
	}
	j.record(run, id, call, input{op: opCancel}, out)
}

// outcomeOf classifies the answer to a request.
func outcomeOf(a *harness.Answer, err error) string {
	switch {
	case err != nil || a.Status >= http.StatusInternalServerError:
		return unknown
	case a.Status == http.StatusOK:
		return taken
	}
	return refused
}

// read records what the run's log shows. A failed read is not recorded.
func (j *Journal) read(ctx context.Context, c *harness.Client, id int, run string) {
	call := j.now()
	a, err := c.Do(ctx, http.MethodGet, "/v1/runs/"+run+"/events/poll?timeout=0&lastSequence=-1", "")
	if err != nil || a.Status != http.StatusOK {
		return
	}
	var p harness.Page
	if a.JSON(&p) != nil {
		return
	}
	events, err := harness.ParseEvents(p.Events)
	if err != nil {
		return
	}
	j.record(run, id, call, input{op: opRead}, output{seen: stateOf(events)})
}

// stateOf returns the state that a log shows.
func stateOf(events []harness.Event) state {
	s := state{events: len(events)}
	for _, e := range events {
		switch e.Type {
		case "approval.received":
			var p struct{ Action string }
			_ = json.Unmarshal(e.Payload, &p) // a payload without an action is not an answer
			s.answer = p.Action
		case "run.cancelled":
			s.cancelled = true
		}
	}
	s.ended = slices.ContainsFunc(events, func(e harness.Event) bool { return wire.EventType(e.Type).Terminal() })
	return s
}
